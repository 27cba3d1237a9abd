"""Nobody's sessions use up another's: the longest idle one of whoever has too many goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from refdesk.app import Desk
from refdesk.errors import LimitExceededError
from refdesk.server.limits.sessions import Session, Sessions
from tests.acceptance.test_http import make_key as make_key_of
from tests.acceptance.test_slow_clients import serve
from tests.server.conftest import open_http
from tests.server.echo import echo_desk
from tests.server.test_keys import bearer, make_key
from tests.server.test_messages import ACCEPT, OPEN, PING


@asynccontextmanager
async def open_small(home: Path, *, most: int, sse: bool = False) -> AsyncGenerator[tuple[Desk, httpx2.AsyncClient]]:
    async with echo_desk(home, max_sessions=most) as desk, open_http(desk, None, sse=sse) as client:
        client.headers |= ACCEPT
        yield desk, client


async def begin(client: httpx2.AsyncClient, key: str) -> str:
    answer = await client.post("/mcp", json=OPEN, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


async def ping(client: httpx2.AsyncClient, key: str, session: str) -> int:
    return (await client.post("/mcp", json=PING, headers=bearer(key) | {"mcp-session-id": session})).status_code


@pytest.mark.parametrize("number", [150, pytest.param(1000, marks=pytest.mark.soak)])
async def test_one_keys_sessions_keep_no_other_org_out(tmp_path: Path, number: int) -> None:
    """The key may do one small thing, and its client never ends a session."""
    async with open_small(tmp_path, most=number // 10) as (desk, client):
        hoarder, good = await make_key(desk, scopes=("updates:read",)), await make_key(desk, "bob", "other")
        mine = await begin(client, good)
        for _ in range(number - 1):
            await begin(client, hoarder)
        assert await ping(client, good, mine) == 200
        assert await ping(client, good, await begin(client, good)) == 200
        assert await ping(client, hoarder, await begin(client, hoarder)) == 200


async def test_the_longest_idle_session_of_the_same_caller_goes(tmp_path: Path) -> None:
    async with open_small(tmp_path, most=12) as (desk, client):
        ann, bob = await make_key(desk), await make_key(desk, "bob")
        [of_bob, *_] = [await begin(client, bob) for _ in range(2)]
        first, second, third = [await begin(client, ann) for _ in range(3)]
        assert await ping(client, ann, first) == 200
        fourth = await begin(client, ann)
        found = [await ping(client, ann, each) for each in (first, second, third, fourth)]
        assert found == [200, 404, 200, 200]
        assert await ping(client, bob, of_bob) == 200


async def test_an_orgs_agents_share_its_half(tmp_path: Path) -> None:
    async with open_small(tmp_path, most=8) as (desk, client):
        keys = [await make_key(desk, f"agent-{number}") for number in range(5)]
        other = await make_key(desk, "bob", "other")
        of_other = await begin(client, other)
        sessions = [await begin(client, key) for key in keys]
        assert [await ping(client, *each) for each in zip(keys, sessions, strict=True)] == [404, 200, 200, 200, 200]
        assert await ping(client, other, of_other) == 200


async def test_when_all_are_too_many_the_largest_org_gives(tmp_path: Path) -> None:
    async with open_small(tmp_path, most=4) as (desk, client):
        keys = [
            await make_key(desk, f"agent-{n}", org)
            for org, number in (("a", 2), ("b", 1), ("c", 1), ("d", 1))
            for n in range(number)
        ]
        sessions = [await begin(client, key) for key in keys]
        assert [await ping(client, *each) for each in zip(keys, sessions, strict=True)] == [404, 200, 200, 200, 200]


async def test_a_session_that_was_ended_or_never_began_counts_no_more(tmp_path: Path) -> None:
    async with open_small(tmp_path, most=8) as (desk, client):
        key = await make_key(desk)
        first, second = await begin(client, key), await begin(client, key)
        ended = await client.delete("/mcp", headers=bearer(key) | {"mcp-session-id": second})
        assert ended.status_code == 200
        for _ in range(5):
            assert (await client.post("/mcp", json=PING, headers=bearer(key))).status_code == 400
        third = await begin(client, key)
        assert [await ping(client, key, each) for each in (first, third)] == [200, 200]


async def test_a_busy_session_stays_and_who_has_only_such_is_told_when_to_come_back() -> None:
    ended: list[str] = []

    async def end() -> None:
        ended.append("one")

    sessions = Sessions(4)
    first, second = Session(("a", "ann"), end), Session(("a", "ann"), end)
    await sessions.add(first)
    with sessions.use(first), pytest.raises(LimitExceededError, match="busy"):
        await sessions.add(second)
    assert ended == []
    await sessions.add(second)
    assert ended == ["one"]
    assert len(sessions) == 1


def test_a_stream_of_the_retired_transport_is_a_session_too(tmp_path: Path) -> None:
    with serve(tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_MAX_SESSIONS="8") as (_, url), ExitStack() as stack:
        _, key = make_key_of(tmp_path, "--scope", "knowledge:read")
        client = stack.enter_context(httpx2.Client(headers=key))
        streams = [stack.enter_context(client.stream("GET", f"{url}/sse")) for _ in range(3)]
        assert [stream.status_code for stream in streams] == [200, 200, 200]
        lines = [stream.iter_lines() for stream in streams]
        addresses = [next(line for line in each if line.startswith("data: "))[6:] for each in lines]
        for line in lines[0]:
            assert not line.startswith("data: ")
        found = [client.post(url + address, json=PING).status_code for address in addresses]
        assert found == [404, 202, 202]
        assert "id" in next(line for line in lines[1] if line.startswith("data: "))
