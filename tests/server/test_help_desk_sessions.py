"""The Salesforce session that a request carries, over REST and MCP: each caller is answered as its own user."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_keys import make_key

MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def desk(tmp_path: Path, emulator: RunningEmulator) -> AsyncGenerator[Desk]:
    await emulator.reset()
    await emulator.set_faults([])
    await emulator.set_users({"ann-session": {"products": ["Climate__c"]}, "bob-session": {}})
    settings = make_settings(
        tmp_path,
        salesforce_instance_url=emulator.url,
        salesforce_client_id=emulator.client_id,
        salesforce_client_secret=SecretStr(emulator.client_secret),
    )
    async with open_desk(settings, load_toolsets(["salesforce-knowledge"], settings), in_background=False) as opened:
        yield opened
    await emulator.reset()


async def search(client: httpx2.AsyncClient, key: str, session: str, *, over_mcp: bool) -> set[str]:
    headers = {"Authorization": f"Bearer {key}", **({"X-Salesforce-Token": session} if session else {})}
    asked: dict[str, Any] = {"query": "the", "limit": 25}
    if not over_mcp:
        reply = await client.post("/articles/search", json=asked, headers=headers)
        assert reply.status_code == 200, reply.text
        return {article["id"] for article in reply.json()["articles"]}
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
    return {article["id"] for article in reply.json()["result"]["structuredContent"]["articles"]}


@pytest.mark.parametrize("over_mcp", [False, True])
async def test_each_request_is_answered_as_the_user_whose_session_it_carries(desk: Desk, *, over_mcp: bool) -> None:
    key = await make_key(desk)
    async with open_http(desk, None) as client:
        whole = await search(client, key, "", over_mcp=over_mcp)
        of_ann = await search(client, key, "ann-session", over_mcp=over_mcp)
        assert of_ann != whole
        assert await search(client, key, "bob-session", over_mcp=over_mcp) == whole
        assert await search(client, key, "ann-session", over_mcp=over_mcp) == of_ann
        assert await search(client, key, "", over_mcp=over_mcp) == whole


async def test_a_session_that_is_not_good_is_refused_without_being_shown(desk: Desk) -> None:
    key = await make_key(desk)
    async with open_http(desk, None) as client:
        headers = {"Authorization": f"Bearer {key}", "X-Salesforce-Token": "stolen-session"}
        reply = await client.post("/articles/search", json={"query": "the"}, headers=headers)
    assert reply.json()["error"]["code"] == "AUTH_ERROR"
    assert "stolen-session" not in reply.text
