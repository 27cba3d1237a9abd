"""A store that servers use is moved to PostgreSQL under load, while the mover or PostgreSQL itself is killed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from tests.engines.postgres import PostgresServer, get_store_url, running
from tests.reliability.counting import count
from tests.reliability.lives import CARELESS_MOVE
from tests.reliability.moves import Place, Strike, Trial, make_file

pytestmark = pytest.mark.engines

MOVE = ("migrate", "--serving")


def make_place(url: str) -> Place:
    @asynccontextmanager
    async def open_it() -> AsyncGenerator[Store]:
        async with open_store(url) as store:
            yield store

    return Place(url, open_it)


def make_trial(home: Path, seed: int, url: str) -> Trial:
    home.mkdir()
    return Trial(home, seed, make_file(home / "old.sqlite3"), make_place(url), MOVE)


async def test_a_file_moves_to_postgresql_under_load(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "home", 3, get_store_url(tmp_path))
    assert await trial.run(kills=4) == set(), trial


async def test_a_target_that_is_killed_costs_nothing_and_the_move_goes_on(tmp_path: Path) -> None:
    with running(fsync=True) as server:
        trial = make_trial(tmp_path / "home", 4, server.get_url())
        # A target that is struck after the switch is what servers need, which is no matter of moving.
        trial.strikes, trial.spares_mover = [Strike(server.kill, server.start, is_early=True)], True
        assert await trial.run(kills=3) == set(), trial


def make_trial_between(home: Path, servers: tuple[PostgresServer, PostgresServer], seed: int) -> Trial:
    """Return a move from one server to the other, while one of both, the mover or what serves is killed."""
    home.mkdir()
    old, new = (make_place(get_store_url(home, server)) for server in servers)
    return Trial(home, seed, old, new, MOVE, [Strike(server.kill, server.start) for server in servers])


async def test_a_database_moves_to_another_one_under_load(tmp_path: Path) -> None:
    with running(fsync=True) as old, running(fsync=True) as new:
        trial = make_trial_between(tmp_path / "home", (old, new), seed=6)
        assert await trial.run(kills=3) == set(), trial
    count("kills while moving between databases", trial.kills)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_fifty_moves_between_databases_lose_and_double_nothing(tmp_path: Path, first_seed: int) -> None:
    with running(fsync=True) as old, running(fsync=True) as new:
        for seed in range(first_seed, first_seed + 50):
            trial = make_trial_between(tmp_path / str(seed), (old, new), seed)
            assert await trial.run(kills=10) == set(), trial
            count("kills while moving between databases", trial.kills)


async def test_the_proof_catches_a_move_between_databases_that_notices_no_change(tmp_path: Path) -> None:
    old, new = (make_place(get_store_url(tmp_path / name)) for name in ("old", "new"))
    assert "lost" in await Trial(tmp_path, 7, old, new, (CARELESS_MOVE,)).run(kills=0)
