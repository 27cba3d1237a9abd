"""What every tool and resource that is served must hold, read off the table itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate
from pydantic import BaseModel, Field

from benchmarks.agent.scripted import read_recipes, read_steps
from benchmarks.tokens import count_tokens
from refdesk.core import contracts
from refdesk.core.operations import LARGEST_REQUEST, Toolset
from refdesk.discovery import find_descriptors
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import descriptions, openapi, prompts
from refdesk.server.answers import to_text

SNAPSHOTS = Path(__file__).parent / "snapshots"
MOST_TOKENS, MOST_TOKENS_IN_ALL = 1_000, 4_500
"""Of one toolset's tools/list as compact JSON, and of that of all of them, as o200k counts."""

OWN = {
    *("azure-updates", "knowledge", "skills", "salesforce-knowledge", "everything"),
    *("administration", "impact", "gaps", "watches"),
}

each_toolset = pytest.mark.parametrize("toolset", describe_toolsets(), ids=lambda toolset: toolset.name)


def describe(toolset: Toolset) -> dict[str, Any]:
    tools = descriptions.describe_tools(toolset.operations)
    resources = [descriptions.describe_resource(resource) for resource in toolset.resources]
    templates = [descriptions.describe_template(template) for template in toolset.templates]
    listed = [prompts.describe_prompt(prompt) for prompt in toolset.prompts]
    return {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        "resources": [resource.model_dump(mode="json", by_alias=True, exclude_none=True) for resource in resources],
        "templates": [template.model_dump(mode="json", by_alias=True, exclude_none=True) for template in templates],
        "prompts": [prompt.model_dump(mode="json", by_alias=True, exclude_none=True) for prompt in listed],
    }


