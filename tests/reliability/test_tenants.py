"""Another org's ids, tags, tokens, counts and errors cannot be told from things that do not exist, on any transport."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.core.writing import idempotency, quotas
from refdesk.model import Collection, FindRequest, Found, Metadata, MetadataKey, Principal
from refdesk.protocols import Store
from refdesk.server import answers
from refdesk.server.calls import Caller
from tests.reliability.delegates import DelegatingTransaction
from tests.reliability.faults import WithoutTenants, within
from tests.reliability.worlds import ALL_SCOPES, OTHERS, OWN, World, list_calls, open_world
from tests.server.conftest import open_http
from tests.server.test_keys import bearer, connect
from tests.server.transports import Reach, serve

SOAK = os.environ.get("REFDESK_SOAK") == "1"
Call: TypeAlias = tuple[str, dict[str, Any]]
Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[object]]
ERAS = ("legacy", "2026-07-28")
OTHER_WAYS = ("sse", "stdio")
TRANSPORTS = ("handlers", "rest", *ERAS, *OTHER_WAYS)
TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="knowledge://{id}")


@asynccontextmanager
async def open_transport(world: World, transport: str, org: str, agent: str, *scopes: str) -> AsyncGenerator[Ask]:
    """Yield what asks one operation through a transport, as a caller of an org, and returns all that comes back."""
    if transport == "handlers":
        caller = Caller(world.desk, Principal(org, agent, frozenset(scopes or ALL_SCOPES)), "test")
        yield lambda name, arguments: ask_handler(world, caller, name, arguments)
        return
    key = await world.make_key(org, agent, *scopes)
    if transport in OTHER_WAYS:
        principal = Principal(org, agent, frozenset(scopes or ALL_SCOPES))
        async with open_other_way(world, transport, principal, key) as client:
            yield lambda name, arguments: ask_mcp(client, name, arguments)
        return
    if transport == "rest":
        async with open_http(world.desk, None) as client:
            client.headers.update(bearer(key))
            yield lambda name, arguments: ask_rest(world, client, name, arguments)
        return
    async with connect(world.desk, key, transport) as client:
        yield lambda name, arguments: ask_mcp(client, name, arguments)


@asynccontextmanager
async def open_other_way(world: World, transport: str, principal: Principal, key: str) -> AsyncGenerator[Client]:
    """Yield a client over a stream of events with a key, or over stdio, where whoever starts the process is known."""
    if transport == "stdio":
        async with Reach(world.desk, "", principal).connect("stdio legacy") as client:
            yield client
        return
    async with (
        serve(world.desk, None) as reach,
        Client(sse_client(f"{reach.url}/sse", headers=bearer(key)), mode="legacy") as client,
    ):
        yield client


async def ask_mcp(client: Client, name: str, arguments: dict[str, Any]) -> object:
    try:
        answer = await client.call_tool(name, arguments)
    except MCPError as error:
        return str(error)
    return answer.model_dump(mode="json")


async def ask_handler(world: World, caller: Caller, name: str, arguments: dict[str, Any]) -> object:
    try:
        return (await caller.run(world.operations[name], arguments)).value
    except errors.RefdeskError as error:
        return answers.error_to_json(error, NESTED)


async def ask_rest(world: World, client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]) -> object:
    route, rest = world.operations[name].route, dict(arguments)
    path = re.sub(r"\{(\w+)\}", lambda match: str(rest.pop(match[1])), route.path)
    answer = await client.request(route.method, path, json=rest if route.method == "POST" else None)
    return [answer.status_code, {**answer.headers, "content-length": ""}, answer.json()]


async def listen(world: World, transport: str) -> list[str]:
    """Return all that an org hears in a world, call by call."""
    calls = [call for call in list_calls(world.ids, world.own) if call[0] in world.operations]
    assert {name for name, _ in calls} == world.operations.keys(), "say here how the new operation may leak"
    async with open_transport(world, transport, OWN, "zoe") as ask:
        return [
            f"{name} {arguments}: {world.normalise(await ask(name, arguments))}"
            for name, arguments in thin_out(calls, transport)
        ]


def thin_out(calls: Sequence[Call], transport: str) -> list[Call]:
    """Return what is called over a transport: some of each operation where only the transport is another one."""
    if SOAK or transport not in OTHER_WAYS:
        return [*calls]
    first = {name: index for index, (name, _) in reversed([*enumerate(calls)])}
    return [call for index, call in enumerate(calls) if first[call[0]] == index or index % 4 == 0]


async def find_differences(
    folder: Path, transport: str, wrap: Callable[[Store], Store] = lambda store: store
) -> list[str]:
    """Return the calls by which an org can tell whether the others are there."""
    async with open_world(folder / "full", wrap=wrap) as world:
        full, ids = await listen(world, transport), world.ids
    async with open_world(folder / "empty", absent=ids, wrap=wrap) as world:
        empty = await listen(world, transport)
    assert len(full) == len(empty) > 50
    return [f"{there}\n{here}" for there, here in zip(full, empty, strict=True) if there != here]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_org_hears_the_same_whether_or_not_others_are_there(tmp_path: Path, transport: str) -> None:
    assert await find_differences(tmp_path, transport) == []


class WithLeakingSearch(WithoutTenants):
    """Searches the others' notes too."""

    async def find(self, request: FindRequest) -> Found:
        own = await super().find(request)
        others = await super().find(replace(request, collection=Collection(OTHERS, request.collection.toolset)))
        return replace(own, candidates=(*own.candidates, *others.candidates))


