"""Arguments are of the types that the schemas say, on every face: read off every operation's schema."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from mcp.client import Client
from mcp_types import TextContent

from refdesk.app import Desk, open_desk
from refdesk.core import contracts
from refdesk.core.operations import Operation
from refdesk.errors import InvalidInputError
from refdesk.factories.toolsets import describe_toolsets, load_toolsets
from refdesk.server import calls, json_types
from refdesk.server.principals import local_principal
from tests.server.conftest import connect, open_http
from tests.server.echo import make_settings

OPERATIONS = [operation for toolset in describe_toolsets() for operation in toolset.operations]
SAMPLES: dict[str, object] = {
    "string": 5,
    "integer": "5",
    "number": "0.5",
    "boolean": "true",
    "array": "x",
    "object": ["x"],
}
"""For each type a value that a careless reader would take for one."""

MORE: dict[str, tuple[object, ...]] = {
    "string": (True, 0.5, ["x"], {}),
    "integer": (True, 5.5, [5], "5.0"),
    "number": (True, "1e0", [0.5]),
    "boolean": (1, 0, "false", "yes"),
    "array": ({}, 5, True),
    "object": ("{}", 5, True),
}


def list_places(
    schema: Mapping[str, Any], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every place of an input that has a type, and that type."""
    if path:
        yield path, schema["type"]
    for name, inner in schema.get("properties", {}).items():
        yield from list_places(inner, (*path, name))
    if "items" in schema:
        yield from list_places(schema["items"], (*path, 0))


def put(
    arguments: dict[str, Any], schema: Mapping[str, Any], path: tuple[str | int, ...], value: object
) -> dict[str, Any]:
    """Return the arguments with a value at a place; what is missing on the way is made."""
    changed: Any = deepcopy(arguments)
    at = changed
    for part, following in zip(path, (*path[1:], None), strict=True):
        inner: Any = value if following is None else [] if following == 0 else {}
        if isinstance(part, int):
            at.append(inner)
        elif following is None or following == 0 or not isinstance(at.get(part), dict):
            at[part] = inner
        at = at[part]
    return changed


def list_cases() -> Iterator[Any]:
    for operation in OPERATIONS:
        schema = contracts.get_input_schema(operation.input)
        for path, kind in list_places(schema):
            where = ".".join(map(str, path))
            yield pytest.param(operation, path, kind, id=f"{operation.name}-{where}")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Desk]:
    folder: Path = tmp_path_factory.mktemp("desk")
    settings = make_settings(folder, store="memory://", tools="all")
    async with open_desk(settings, load_toolsets(), in_background=False) as opened:
        yield opened


@pytest.fixture(scope="module")
async def faces(desk: Desk) -> AsyncGenerator[tuple[httpx2.AsyncClient, Client]]:
    local = local_principal(desk.settings, desk.toolsets, "tester")
    principal = replace(local, scopes=local.scopes | {"admin"})
    async with open_http(desk, principal) as rest, connect(desk, "2026-07-28", principal) as mcp:
        yield rest, mcp


async def ask_rest(rest: httpx2.AsyncClient, operation: Operation, arguments: dict[str, Any]) -> tuple[int, str]:
    path, left = operation.route.path, dict(arguments)
    for name in [name for name in left if f"{{{name}}}" in path]:
        path = path.replace(f"{{{name}}}", str(left.pop(name)))
    if operation.route.method == "GET":
        answer = await rest.get(path, params=left)
    else:
        answer = await rest.post(path, json=left)
    return answer.status_code, json.dumps(answer.json())


async def ask_mcp(mcp: Client, operation: Operation, arguments: dict[str, Any]) -> str:
    result = await mcp.call_tool(operation.name, arguments)
    assert result.is_error
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize(("operation", "path", "kind"), list(list_cases()))
async def test_a_value_of_another_type_is_refused_and_named(
    faces: tuple[httpx2.AsyncClient, Client], operation: Operation, path: tuple[str | int, ...], kind: str
) -> None:
    rest, mcp = faces
    schema = contracts.get_input_schema(operation.input)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
    for value in (SAMPLES[kind], *MORE[kind]):
        arguments = put(dict(operation.examples[0]), schema, path, value)
        told = await ask_mcp(mcp, operation, arguments)
        assert f"`{where}` must be" in told, value
        # What is in an address is text by its nature.
        if operation.route.method == "POST" and f"{{{path[0]}}}" not in operation.route.path:
            assert (await ask_rest(rest, operation, arguments))[0] == 400
            assert f"`{where}` must be" in (await ask_rest(rest, operation, arguments))[1]


async def test_parameters_in_an_address_are_read_strictly(faces: tuple[httpx2.AsyncClient, Client]) -> None:
    rest, _ = faces
    id = (await rest.post("/knowledge", json={"title": "One", "body": "abcdef"})).json()["id"]
    assert (await rest.get(f"/knowledge/{id}", params={"offset": "2"})).json()["body"] == "cdef"
    for text in ("2.0", " 2", "+2", "02", "0x2", "2_0", "٢", "true", "", "1e0"):
        answer = await rest.get(f"/knowledge/{id}", params={"offset": text})
        assert (answer.status_code, "`offset` must be a whole number" in answer.text) == (400, True), text


async def test_whole_numbers_instants_and_names_are_those_of_the_schema(
    faces: tuple[httpx2.AsyncClient, Client],
) -> None:
    rest, _ = faces
    whole = await rest.post("/knowledge", json={"title": "One", "body": "abc", "confidence": 50.0})
    assert (whole.status_code, (await rest.get(f"/knowledge/{whole.json()['id']}")).json()["confidence"]) == (200, 50)
    for instant in ("4102444800", "4102444800.5", "P1D", ""):
        refused = await rest.post("/knowledge", json={"title": "One", "body": "abc", "expiresAt": instant})
        assert (refused.status_code, "`expiresAt`" in refused.text) == (400, True), instant
    spelt = await rest.post("/knowledge/search", json={"query": "x", "min_score": 0.5})
    assert (spelt.status_code, "did you mean `minScore`" in spelt.text) == (400, True)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3), st.lists)
)
def test_types_are_those_that_an_independent_validator_finds(value: Any) -> None:  # noqa: ANN401 - any JSON value
    for kind in SAMPLES:
        faults = list(json_types.find_faults(value, {"type": kind}))
        problems = list(Draft7Validator({"type": kind}).iter_errors(value))  # pyright: ignore[reportUnknownMemberType]
        assert value is None or bool(problems) is bool(faults), (kind, value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"confidence": 0.9}, "`confidence` must be a whole number, in percent, such as 90."),
        ({"confidence": "90"}, "`confidence` must be a whole number, in percent, such as 90, without quotes."),
        ({"tags": "refunds"}, '`tags` must be a list, such as ["refunds", "policy"].'),
        ({"clientToken": "mine"}, "`clientToken` is not a UUID: make a new one for each thing that you write."),
    ],
)
def test_an_error_says_what_to_send_instead(wrong: dict[str, object], told: str) -> None:
    [store] = [operation for operation in OPERATIONS if operation.name == "store_knowledge"]
    with pytest.raises(InvalidInputError) as refused:
        calls.validate(store, {"title": "Refunds", "body": "Up to 500 EUR.", **wrong})
    assert refused.value.message == told
