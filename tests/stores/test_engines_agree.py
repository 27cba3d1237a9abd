"""Whatever happens to them, all engines answer alike, and so does another process's view of the same file."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from refdesk.core.clock import FixedClock
from tests.stores.conftest import ENGINES, open_sqlite
from tests.stores.walks import Walk, assert_agree

STEPS = 60


@pytest.mark.parametrize("seed", range(5))
async def test_engines_agree_along_a_random_walk(tmp_path: Path, clock: FixedClock, seed: int) -> None:
    await follow(tmp_path, clock, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1200))
async def test_engines_agree_along_many_random_walks(tmp_path: Path, clock: FixedClock, seed: int) -> None:
    await follow(tmp_path, clock, seed)


async def follow(folder: Path, clock: FixedClock, seed: int) -> None:
    walk = Walk(Random(seed))
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_engine(folder, clock)) for open_engine in ENGINES.values()]
        # A second view of the file: it writes nothing, and must notice all that the first one writes.
        onlooker = await stack.enter_async_context(open_sqlite(folder, clock))
        for _ in range(STEPS):
            await walk.write(stores)
            await assert_agree([*stores, onlooker], walk)