class WithSharedRecords(DelegatingTransaction):
    """Keeps the tokens and counts of every org under one."""

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        return await super().get_metadata(_without_org(key))

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await super().put_metadata([replace(each, key=_without_org(each.key)) for each in records])


def _without_org(key: MetadataKey) -> MetadataKey:
    if key.kind == idempotency.KIND:
        operation, _, token = key.name.split(":")
        return MetadataKey("all", key.kind, f"{operation}::{token}")
    return replace(key, org="all") if key.kind == quotas.KIND else key


@pytest.mark.parametrize(
    ("wrap", "telltale"),
    [
        (WithoutTenants, "get_knowledge"),
        (WithLeakingSearch, "search_knowledge"),
        (within(WithSharedRecords), "store_knowledge"),
    ],
)
async def test_the_proof_catches_what_lets_another_org_through(
    tmp_path: Path, wrap: Callable[[Store], Store], telltale: str
) -> None:
    different = await find_differences(tmp_path, "handlers", wrap)
    assert telltale in {difference.split()[0] for difference in different}


async def look_around(world: World) -> list[str]:
    """Return all that an org sees besides operations: pages, health, lists, addresses, completions."""
    key = await world.make_key(OWN, "zoe")
    seen: list[object] = []
    async with open_http(world.desk, None) as client:
        for path in ("/health", "/openapi.json", "/", "/docs"):
            seen += [(await client.get(path, headers=headers)).text for headers in ({}, bearer(key))]
    async with connect(world.desk, key, "2026-07-28") as client:
        seen += [(await client.list_tools()).model_dump(mode="json")]
        seen += [(await client.list_resources()).model_dump(mode="json")]
        seen += [await read_address(client, f"knowledge://{id}") for id in world.ids.values()]
        for written in ("", "vault", "hours", *(id[:13] for id in world.ids.values())):
            completion = await client.complete(TEMPLATE, {"name": "id", "value": written})
            seen.append(completion.completion.model_dump(mode="json"))
    return [world.normalise(each) for each in seen]


async def read_address(client: Client, uri: str) -> object:
    try:
        return (await client.read_resource(uri)).model_dump(mode="json")
    except MCPError as error:
        return error.error.model_dump(mode="json")


async def test_an_org_sees_the_same_whether_or_not_others_are_there(tmp_path: Path) -> None:
    async with open_world(tmp_path / "full") as world:
        there, ids = await look_around(world), world.ids
    async with open_world(tmp_path / "empty", absent=ids) as world:
        here = await look_around(world)
    assert there == here


async def hear_refusals(world: World, transport: str, org: str, agent: str, *scopes: str) -> dict[str, set[str]]:
    """Return, for each operation, everything it says to a caller when asked for what there is and what there is not."""
    said: dict[str, set[str]] = {}
    nothing = {kind: id[:-4] + "ffff" for kind, id in world.ids.items()}
    async with open_transport(world, transport, org, agent, *scopes) as ask:
        for ids in (world.ids, nothing):
            for name, arguments in thin_out(list_calls(ids, world.own), transport):
                if name in world.operations:
                    answer = world.normalise(await ask(name, arguments))
                    said.setdefault(name, set()).add(answer.replace("<new>", "<id>"))
    return said


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_without_the_scope_an_operation_says_one_and_the_same_thing(tmp_path: Path, transport: str) -> None:
    async with open_world(tmp_path / "world") as world:
        said = await hear_refusals(world, transport, OTHERS, "ann", "articles:read")
    for name, texts in said.items():
        if name == "search_everything":
            answered = {text for text in texts if "PERMISSION_DENIED" not in text}
            assert answered < texts
            assert all(re.search(r'results\\?": ?\[\]', text) for text in answered), answered
            assert all(text.count("needs the scope") >= 3 for text in answered), answered
        elif "article" not in name and "articles:read" not in world.operations[name].any_scopes:
            assert len(texts) == 1, name
            listed = {each.name for toolset in world.desk.toolsets for each in toolset.listed}
            is_offered = name in listed or transport not in (*ERAS, *OTHER_WAYS)
            refusal = r"needs (the scope|one of the scopes) " if is_offered else "Unknown tool"
            assert all(re.search(refusal, text) for text in texts), texts


async def test_another_agent_of_the_org_reads_but_supersedes_only_its_own(tmp_path: Path) -> None:
    async with open_world(tmp_path / "world") as world:
        bob = Caller(world.desk, Principal(OTHERS, "bob", frozenset({"knowledge:read", "knowledge:write"})), "test")
        for kind in ("current", "old", "head", "expired"):
            entry = await bob.run(world.operations["get_knowledge"], {"id": world.ids[kind]})
            assert entry.value["author"] == "ann"
        foreign = {"oldId": world.ids["current"], "newId": world.ids["head"]}
        with pytest.raises(errors.PermissionDeniedError):
            await bob.run(world.operations["supersede_knowledge"], foreign)
