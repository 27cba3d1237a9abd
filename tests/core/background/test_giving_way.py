"""Embedding gives way to those who write, and not for ever."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from refdesk.core.background.embedding import CALM_SECONDS, MOST_HELD_SECONDS, Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.doorbell import Doorbell
from refdesk.core.search.semantics import Semantics
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, ScriptedEmbedder, make_document

LOOKS = 10


class Time:
    """Seconds that a test moves; says when it was looked at."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.seconds


class Bench:
    """A store with a note that was just written, and an indexer that works in the background."""

    def __init__(self) -> None:
        self.store, self.time, self.embedder = MemoryStore(), Time(), ScriptedEmbedder()
        self.semantics = Semantics(self.store, self.embedder, doorbell=Doorbell(self.time))

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        async with self.store.transaction() as transaction:
            await transaction.put_documents([make_document("a")])
        self.semantics.doorbell.ring()
        async with anyio.create_task_group() as group:
            group.start_soon(Indexer(self.store, self.semantics, FixedClock(NOW)).run)
            yield
            group.cancel_scope.cancel()

    async def wait(self, is_done: Callable[[], bool]) -> None:
        with anyio.fail_after(120):
            while not is_done():  # noqa: ASYNC110 - nothing tells of it
                await anyio.sleep(CALM_SECONDS / 10)

    async def is_embedded(self) -> bool:
        return await self.store.get_unembedded(NOTES, self.embedder.name, 1) == []


async def test_nothing_is_embedded_while_somebody_writes_and_all_is_afterwards() -> None:
    bench = Bench()
    async with bench.working():
        await bench.wait(lambda: bench.time.looks > LOOKS)
        assert not await bench.is_embedded()
        bench.time.seconds += CALM_SECONDS
        await bench.wait(lambda: bench.embedder.seen != [])


async def test_writes_that_do_not_end_hold_it_up_for_a_while_only() -> None:
    bench = Bench()
    async with bench.working():
        await bench.wait(lambda: bench.time.looks > LOOKS)
        bench.time.seconds += MOST_HELD_SECONDS
        bench.semantics.doorbell.ring()
        await bench.wait(lambda: bench.embedder.seen != [])


async def test_who_searches_meanwhile_gets_the_model_loaded() -> None:
    bench = Bench()
    bench.embedder.is_ready = False
    async with bench.working():
        await bench.wait(lambda: bench.time.looks > LOOKS)
        await bench.semantics.embed_query("anything", "acme")
        await bench.wait(lambda: bench.embedder.is_ready)
        assert not await bench.is_embedded()
