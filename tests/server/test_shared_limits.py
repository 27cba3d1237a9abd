"""Refused keys are counted for all servers together where they share a scratchpad, and by each where it is away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2

from refdesk.app import Desk
from refdesk.factories.bases import Base
from refdesk.server import credentials
from tests.queues.notes import MemoryScratchpad
from tests.server.conftest import open_http


def share(desk: Desk, pad: MemoryScratchpad) -> Desk:
    """Let a desk that nobody has asked yet open with a scratchpad."""
    open_alone = desk.open_base

    @asynccontextmanager
    async def open_shared() -> AsyncGenerator[Base]:
        async with open_alone() as base:
            yield replace(base, knowledge_base=replace(base.knowledge_base, scratchpad=pad))

    desk.open_base = open_shared
    return desk


async def ask(server: httpx2.AsyncClient) -> int:
    return (await server.get("/mcp", headers={"authorization": "Bearer refdesk_x"})).status_code


async def test_a_source_that_fails_at_many_servers_is_told_to_wait_by_each(desk: Desk) -> None:
    pad = MemoryScratchpad()
    share(desk, pad)
    async with open_http(desk, None) as one, open_http(desk, None) as other:
        assert await ask(one) == 401
        while (await pad.count("refused:127.0.0.1", 60) or 0) < credentials.MOST_FAILURES - 1:
            pass
        assert [await ask(one), await ask(other), await ask(one)] == [401, 429, 429]
        pad.is_away = True
        assert [await ask(one), await ask(other)] == [401, 401]
