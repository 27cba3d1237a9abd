"""A server that is killed under load loses nothing it acknowledged and goes on by itself; and the proof can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.counting import count
from tests.reliability.kills import Trials
from tests.reliability.lives import EARLY


async def test_a_killed_server_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    trials = Trials(tmp_path, seed=1)
    assert await trials.run(10) == set(), trials
    assert trials.kills_under_load > 5, "of those that die at the disk one at least has begun to answer"
    count("kills of servers", trials.kills)


@pytest.mark.soak
async def test_five_hundred_killed_servers_lose_nothing_they_acknowledged(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 10):
        trials = Trials(tmp_path / str(seed), seed)
        assert await trials.run(50) == set(), trials
        count("kills of servers", trials.kills)


async def test_the_proof_catches_a_server_that_answers_before_it_commits(tmp_path: Path) -> None:
    assert "lost" in await Trials(tmp_path, seed=2, arguments=[EARLY], dies_at_disk=False, most_answers=10).run(6)


async def test_the_proof_catches_a_server_that_keeps_nothing(tmp_path: Path) -> None:
    trials = Trials(tmp_path, seed=3, dies_at_disk=False, most_answers=10)
    trials.variables["REFDESK_STORE"] = "memory://"
    assert "lost" in await trials.run(2)
