"""Whatever happens to them, all engines answer alike, and so does another process's view of the same file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from refdesk.core.clock import FixedClock
from tests.stores.conftest import ENGINE_NAMES, ENGINES, open_memory
from tests.stores.walks import Walk, assert_agree

STEPS = 60


@pytest.mark.parametrize("engine", ENGINE_NAMES[1:])
@pytest.mark.parametrize("seed", range(5))
async def test_engines_agree_along_a_random_walk(engine: str, tmp_path: Path, clock: FixedClock, seed: int) -> None:
    await follow(engine, tmp_path, clock, seed)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINE_NAMES[1:])
@pytest.mark.parametrize("seed", range(1000, 1200))
async def test_engines_agree_along_many_random_walks(engine: str, tmp_path: Path, clock: FixedClock, seed: int) -> None:
    await follow(engine, tmp_path, clock, seed)


async def follow(engine: str, folder: Path, clock: FixedClock, seed: int) -> None:
    walk, open_engine = Walk(Random(seed)), ENGINES[engine]
    # The onlooker writes nothing, and must notice all that another view of the same store writes.
    async with (
        open_memory(folder, clock) as reference,
        open_engine(folder, clock) as store,
        open_engine(folder, clock) as onlooker,
    ):
        for _ in range(STEPS):
            await walk.write([reference, store])
            await assert_agree([reference, store, onlooker], walk)
