"""What every tool and resource that is served must hold, read off the table itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refdesk.core import contracts
from refdesk.core.operations import Toolset
from refdesk.discovery import find_descriptors
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import descriptions, openapi

SNAPSHOTS = Path(__file__).parent / "snapshots"
MOST_BYTES = 6000
"""Of one toolset's tools/list as compact JSON: about 1,500 tokens."""

each_toolset = pytest.mark.parametrize("toolset", describe_toolsets(), ids=lambda toolset: toolset.name)


def describe(toolset: Toolset) -> dict[str, Any]:
    tools = [descriptions.describe_tool(operation) for operation in toolset.operations]
    resources = [descriptions.describe_resource(resource) for resource in toolset.resources]
    templates = [descriptions.describe_template(template) for template in toolset.templates]
    return {
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
        "resources": [resource.model_dump(mode="json", by_alias=True, exclude_none=True) for resource in resources],
        "templates": [template.model_dump(mode="json", by_alias=True, exclude_none=True) for template in templates],
    }


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
    listed = json.dumps(describe(toolset)["tools"], separators=(",", ":"), ensure_ascii=False)
    assert len(listed.encode()) < MOST_BYTES


@each_toolset
def test_schemas_are_flat_and_without_noise(toolset: Toolset) -> None:
    for tool in describe(toolset)["tools"]:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
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
        assert re.findall(r"\{(\w+)\}", template.uri) == required


@each_toolset
def test_every_example_is_valid_input(toolset: Toolset) -> None:
    for operation in toolset.operations:
        for example in operation.examples:
            operation.input.model_validate(example)


def test_no_two_toolsets_share_a_name_or_a_route() -> None:
    toolsets = describe_toolsets()
    assert tuple(toolset.name for toolset in toolsets) == tuple(each.name for each in find_descriptors())
    names = [operation.name for toolset in toolsets for operation in toolset.operations]
    assert len(set(names)) == len(names)
    entries = [entry for toolset in toolsets for entry in (*toolset.operations, *toolset.resources)]
    described = openapi.describe(toolsets)["paths"]
    assert sum(len(methods) for methods in described.values()) == len(entries) + len({"health", "ready", "metrics"})
