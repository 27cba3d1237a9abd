"""Who asks too often is slowed down, then told when to ask again; others notice nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.server.limits.rates import BURST_SECONDS, LONGEST_PAUSE, MOST_REMEMBERED, Tally
from tests.queues.notes import MemoryScratchpad
from tests.server.conftest import open_http
from tests.server.echo import echo_desk, make_settings
from tests.server.test_keys import bearer, make_key
from tests.server.test_messages import ACCEPT, OPEN, call
from tests.server.test_shared_limits import share


def test_a_burst_passes_then_it_is_the_rate_that_counts() -> None:
    at = [0.0]
    tally = Tally(lambda: at[0])
    assert [tally.take("a", 60) for _ in range(int(BURST_SECONDS))] == [0.0] * int(BURST_SECONDS)
    assert tally.take("a", 60) == 1.0 > LONGEST_PAUSE
    assert tally.take("a", 60) == 1.0
    assert tally.take("b", 60) == 0.0
    at[0] += 0.75
    assert tally.take("a", 60) == 0.25
    at[0] += 100
    assert tally.take("a", 60) == 0.0


def test_what_is_remembered_is_bounded() -> None:
    tally = Tally(lambda: 0.0)
    for _ in range(int(BURST_SECONDS)):
        tally.take("first", 60)
    for number in range(MOST_REMEMBERED):
        tally.take(str(number), 60)
    assert tally.take("first", 60) == 0.0


@asynccontextmanager
async def open_limited(home: Path, **rates: int) -> AsyncGenerator[tuple[Desk, httpx2.AsyncClient]]:
    async with echo_desk(home, **rates) as desk, open_http(desk, None) as client:
        client.headers |= ACCEPT
        yield desk, client


async def test_an_agent_that_asks_too_often_is_told_when_to_come_back_and_others_are_not(tmp_path: Path) -> None:
    async with open_limited(tmp_path, agent_rate=1) as (desk, client):
        ann, bob = bearer(await make_key(desk)), bearer(await make_key(desk, "bob"))
        assert [(await client.get("/echo/guide", headers=ann)).status_code for _ in range(2)] == [200, 429]
        refused = await client.get("/echo/guide", headers=ann)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["error"]["code"] == "LIMIT_EXCEEDED"
        assert (await client.get("/echo/guide", headers=bob)).status_code == 200


async def test_an_orgs_agents_count_together_and_another_orgs_apart(tmp_path: Path) -> None:
    async with open_limited(tmp_path, org_rate=1) as (desk, client):
        keys = [bearer(await make_key(desk, agent, org)) for agent, org in (("ann", "a"), ("bob", "a"), ("cat", "c"))]
        assert [(await client.get("/echo/guide", headers=key)).status_code for key in keys] == [200, 429, 200]


async def test_over_mcp_it_is_an_error_that_says_when(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, agent_rate=1)
    async with (
        open_desk(settings, load_toolsets(["knowledge"]), in_background=False) as desk,
        open_http(desk, None) as client,
    ):
        client.headers |= ACCEPT
        headers = bearer(await make_key(desk))
        session = (await client.post("/mcp", json=OPEN, headers=headers)).headers["mcp-session-id"]
        assert (await client.post("/mcp", json=OPEN, headers=headers)).status_code == 429
        headers["mcp-session-id"] = session
        called = (
            await client.post("/mcp", json=call(name="search_knowledge", arguments={"query": "x"}), headers=headers)
        ).json()
        assert called["id"] == 7
        assert called["result"]["isError"]
        assert "try again in" in called["result"]["content"][0]["text"]
        listing = {"jsonrpc": "2.0", "id": 8, "method": "tools/list"}
        listed = (await client.post("/mcp", json=listing, headers=headers)).json()
        assert listed["id"] == 8
        assert listed["error"]["data"]["error"]["details"]["retryAfterSeconds"] >= 1


@pytest.mark.parametrize("is_away", [False, True])
async def test_servers_that_share_a_scratchpad_count_together(tmp_path: Path, is_away: bool) -> None:
    pad = MemoryScratchpad()
    async with echo_desk(tmp_path, agent_rate=100) as desk:
        share(desk, pad)
        key = bearer(await make_key(desk))
        for _ in range(100):
            await pad.count("rate:acme:ann", 60)
        pad.is_away = is_away
        async with open_http(desk, None) as client:
            answer = await client.get("/echo/guide", headers=key)
    assert answer.status_code == (200 if is_away else 429)


async def test_whoever_needs_no_key_has_no_rate(tmp_path: Path) -> None:
    async with echo_desk(tmp_path, agent_rate=1) as desk, open_http(desk) as client:
        assert [(await client.get("/echo/guide")).status_code for _ in range(3)] == [200, 200, 200]
