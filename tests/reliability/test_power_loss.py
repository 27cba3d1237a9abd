"""When the power fails nothing that was acknowledged is gone, and nothing is there in part; and the proof can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.processes import make_environment
from tests.conftest import REPOSITORY
from tests.reliability.counting import count
from tests.reliability.power import Losses, Recording, fail_often
from tests.reliability.recording import LIVES


def record(folder: Path, synchronous: str, seed: int) -> Recording:
    folder.mkdir()
    module = [sys.executable, "-m", "tests.reliability.recording", str(folder), synchronous, str(seed)]
    subprocess.run(module, cwd=REPOSITORY, env=make_environment(folder), check=True)
    return Recording.read(folder / "journal")


async def cut_power(folder: Path, synchronous: str, images: int, seed: int) -> Losses:
    return await fail_often(record(folder / f"{synchronous}-{seed}", synchronous, seed), folder, images, seed)


async def test_some_hundred_power_losses_take_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    recording = record(tmp_path / "recorded", "FULL", seed=1)
    assert recording.count_checkpoints() > LIVES, "no checkpoint under load, only when the store was closed"
    losses = await fail_often(recording, tmp_path, 200, seed=1)
    assert losses.images == 200
    assert losses.is_none, losses
    count("power-loss images", losses.images)


@pytest.mark.soak
async def test_a_hundred_thousand_power_losses_take_nothing_that_was_acknowledged(
    tmp_path: Path, first_seed: int
) -> None:
    for seed in range(first_seed, first_seed + 20):
        losses = await cut_power(tmp_path, "FULL", 5_000, seed)
        assert losses.is_none, losses
        count("power-loss images", losses.images)


async def test_the_proof_catches_commits_that_wait_for_the_next_checkpoint(tmp_path: Path) -> None:
    losses = await cut_power(tmp_path, "NORMAL", 100, seed=2)
    assert losses.lost > 20
    assert losses.corrupt == 0


async def test_the_proof_catches_a_store_that_syncs_nothing(tmp_path: Path) -> None:
    losses = await cut_power(tmp_path, "OFF", 100, seed=3)
    assert losses.lost > 10
    assert losses.corrupt > 0
