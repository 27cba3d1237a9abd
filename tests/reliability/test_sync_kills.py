"""A sync killed at any point leaves whole updates, and the next one brings the feed's state; and the proof can fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from sample_world.azure_updates.process import running_emulator
from tests.reliability.counting import count
from tests.reliability.lives import EARLY_WATERMARK, nursing
from tests.reliability.syncs import SYNC, SyncTrials


async def kill_syncs(home: Path, kills: int, seed: int, arguments: Sequence[str] = SYNC) -> set[str]:
    async with running_emulator() as emulator:
        with nursing(home, REFDESK_AZURE_UPDATES_URL=emulator.url) as nursery:
            return await SyncTrials(nursery, emulator, Random(seed), arguments).run(kills)


async def test_the_sync_after_a_killed_one_brings_the_state_of_the_feed(tmp_path: Path) -> None:
    assert await kill_syncs(tmp_path, 6, seed=1) == set()
    count("kills of syncs", 6)


@pytest.mark.soak
async def test_two_hundred_killed_syncs_lose_double_or_halve_nothing(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 5):
        assert await kill_syncs(tmp_path / str(seed), 40, seed) == set(), f"seed {seed}"
        count("kills of syncs", 40)


async def test_the_proof_catches_a_sync_that_notes_its_progress_too_early(tmp_path: Path) -> None:
    assert "not the feed's state" in await kill_syncs(tmp_path, 4, seed=2, arguments=[EARLY_WATERMARK])
