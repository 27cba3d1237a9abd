"""A text of which nothing can be seen is an empty one, wherever one is required: read off every operation's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from refdesk.core import contracts
from refdesk.core.operations import Operation
from refdesk.errors import InvalidInputError
from refdesk.factories.toolsets import describe_toolsets
from refdesk.playbooks import Playbook, SkillDraft, Step
from refdesk.server import calls
from refdesk.toolsets.skills.learning import clean

OPERATIONS = [operation for toolset in describe_toolsets() for operation in toolset.operations]
INVISIBLE = "\u200b\u00ad \u3164\u2800\x1b[31m\n\U000e0041"
NAMES = {
    *("id", "taskId", "article_id", "answerId", "announcement", "toolset", "toolsets", "watch", "webhook", "language"),
    *("tags", "products", "productCategories", "categories", "group", "name", "path"),
}
"""Name what there is, so that what nobody can see names nothing."""

FILES = {"import_knowledge", "import_skills"}
"""Of which the answer says what became of each."""

BLANK = re.compile("is blank: it needs at least one character that can be seen|needs at least two letters or digits")

Path = tuple[str | int, ...]


def list_texts(schema: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Yield every place of an input where a text is required, if not the input, then the text where it is given."""
    for name, inner in schema.get("properties", {}).items():
        yield from _look_at(inner, (*path, name), is_required=name in schema.get("required", ()))


def _look_at(schema: Mapping[str, Any], path: Path, *, is_required: bool) -> Iterator[Path]:
    is_text = schema.get("type") == "string" and not {"enum", "format", "anyOf"} & schema.keys()
    if is_text and (is_required or "pattern" in schema or schema.get("minLength")):
        yield path
    yield from list_texts(schema, path)
    if "items" in schema:
        yield from _look_at(schema["items"], (*path, 0), is_required=True)


def list_cases() -> Iterator[Any]:
    for operation in OPERATIONS:
        for path in list_texts(contracts.get_input_schema(operation.input, is_exact=True)):
            name = next(part for part in reversed(path) if isinstance(part, str))
            if name not in NAMES and operation.name not in FILES:
                yield pytest.param(operation, path, id=f"{operation.name}-{'.'.join(map(str, path))}")


def put(arguments: dict[str, Any], path: Path, text: str) -> dict[str, Any]:
    """Return the arguments with a text at a place."""
    first, *rest = map(str, path)
    inner: Any = text
    for part in reversed(rest):
        inner = [inner] if part == "0" else {**_get(arguments.get(first)), part: inner}
    return {**arguments, first: inner}


def _get(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


@pytest.mark.parametrize(("operation", "path"), list(list_cases()))
def test_a_required_text_of_which_nothing_can_be_seen_is_refused_as_blank(operation: Operation, path: Path) -> None:
    for text in (INVISIBLE, *INVISIBLE.replace("[31m", ""), "\u200b" * 40):
        arguments = put(dict(operation.examples[0]) if operation.examples else {}, path, text)
        with pytest.raises(InvalidInputError, match=BLANK):
            calls.validate(operation, arguments)


def test_most_toolsets_require_texts() -> None:
    found = {f"{case.id}" for case in list_cases()}
    assert {"store_knowledge-title", "store_knowledge-body", "edit_knowledge-body", "search_knowledge-query"} <= found
    assert {"create_skill-conversation", "search_skills-query", "search_everything-query"} <= found
    assert {"create_watch-subject", "create_watch-label"} <= found


SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize("text", ["???", "…", SCOTLAND, "ש\u200f", "\u200bx", "[31m"])
def test_what_can_be_seen_is_no_empty_text(text: str) -> None:
    [search] = [operation for operation in OPERATIONS if operation.name == "search_knowledge"]
    assert calls.validate(search, {"query": text}).model_dump()["query"] == text


def test_a_step_of_which_nothing_can_be_seen_is_left_out_of_a_skill() -> None:
    draft = SkillDraft("Title", "Problem", Playbook("Goal", steps=(Step("Do this."), Step("\u3164\u2800"))))
    assert [step.do for step in clean(draft).playbook.steps] == ["Do this."]
