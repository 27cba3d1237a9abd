"""What the OpenAPI document says of requests is what REST takes and what it refuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest

from refdesk import errors
from refdesk.app import open_desk
from refdesk.core.contracts import EXACT
from refdesk.core.operations import Operation
from refdesk.factories.toolsets import describe_toolsets, load_toolsets
from refdesk.server import calls, openapi
from refdesk.server.principals import local_principal
from refdesk.server.request_schemas import get_body_schema
from tests.server.conftest import open_http
from tests.server.echo import make_settings

OPERATIONS = [operation for toolset in describe_toolsets() for operation in toolset.operations]


def list_fields() -> Iterator[Any]:
    for operation in OPERATIONS:
        schema: Any = get_body_schema(operation.input)
        for name in schema["properties"]:
            yield pytest.param(operation, (name,), id=f"{operation.name}-{name}")
            for inner in schema["properties"][name].get("properties", {}):
                yield pytest.param(operation, (name, inner), id=f"{operation.name}-{name}-{inner}")


def is_described(operation: Operation, arguments: dict[str, Any]) -> bool:
    try:
        jsonschema.validate(arguments, get_body_schema(operation.input), jsonschema.Draft202012Validator)
    except jsonschema.ValidationError:
        return False
    return True


def is_taken(operation: Operation, arguments: dict[str, Any]) -> bool:
    try:
        calls.validate(operation, arguments)
    except errors.InvalidInputError:
        return False
    return True


@pytest.mark.parametrize(("operation", "path"), list(list_fields()))
def test_null_is_among_the_types_exactly_where_it_is_taken(operation: Operation, path: tuple[str, ...]) -> None:
    whole = {"taskRef": {"taskId": "T-1", "kind": "produced"}}
    arguments = {**dict(operation.examples[0]), path[0]: None}
    if len(path) == 2:
        arguments[path[0]] = {**dict(whole.get(path[0], {})), path[1]: None}
    if operation.name == "erase":
        arguments = {path[0]: None}
    assert is_described(operation, arguments) == is_taken(operation, arguments)


@pytest.mark.parametrize(
    "arguments", [{}, {"entry": "a", "agent": "b"}, {"entry": "a", "agent": None}, {"org": "acme"}]
)
def test_what_erases_names_one_thing_by_its_description_and_in_fact(arguments: dict[str, Any]) -> None:
    [erase] = [operation for operation in OPERATIONS if operation.name == "erase"]
    assert is_described(erase, arguments) == is_taken(erase, arguments) == (arguments == {"org": "acme"})


def test_blank_texts_are_described_as_refused_and_agents_are_spared_how() -> None:
    [store] = [operation for operation in OPERATIONS if operation.name == "store_knowledge"]
    assert not is_described(store, {"title": " \n", "body": "x"})
    assert "pattern" not in str(calls.get_schema(store.input))
    assert EXACT not in str(openapi.describe(describe_toolsets()))


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    settings = make_settings(tmp_path, store="memory://", tools="all")
    async with open_desk(settings, load_toolsets(), in_background=False) as desk:
        local = local_principal(desk.settings, desk.toolsets, "tester")
        async with open_http(desk, replace(local, scopes=local.scopes | {"admin"})) as client:
            yield client


@pytest.mark.parametrize("path", ["/knowledge/search", "/knowledge/import"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_an_address_of_its_own_is_never_read_as_an_id(rest: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await rest.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "takes POST" in answer.json()["error"]["message"]


async def test_a_whole_number_in_an_address_may_be_as_large_as_in_a_body(rest: httpx2.AsyncClient) -> None:
    stored = (await rest.post("/knowledge", json={"title": "A note", "body": "Of few words."})).json()
    beyond = str(10**30)
    answer = await rest.get(f"/knowledge/{stored['id']}", params={"offset": beyond, "chainOffset": beyond})
    assert (answer.status_code, answer.json()["body"]) == (200, "")


async def test_what_no_engine_can_count_to_is_refused_by_name(rest: httpx2.AsyncClient) -> None:
    answer = await rest.get("/audit/entries", params={"offset": str(10**30)})
    assert (answer.status_code, answer.json()["error"]["details"]) == (400, {"fields": ["offset"]})
    assert (await rest.get("/audit/entries", params={"offset": str(2**53 - 1)})).status_code == 200
