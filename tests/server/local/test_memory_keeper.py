"""A desk gives memory back when it is much, or nobody calls; what is little stays for the next search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from numpy.typing import NDArray

from refdesk.core.background.quiet import Quiet
from refdesk.kit import memory
from refdesk.server.local.memory_keeper import MemoryKeeper
from refdesk.stores.sqlite.index.files import Content, map_content, write_content
from tests.kit.test_memory import measure_resident

pytestmark = pytest.mark.skipif(not memory.ROLLUP.exists(), reason="the system does not say what is in memory")


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "part"


@pytest.fixture
def mapped(part: Path) -> NDArray[np.int64]:
    write_content(part, Content({"numbers": np.arange(1_000_000)}, {}))
    return map_content(part).arrays["numbers"]


async def wait_until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(120):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def test_what_background_work_reads_of_the_index_is_given_back_while_it_goes_on(
    part: Path, mapped: NDArray[np.int64]
) -> None:
    quiet = Quiet(lambda: False)
    async with anyio.create_task_group() as group:
        group.start_soon(MemoryKeeper(quiet, much_bytes=0).run)
        for _ in range(2):
            async with quiet.working():
                assert mapped.sum() > 0
                assert measure_resident(part) > 7000
                await wait_until(lambda: measure_resident(part) < 1000)
        group.cancel_scope.cancel()


async def test_what_is_much_is_given_back_whoever_calls(part: Path, mapped: NDArray[np.int64]) -> None:
    quiet = Quiet(lambda: True)
    async with anyio.create_task_group() as group:
        group.start_soon(MemoryKeeper(quiet, much_bytes=0).run)
        for _ in range(2):
            assert mapped.sum() > 0
            await wait_until(lambda: measure_resident(part) < 1000)
        group.cancel_scope.cancel()


async def test_what_a_search_has_read_is_given_back_as_it_ends_where_it_is_much(
    part: Path, mapped: NDArray[np.int64]
) -> None:
    quiet = Quiet(lambda: True)
    keeper = MemoryKeeper(quiet, much_bytes=0, look_seconds=3600.0)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.run)
        for _ in range(2):
            assert mapped.sum() > 0
            assert measure_resident(part) > 7000

            def has_ended() -> bool:
                quiet.note_end()
                return measure_resident(part) < 1000

            await wait_until(has_ended)
        group.cancel_scope.cancel()


@pytest.mark.parametrize(("rest_seconds", "is_given_back"), [(3600.0, False), (0.0, True)])
async def test_what_is_little_stays_for_the_next_search_until_nobody_calls_for_long(
    part: Path, mapped: NDArray[np.int64], *, rest_seconds: float, is_given_back: bool
) -> None:
    looks = 0

    def is_asked() -> bool:
        nonlocal looks
        looks += 1
        return False

    quiet = Quiet(is_asked)
    quiet.note_end()
    async with anyio.create_task_group() as group:
        group.start_soon(MemoryKeeper(quiet, much_bytes=2**62, rest_seconds=rest_seconds).run)
        async with quiet.working():
            assert mapped.sum() > 0
            looks = 0
            # Each look asks at least twice whether anybody calls.
            await wait_until(lambda: looks >= 6)
        assert (measure_resident(part) < 1000) is is_given_back
        group.cancel_scope.cancel()
