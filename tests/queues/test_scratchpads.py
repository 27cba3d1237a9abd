"""One suite, every scratchpad: the shared one, and the one that other tests use in its place."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from refdesk.protocols import Scratchpad
from tests.engines import redis
from tests.engines.redis import until
from tests.queues.notes import MemoryScratchpad


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def pad(request: pytest.FixtureRequest) -> AsyncGenerator[Scratchpad]:
    if request.param == "memory":
        yield MemoryScratchpad()
        return
    async with redis.open_patiently(redis.get_fresh_server().url) as shared:
        yield shared.scratchpad


async def test_the_first_note_stays_and_is_told_to_who_comes_later(pad: Scratchpad) -> None:
    assert await pad.add("k", "first æ", 60) is None
    assert await pad.add("k", "second", 60) == "first æ"
    assert await pad.add("other", "third", 60) is None


async def test_of_many_at_once_one_is_first(pad: Scratchpad) -> None:
    told: list[str | None] = []

    async def add(n: int) -> None:
        told.append(await pad.add("k", str(n), 60))

    async with anyio.create_task_group() as group:
        for n in range(50):
            group.start_soon(add, n)
    assert told.count(None) == 1
    assert len(set(told)) == 2


async def test_a_note_can_be_replaced_and_removed(pad: Scratchpad) -> None:
    await pad.put("k", "a", 60)
    await pad.put("k", "b", 60)
    assert await pad.add("k", "c", 60) == "b"
    await pad.remove("k")
    await pad.remove("k")
    assert await pad.add("k", "d", 60) is None


async def test_a_note_has_an_end(pad: Scratchpad) -> None:
    await pad.put("put", "x", 0.1)
    await pad.add("added", "x", 0.1)

    async def is_over() -> bool:
        return await pad.add("put", "y", 0.001) is None and await pad.add("added", "y", 0.001) is None

    await until(is_over)


async def test_a_count_goes_up_by_one_and_has_an_end(pad: Scratchpad) -> None:
    assert [await pad.count("a", 60) for _ in range(3)] == [1, 2, 3]
    assert await pad.count("b", 60) == 1
    assert await pad.count("short", 0.2) == 1
    assert await pad.count("short", 60) == 2

    async def is_over() -> bool:
        # Were the end put off by each count, it would never come.
        return await pad.count("short", 0.2) == 1

    await until(is_over)


async def test_counts_of_many_at_once_are_all_different(pad: Scratchpad) -> None:
    counts: list[int | None] = []

    async def count() -> None:
        counts.append(await pad.count("k", 60))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(count)
    assert sorted(filter(None, counts)) == list(range(1, 51))
