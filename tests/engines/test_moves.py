"""A file that servers use is moved to PostgreSQL under load, while the mover or PostgreSQL itself is killed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from tests.engines.postgres import get_store_url, running
from tests.reliability.moves import Trial

pytestmark = pytest.mark.engines


def make_trial(home: Path, seed: int, url: str) -> Trial:
    @asynccontextmanager
    async def open_target() -> AsyncGenerator[Store]:
        async with open_store(url) as store:
            yield store

    home.mkdir()
    return Trial(home, seed, url, open_target)


async def test_a_file_moves_to_postgresql_under_load(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "home", 3, get_store_url(tmp_path))
    assert await trial.run(kills=4) == set(), trial


async def test_a_target_that_is_killed_costs_nothing_and_the_move_goes_on(tmp_path: Path) -> None:
    with running(fsync=True) as server:
        trial = make_trial(tmp_path / "home", 4, server.get_url())
        trial.strike, trial.mend = server.kill, server.start
        assert await trial.run(kills=3) == set(), trial
