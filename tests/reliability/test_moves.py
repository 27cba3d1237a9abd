"""A store that is moved while it serves loses and doubles nothing, whoever is killed; and the proof can fail."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import pytest

from tests.reliability.counting import count
from tests.reliability.lives import CARELESS_MOVE
from tests.reliability.moves import Load, Trial, make_file


def make_trial(home: Path, seed: int, command: tuple[str, ...] = ("migrate", "--serving")) -> Trial:
    home.mkdir(exist_ok=True)
    return Trial(home, seed, make_file(home / "old.sqlite3"), make_file(home / "new.sqlite3"), command)


async def test_a_move_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "home", 1)
    assert await trial.run(kills=6) == set(), trial
    count("kills while moving", trial.kills)


@pytest.mark.soak
async def test_fifty_moves_under_load_lose_and_double_nothing(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        trial = make_trial(tmp_path / str(seed), seed)
        assert await trial.run(kills=10) == set(), trial
        count("kills while moving", trial.kills)


async def test_the_proof_catches_a_move_that_notices_no_change(tmp_path: Path) -> None:
    assert "lost" in await make_trial(tmp_path / "home", 2, (CARELESS_MOVE,)).run(kills=0)


async def test_the_proof_ends_where_something_is_wrong() -> None:
    load = Load(Random(5))
    async with anyio.create_task_group() as group:
        # The writers end, so nothing is acknowledged any more.
        group.start_soon(load.wait, 2)
        await anyio.lowlevel.checkpoint()
        load.blame("not read: 404")
    await load.wait(1)