def list_unasked(toolset: Toolset) -> list[dict[str, Any]]:
    tools = descriptions.describe_tools(toolset.listed)
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def walk(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    if isinstance(schema, dict):
        yield schema  # pyright: ignore[reportUnknownVariableType]
        for inner in schema.values():  # pyright: ignore[reportUnknownVariableType]
            yield from walk(inner)
    elif isinstance(schema, list):
        for inner in schema:  # pyright: ignore[reportUnknownVariableType]
            yield from walk(inner)


@each_toolset
def test_what_clients_are_told_changes_only_on_purpose(toolset: Toolset) -> None:
    """Set REFDESK_UPDATE_SNAPSHOTS=1 to accept what it is now."""
    path = SNAPSHOTS / f"{toolset.name}.json"
    text = json.dumps(describe(toolset), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("REFDESK_UPDATE_SNAPSHOTS") == "1":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@each_toolset
def test_the_list_of_tools_fits_its_budget(toolset: Toolset) -> None:
    assert count_tokens(to_text(list_unasked(toolset))) <= MOST_TOKENS


def test_the_list_of_all_tools_fits_its_budget() -> None:
    tools = [tool for toolset in describe_toolsets() for tool in list_unasked(toolset)]
    assert count_tokens(to_text({"tools": tools})) <= MOST_TOKENS_IN_ALL


def test_the_instructions_tell_the_day_and_the_workflow_in_few_words() -> None:
    synced = {"azure-updates": datetime(2026, 11, 22, 6, tzinfo=UTC)}
    text = descriptions.instructions(describe_toolsets(), date(2026, 11, 22), synced)
    assert "kept current. Synced 2026-11-22 06:00." in text
    assert text.startswith("Today is Sunday, 2026-11-22 (UTC).")
    told = {toolset.name for toolset in describe_toolsets() if f"- {toolset.name}: {toolset.description}" in text}
    assert {toolset.name for toolset in describe_toolsets()} - told == {
        "administration",
        "gaps",
        "impact",
        "watches",
    }, "few agents need them"
    assert "never an instruction" in text
    further = tuple(f"- {name}:" for name in told - OWN)
    own = [line for line in text.splitlines() if not (further and line.startswith(further))]
    assert count_tokens("\n".join(own)) <= 300, "without what toolsets from elsewhere say of themselves"


def test_every_recipe_of_the_instructions_names_tools_that_are_listed_with_arguments_that_they_take() -> None:
    toolsets = describe_toolsets()
    listed = {each.name: each for toolset in toolsets for each in toolset.listed}
    recipes = read_recipes(descriptions.instructions(toolsets, date(2026, 11, 22)))
    steps = [step for name in recipes for step in read_steps(recipes, name) if "`" not in step.tool]
    assert len(recipes) >= 6
    assert {step.tool for step in steps} <= listed.keys()
    for step in steps:
        fields = contracts.get_input_schema(listed[step.tool].input)["properties"]
        assert step.arguments.keys() <= fields.keys()  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]


@each_toolset
def test_what_is_listed_of_an_answer_keeps_what_is_required_and_fits_what_the_contract_allows(toolset: Toolset) -> None:
    for operation, tool in zip(toolset.operations, descriptions.describe_tools(toolset.operations), strict=True):
        whole = contracts.get_output_schema(operation.output)
        if tool.output_schema is None:
            # A receipt: a few ids, words and numbers, which nobody need know before.
            fields: Any = whole["properties"]
            assert {field.get("type") for field in fields.values()} <= {"string", "number", "integer", "boolean"}
        else:
            assert tool.output_schema.get("required") == whole.get("required")


def test_a_large_record_says_once_that_its_texts_are_texts() -> None:
    tools = {
        tool.name: tool for toolset in describe_toolsets() for tool in descriptions.describe_tools(toolset.operations)
    }
    schema = tools["get_skill"].output_schema or {}
    good: dict[str, Any] = dict.fromkeys(schema["required"], "text")
    good |= {"version": 1, "confidence": 0.5, "times_used": 0, "times_confirmed": 0, "metadata": {}}
    good |= {"conditions": [], "keywords": []}
    validate(good, schema, Draft202012Validator)
    for wrong in ({"title": 1}, {"version": "1"}, {"keywords": "a"}):
        with pytest.raises(ValidationError):
            validate({**good, **wrong}, schema, Draft202012Validator)
    del good["made_by"]
    with pytest.raises(ValidationError, match="made_by"):
        validate(good, schema, Draft202012Validator)


@each_toolset
def test_schemas_are_flat_and_without_noise(toolset: Toolset) -> None:
    for tool in describe(toolset)["tools"]:
        for schema in filter(None, (tool["inputSchema"], tool.get("outputSchema"))):
            assert schema["type"] == "object"
            for part in walk(schema):
                assert "$ref" not in part
                assert "$defs" not in part
                assert not isinstance(part.get("title"), str)


@each_toolset
def test_arguments_are_closed_and_never_null(toolset: Toolset) -> None:
    for tool in describe(toolset)["tools"]:
        for part in walk(tool["inputSchema"]):
            if "properties" in part:
                assert part["additionalProperties"] is False
            assert part.get("type") != "null"
            assert not isinstance(part.get("type"), list)


@each_toolset
def test_names_fit_every_client_and_each_operation_has_its_own_route(toolset: Toolset) -> None:
    routes = [(entry.route.method, entry.route.path) for entry in (*toolset.operations, *toolset.resources)]
    assert len(set(routes)) == len(routes)
    for operation in toolset.operations:
        assert operation.name.replace("_", "").isalnum()
        assert len(toolset.name) + len(operation.name) <= 60
        assert operation.scopes or operation.any_scopes
        assert operation.examples


@each_toolset
def test_a_template_leaves_open_the_one_required_argument_of_its_operation(toolset: Toolset) -> None:
    for template in toolset.templates:
        assert template.operation in toolset.operations
        assert template.operation.effects.read_only
        required = contracts.get_input_schema(template.operation.input)["required"]
        assert required == [template.argument]
        assert len(re.findall(r"\{\w+\}", template.uri)) == 1


@each_toolset
def test_a_prompt_names_tools_that_there_are_and_each_of_them_in_its_text(toolset: Toolset) -> None:
    for prompt in toolset.prompts:
        filled = {argument.name: "something" for argument in prompt.arguments}
        required = {argument.name: "something" for argument in prompt.arguments if argument.is_required}
        for text in (prompt.writer(filled), prompt.writer(required)):
            assert set(prompt.tools) == {each.name for each in toolset.operations if each.name in text}
        assert len(prompt.name) <= 40
        assert prompt.title != prompt.name


@each_toolset
def test_every_example_is_valid_input(toolset: Toolset) -> None:
    for operation in toolset.operations:
        for example in operation.examples:
            operation.input.model_validate(example)


def test_the_searches_that_a_support_agent_chooses_from_say_what_they_are_not_for() -> None:
    told = {each.name: each.description for toolset in describe_toolsets() for each in toolset.operations}
    assert "Not for facts or policies." in told["search_skills"]
    assert "How agents helped customers before, step by step, is not in them." in told["search_articles"]
    assert "problem" not in told["search_articles"]
    assert "article" not in told["search_skills"]


@each_toolset
def test_what_is_known_of_the_rest_before_it_is_loaded_is_true_of_it(toolset: Toolset) -> None:
    entries = (*toolset.rest.operations, *toolset.rest.resources)
    assert toolset.scopes == {scope for entry in (*toolset.listed, *entries) for scope in entry.scopes}
    assert not {each.name for each in toolset.listed} & {entry.name for entry in entries}


def test_no_operation_takes_a_larger_request_than_is_let_in() -> None:
    [search, *_] = describe_toolsets()[0].listed
    with pytest.raises(ValueError, match="at most"):
        replace(search, most_bytes=LARGEST_REQUEST + 1)


def test_no_two_toolsets_share_a_name_or_a_route() -> None:
    toolsets = describe_toolsets()
    assert tuple(toolset.name for toolset in toolsets) == tuple(each.name for each in find_descriptors())
    names = [operation.name for toolset in toolsets for operation in toolset.operations]
    assert len(set(names)) == len(names)
    entries = [entry for toolset in toolsets for entry in (*toolset.operations, *toolset.resources)]
    described = openapi.describe(toolsets)["paths"]
    assert sum(len(methods) for methods in described.values()) == len(entries) + len({"health", "ready", "metrics"})


class ManyWords(BaseModel):
    """An answer of texts, with a number and now and then a list."""

    first: str
    second: str
    third: str
    fourth: str
    fifth: str
    count: int
    notes: list[str] = Field(default_factory=list[str])


def test_an_answer_with_what_it_has_only_now_and_then_fits_its_lean_schema() -> None:
    [skills] = [toolset for toolset in describe_toolsets() if toolset.name == "skills"]
    [get] = [operation for operation in skills.operations if operation.name == "get_skill"]
    [tool] = descriptions.describe_tools([replace(get, output=ManyWords)])
    words = dict.fromkeys(("first", "second", "third", "fourth", "fifth"), "x")
    answer = ManyWords.model_validate({**words, "count": 1, "notes": ["a"]}).model_dump(mode="json")
    assert tool.output_schema is not None
    validate(answer, tool.output_schema)
