"""Who may replace whose entry, and what is on record of who may not, through keys over REST and MCP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest
from anyio.to_thread import run_sync
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from refdesk.app import Desk, open_desk
from refdesk.core.writing import audit
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import SHARED_ORG
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_keys import bearer, connect, make_key
from tests.test_cli import refdesk

FACES = ("rest", "legacy", "2026-07-28")
AGENT = ("knowledge:read", "knowledge:write")
Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[tuple[str, dict[str, Any]]]]
"""Returns the code of the error, or an empty text, and the answer."""


@asynccontextmanager
async def open_own(folder: Path, **chosen: object) -> AsyncGenerator[Desk]:
    settings = make_settings(folder, store=f"sqlite:///{folder / 'desk.sqlite3'}", tools="all", **chosen)
    async with open_desk(settings, load_toolsets(), in_background=False) as desk:
        yield desk


@asynccontextmanager
async def call_as(desk: Desk, face: str, agent: str, *scopes: str, org: str = "acme") -> AsyncGenerator[Ask]:
    """Yield what calls an operation with a key of this agent's."""
    key = await make_key(desk, agent, org, scopes)
    if face == "rest":
        async with open_http(desk, None) as client:
            client.headers.update(bearer(key))
            yield lambda name, arguments: ask_rest(desk, client, name, arguments)
        return
    async with connect(desk, key, face) as client:

        async def ask(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            try:
                result = await client.call_tool(name, arguments)
            except MCPError as error:
                return error.error.data["error"]["code"], error.error.data
            [content] = result.content
            assert isinstance(content, TextContent)
            answer = json.loads(content.text)
            return answer["error"]["code"] if result.is_error else "", answer

        yield ask


async def ask_rest(
    desk: Desk, client: httpx2.AsyncClient, name: str, arguments: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    [operation] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == name]
    path, body = operation.route.path, dict(arguments)
    for field in [field for field in body if f"{{{field}}}" in path]:
        path = path.replace(f"{{{field}}}", str(body.pop(field)))
    is_read = operation.route.method == "GET"
    answer = await client.request(
        operation.route.method, path, params=body if is_read else None, json=None if is_read else body
    )
    value = answer.json()
    error = value.get("error", "")
    return (error if isinstance(error, str) else error["code"]), value


async def list_refusals(desk: Desk, org: str = "acme") -> list[dict[str, Any]]:
    store = (await desk.get_base()).knowledge_base.store
    assert (await audit.verify(store, org)).broken is None
    return [dict(entry.act) for entry in await store.get_audit(org) if str(entry.act["outcome"]).startswith("refused")]


async def store(ask: Ask, title: str) -> str:
    return str((await ask("store_knowledge", {"title": title, "body": "Text."}))[1]["id"])


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("rule", ["either", "own"])
async def test_who_may_supersede_is_what_the_setting_says(tmp_path: Path, face: str, rule: str) -> None:
    async with (
        open_own(tmp_path, supersede=rule) as desk,
        call_as(desk, face, "ann", *AGENT) as ann,
        call_as(desk, face, "bob", *AGENT) as bob,
        call_as(desk, face, "cleo", *AGENT, "knowledge:write_others") as cleo,
    ):
        old, own, other = (
            await store(ann, "Limit is 300"),
            await store(bob, "Limit is 500"),
            await store(ann, "Limit is 400"),
        )
        code, answer = await bob("supersede_knowledge", {"oldId": old, "newId": own})
        refused = await list_refusals(desk)
        if rule == "either":
            assert (code, answer["headId"], refused) == ("", own, [])
        else:
            assert (code, [(each["agent"], each["action"], each["outcome"]) for each in refused]) == (
                "PERMISSION_DENIED",
                [("bob", "supersede_knowledge", "refused: PERMISSION_DENIED")],
            )
            assert (await ann("get_knowledge", {"id": old}))[1]["headId"] == old
        assert (await cleo("supersede_knowledge", {"oldId": other, "newId": own}))[0] == ""
        found = (await ann("search_knowledge", {"query": "limit 300"}))[1]["results"]
        assert (old in {each["id"] for each in found}) is (rule == "own")


@pytest.mark.parametrize("face", FACES)
async def test_a_missing_scope_is_on_record_with_who_and_what(tmp_path: Path, face: str) -> None:
    async with open_own(tmp_path) as desk, call_as(desk, face, "reader", "knowledge:read") as ask:
        assert (await ask("store_knowledge", {"title": "Hidden words", "body": "x"}))[0] == "PERMISSION_DENIED"
        assert (await ask("search_skills", {"query": "hidden words"}))[0] in ("PERMISSION_DENIED", "Forbidden")
        refused = await list_refusals(desk)
        keys = await (await desk.get_base()).keys.list("acme")
    assert [(each["agent"], each["action"], each["outcome"]) for each in refused] == [
        ("reader", "store_knowledge", "refused: PERMISSION_DENIED"),
        ("reader", "search_skills", "refused: PERMISSION_DENIED"),
    ]
    assert {each["transport"] for each in refused} == {"rest" if face == "rest" else "mcp"}
    assert {each["credential"] for each in refused} == {keys[0].id}
    assert all(each["address"] for each in refused)
    assert "hidden words" not in json.dumps(refused).lower()


async def test_what_is_no_operation_is_on_record_too(tmp_path: Path) -> None:
    async with open_own(tmp_path) as desk, open_http(desk, None) as client:
        key = await make_key(desk, "reader", "acme", ("skills:read",))
        for path in ("/azure-updates/guide", "/metrics"):
            assert (await client.get(path, headers=bearer(key))).status_code == 403
        async with connect(desk, key, "2026-07-28") as mcp:
            for uri in ("azure-updates://guide", "knowledge://01930000-0000-7000-8000-000000000001"):
                with pytest.raises(MCPError):
                    await mcp.read_resource(uri)
        # What is refused again within a minute is counted, not written.
        actions = [each["action"] for each in await list_refusals(desk)]
    assert actions == ["azure-updates://guide", "metrics", "get_knowledge"]


async def test_a_credential_that_opens_nothing_is_on_record_without_itself(tmp_path: Path) -> None:
    secret = "refdesk_0123456789-canary"
    async with open_own(tmp_path) as desk, open_http(desk, None) as client:
        for _ in range(5):
            assert (await client.post("/mcp", headers=bearer(secret), json={})).status_code == 401
        assert (await client.get("/knowledge/x")).status_code == 401
        [refused] = await list_refusals(desk, SHARED_ORG)
    assert (refused["action"], refused["outcome"]) == ("authenticate", "refused: UNAUTHENTICATED")
    assert "canary" not in json.dumps(refused)
    assert "agent" not in refused, "nobody is known"
    place = f"sqlite:///{tmp_path / 'desk.sqlite3'}"
    shown = await run_sync(lambda: refdesk(tmp_path, ["audit", "show", "--refused"], REFDESK_STORE=place))
    assert (shown.exit_code, "authenticate REFUSED: UNAUTHENTICATED" in shown.output) == (0, True), shown.output


@pytest.mark.parametrize("face", FACES)
async def test_a_server_that_only_reads_says_so_and_puts_it_on_record(tmp_path: Path, face: str) -> None:
    async with open_own(tmp_path, read_only=True) as desk, call_as(desk, face, "ann", *AGENT) as ann:
        code, answer = await ann("store_knowledge", {"title": "One", "body": "x"})
        assert (code, "only reads" in json.dumps(answer)) == ("PERMISSION_DENIED", True)
        assert [each["action"] for each in await list_refusals(desk)] == ["store_knowledge"]
