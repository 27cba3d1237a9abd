"""The Salesforce session that a request carries, over REST and MCP: each caller is answered as its own user."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_keys import make_key

NOBODY = Principal("local", "nobody", frozenset({"articles:read"}))
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def desk(tmp_path: Path, emulator: RunningEmulator) -> AsyncGenerator[Desk]:
    await emulator.reset()
    await emulator.set_faults([])
    await emulator.set_users({"ann-session": {"products": ["Climate__c"]}, "bob-session": {}})
    async with open_help_desk(tmp_path, emulator) as opened:
        yield opened
    await emulator.reset()


@asynccontextmanager
async def open_help_desk(home: Path, emulator: RunningEmulator, **chosen: object) -> AsyncGenerator[Desk]:
    settings = make_settings(
        home,
        salesforce_instance_url=emulator.url,
        salesforce_client_id=emulator.client_id,
        salesforce_client_secret=SecretStr(emulator.client_secret),
        **chosen,
    )
    async with open_desk(settings, load_toolsets(["salesforce-knowledge"], settings), in_background=False) as opened:
        yield opened


async def ask(client: httpx2.AsyncClient, key: str | None, session: str, *, over_mcp: bool) -> dict[str, Any]:
    """The answer of a search, or its error."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"X-Salesforce-Token": session} if session else {}
    asked: dict[str, Any] = {"query": "the", "limit": 25}
    if not over_mcp:
        return (await client.post("/articles/search", json=asked, headers=headers)).json()
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "search_articles",
            "arguments": asked,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    more = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search_articles"}
    reply = await client.post("/mcp", json=call, headers=headers | MCP_HEADERS | more)
    assert reply.status_code == 200, reply.text
    return json.loads(reply.json()["result"]["content"][0]["text"])


async def search(client: httpx2.AsyncClient, key: str | None, session: str, *, over_mcp: bool) -> set[str]:
    return {article["id"] for article in (await ask(client, key, session, over_mcp=over_mcp))["articles"]}


@pytest.mark.parametrize("over_mcp", [False, True])
@pytest.mark.parametrize("with_key", [False, True])
async def test_each_request_is_answered_as_the_user_whose_session_it_carries(
    desk: Desk, *, with_key: bool, over_mcp: bool
) -> None:
    key = await make_key(desk) if with_key else None
    async with open_http(desk, None if with_key else NOBODY) as client:
        whole = await search(client, key, "", over_mcp=over_mcp)
        of_ann = await search(client, key, "ann-session", over_mcp=over_mcp)
        assert of_ann != whole
        assert await search(client, key, "bob-session", over_mcp=over_mcp) == whole
        assert await search(client, key, "ann-session", over_mcp=over_mcp) == of_ann
        assert await search(client, key, "", over_mcp=over_mcp) == whole


@pytest.mark.parametrize("over_mcp", [False, True])
@pytest.mark.parametrize("with_key", [False, True])
async def test_a_session_that_is_not_good_is_refused_without_being_shown(
    desk: Desk, *, with_key: bool, over_mcp: bool
) -> None:
    key = await make_key(desk) if with_key else None
    async with open_http(desk, None if with_key else NOBODY) as client:
        told = await ask(client, key, "stolen-session", over_mcp=over_mcp)
    assert told["error"]["code"] == "AUTH_ERROR"
    assert "stolen-session" not in str(told)


@pytest.mark.parametrize("over_mcp", [False, True])
async def test_where_sessions_are_required_one_is_enough_also_without_a_key(
    tmp_path: Path, emulator: RunningEmulator, *, over_mcp: bool
) -> None:
    await emulator.set_users({"bob-session": {}})
    async with (
        open_help_desk(tmp_path, emulator, salesforce_user_sessions="required") as desk,
        open_http(desk, NOBODY) as client,
    ):
        assert await search(client, None, "bob-session", over_mcp=over_mcp)
        told = await ask(client, None, "", over_mcp=over_mcp)
    assert told["error"]["code"] == "AUTH_ERROR"
    assert "X-Salesforce-Token" in told["error"]["message"]
