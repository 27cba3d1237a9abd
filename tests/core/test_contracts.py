from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field

from refdesk.core import contracts
from refdesk.core.context import Context
from refdesk.core.operations import READS, Operation, Resource, Rest, Route, Toolset


class Place(BaseModel):
    """Where."""

    model_config = ConfigDict(extra="forbid")

    title: str = "nowhere"
    tags: list[str] = []


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=5)] = ""
    kind: Literal["big", "small"] = "big"
    place: Place = Place()
    count: int = Field(default=3, ge=1)


class Reply(BaseModel):
    title: str
    note: str | None
    places: dict[str, list[Place]] = {}


async def answer(_context: Context, _question: Question) -> Reply:
    return Reply(title="yes", note=None)


async def read(_context: Context) -> Reply:
    return Reply(title="yes", note=None)


ASK = Operation(
    name="ask_things",
    title="Ask",
    description="Ask.",
    input=Question,
    output=Reply,
    handler=answer,
    scopes=frozenset(),
    effects=READS,
    route=Route("POST", "/ask"),
    errors={"INVALID_INPUT": "Wrong.", "STORE_UNAVAILABLE": "Down."},
    examples=({"text": "hi"},),
)
GUIDE = Resource("things://guide", "Guide", "A guide.", Reply, read, frozenset(), Route("GET", "/guide"))
THINGS = Toolset("things", "Things.", (ASK,), lambda: Rest(resources=(GUIDE,)))


def test_an_input_schema_is_flat_and_keeps_only_defaults_that_say_something() -> None:
    place = {
        "additionalProperties": False,
        "description": "Where.",
        "type": "object",
        "properties": {
            "title": {"default": "nowhere", "type": "string"},
            "tags": {"items": {"type": "string"}, "type": "array"},
        },
    }
    schema = contracts.get_input_schema(Question)
    assert schema.pop("properties") == {
        "text": {"maxLength": 5, "type": "string"},
        "kind": {"default": "big", "enum": ["big", "small"], "type": "string"},
        "place": place | {"default": {"title": "nowhere", "tags": []}},
        "count": {"default": 3, "minimum": 1, "type": "integer"},
    }
    assert schema == {"additionalProperties": False, "type": "object"}


def test_an_output_schema_requires_what_is_always_there_and_shows_no_default() -> None:
    schema = contracts.get_output_schema(Reply)
    assert schema["required"] == ["title", "note"]
    text = json.dumps(schema)
    assert not any(noise in text for noise in ('"default"', "$ref", "$defs"))
    assert '"title": {"type": "string"}' in text


def test_a_contract_holds_examples_errors_with_their_status_and_what_is_returned() -> None:
    contract = contracts.describe_operation(ASK)
    jsonschema.Draft7Validator.check_schema(contract)
    assert contract["examples"] == [{"text": "hi"}]
    assert contract["errors"] == [
        {"code": "INVALID_INPUT", "status": 400, "when": "Wrong."},
        {"code": "STORE_UNAVAILABLE", "status": 500, "when": "Down."},
    ]
    returns, whole = contract["returns"], contracts.get_output_schema(Reply)
    assert isinstance(returns, dict)
    assert {name for name in returns["properties"] if name not in whole["properties"]} == {"truncated"}  # pyright: ignore
    assert returns["required"] == whole["required"]


def test_a_tools_contract_refuses_what_its_model_refuses() -> None:
    validator = jsonschema.Draft7Validator(contracts.describe_operation(ASK))
    assert validator.is_valid({"text": "hello", "count": 1})  # pyright: ignore[reportUnknownMemberType]
    for wrong in ({"text": "longer"}, {"count": 0}, {"other": 1}, {"place": {"other": 1}}, {"kind": "odd"}):
        assert not validator.is_valid(wrong)  # pyright: ignore[reportUnknownMemberType]


def test_writing_replaces_contracts_that_are_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    folder.mkdir()
    (folder / "old-tool.json").write_text("{}")
    (folder / "README.md").write_text("kept")
    contracts.write_contracts(THINGS, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "ask-things-tool.json",
        "things-guide-resource.json",
    ]
    assert json.loads((folder / "things-guide-resource.json").read_text())["uri"] == "things://guide"


@pytest.mark.parametrize("code", ["CONFLICT", "LIMIT_EXCEEDED", "NOT_FOUND", "TOO_LARGE"])
def test_what_the_caller_can_fix_is_never_a_server_error(code: str) -> None:
    assert 400 <= contracts.HTTP_STATUS[code] < 500
