"""Every error of every operation says what to do next; `tests/meta/test_error_texts.py` reads those in the source."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import replace
from typing import Any, Never, cast

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from refdesk import errors
from refdesk.core import contracts
from refdesk.core.operations import Operation
from refdesk.model import Principal
from refdesk.server.calls import Caller
from tests.meta.error_texts import says_what_to_do
from tests.reliability.worlds import ALL_SCOPES, OWN, World, open_world
from tests.server.test_keys import connect

UNKNOWN = "01930000-0000-7000-8000-00000000dead"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    assert anyio_backend == "asyncio"
    async with open_world(tmp_path_factory.mktemp("errors")) as world:
        yield world


async def test_every_error_of_every_operation_says_what_to_do(world: World) -> None:
    heard = set[tuple[str, str]]()
    for scopes in (ALL_SCOPES, ("metrics:read",)):
        caller = Caller(world.desk, Principal(OWN, "zoe", frozenset(scopes)), "test")
        async with connect(world.desk, await world.make_key(OWN, "zoe", *scopes), "2026-07-28") as client:
            listed = {each.name for toolset in world.desk.toolsets for each in toolset.listed}
            for operation in world.operations.values():
                for arguments in make_wrong(operation):
                    if operation.name in listed:
                        text = await hear_over_mcp(client, operation, arguments)
                    else:
                        text = await hear(caller, operation, arguments)
                    heard.add((operation.name, text))
    heard = {(name, text) for name, text in heard if text}
    assert {name for name, _ in heard} == world.operations.keys(), "each operation refuses something"
    assert len(heard) > 200
    assert [(name, text) for name, text in heard if not says_what_to_do(text)] == []


async def test_a_bare_error_of_one_operation_is_found_out(world: World) -> None:
    async def refuse(context: object, asked: object) -> Never:
        raise errors.NotFoundError("There is no such thing.")

    planted = replace(world.operations["get_knowledge"], handler=refuse)
    caller = Caller(world.desk, Principal(OWN, "zoe", frozenset(ALL_SCOPES)), "test")
    heard = {await hear(caller, planted, arguments) for arguments in make_wrong(planted)}
    assert [text for text in heard if text and not says_what_to_do(text)] == ["There is no such thing."]


async def hear(caller: Caller, operation: Operation, arguments: dict[str, Any]) -> str:
    """Return the message of the error that a call ends with; nothing where it ends well."""
    try:
        await caller.run(operation, arguments)
    except errors.RefdeskError as error:
        return error.message
    return ""


def make_wrong(operation: Operation) -> Iterator[dict[str, Any]]:
    """Yield arguments of which one is wrong: unknown, missing, of another type or form, out of range, or of nothing."""
    schema = cast("dict[str, Any]", contracts.get_input_schema(operation.input))
    right = dict(operation.examples[0])
    yield {**right, "no_such_argument": 1}
    for name in schema.get("required", ()):
        yield {key: value for key, value in right.items() if key != name}
    for name, field in schema["properties"].items():
        yield from ({**right, name: value} for value in spoil(field))


def spoil(field: Mapping[str, Any]) -> list[object]:
    """Return values that an argument may not have, or whose thing is not there."""
    kind = field.get("type")
    if kind == "object":
        inner = field.get("properties", {})
        return [7, {"no_such_filter": 1}, *({name: value} for name, part in inner.items() for value in spoil(part))]
    if kind == "array":
        return ["text", *([value] for value in spoil(field.get("items", {}))), ["x"] * 2000]
    if kind in ("integer", "number"):
        return ["many", -1, 10**12, 0.5]
    return [7, "", " ", "x" * 100_000, "no such thing", UNKNOWN, "2026-13-45", "\x00", "null"]


async def hear_over_mcp(client: Client, operation: Operation, arguments: dict[str, Any]) -> str:
    try:
        answer = await client.call_tool(operation.name, arguments)
    except MCPError as error:
        return error.message
    if not answer.is_error:
        return ""
    said = json.loads("".join(part.text for part in answer.content if isinstance(part, TextContent)))
    return str(said["detail"] if "detail" in said else said["error"]["message"])
