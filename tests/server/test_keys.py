"""Keys over HTTP: who calls is said by every request, on MCP and REST alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
import pytest

from refdesk.app import Desk
from tests.server.conftest import open_http

READS = ["updates:read"]


async def make_key(desk: Desk, agent: str = "ann", *, org: str = "acme", scopes: list[str] = READS) -> str:
    ring = (await desk.get_base()).keys
    return (await ring.create(org=org, agent=agent, scopes=scopes))[1]


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
async def locked(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server that nobody may call without a key."""
    async with open_http(desk, None) as client:
        yield client


async def test_a_key_tells_who_calls(desk: Desk, locked: httpx2.AsyncClient) -> None:
    secret = await make_key(desk)
    answer = await locked.get("/echo/guide", headers=bearer(secret))
    assert answer.json() == {"said": "guide", "by": "acme"}


@pytest.mark.parametrize("path", ["/echo/guide", "/mcp", "/sse", "/messages/", "/nowhere", "/health/", "/assets"])
async def test_nothing_private_is_told_without_a_key(locked: httpx2.AsyncClient, path: str) -> None:
    answer = await locked.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == 'Bearer realm="refdesk"'


async def test_missing_unknown_expired_and_revoked_keys_get_one_answer(desk: Desk, locked: httpx2.AsyncClient) -> None:
    ring = (await desk.get_base()).keys
    key, revoked = await ring.create(org="acme", agent="ann", scopes=READS)
    await ring.revoke(key.id)
    sent: list[list[tuple[str, str]]] = [
        [],
        [("authorization", "Bearer refdesk_guess")],
        [("authorization", f"Bearer {revoked}")],
        [("authorization", "Bearer")],
        [("authorization", f"Basic {revoked}")],
    ]
    answers = [await locked.get("/echo/guide", headers=headers) for headers in sent]
    assert {(answer.status_code, answer.text) for answer in answers} == {(401, answers[0].text)}
