"""A process that is killed loses nothing it acknowledged and leaves nothing half done; and the proof can fail."""

from __future__ import annotations

import os
import signal
from collections import Counter
from itertools import takewhile
from pathlib import Path
from random import Random
from time import perf_counter

import pytest

from refdesk.model import Document
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from tests.stores.samples import MODEL, NOTES, asking
from tests.stores.sqlite.processes import Worker, running
from tests.stores.sqlite.worker import BATCH

MOST_ACKNOWLEDGED = 8
LONGEST_DELAY_SECONDS = 0.01


def write_until_killed(worker: Worker, trial: int, manner: str, random: Random) -> list[int]:
    """Have a process write batches and kill it at some point; return the batches it acknowledged."""
    worker.write(str(trial))
    process = worker.hear()
    assert isinstance(process, int)
    acknowledged = [worker.hear() for _ in range(random.randrange(1, MOST_ACKNOWLEDGED))]
    deadline = perf_counter() + (0 if manner == "early" else random.uniform(0, LONGEST_DELAY_SECONDS))
    while perf_counter() < deadline:
        pass
    os.kill(process, signal.SIGKILL)
    acknowledged += takewhile(lambda said: said != "ended", worker.hear_all())
    return [number for number in acknowledged if isinstance(number, int)]


async def find_faults(path: Path, trial: int, acknowledged: list[int]) -> set[str]:
    """Return what is wrong with the file: "lost" (acknowledged, not there), "torn" (there in part)."""
    connection = Connection(path, 10_000)
    assert connection.execute("PRAGMA integrity_check") == [("ok",)]
    connection.close()
    faults: set[str] = set()
    async with open_store(path) as store:
        ids = {id for id in await store.get_digests(NOTES) if id.startswith(f"{trial}-")}
        parts = Counter(int(id.split("-")[1]) for id in ids)
        found = await store.find(asking("batch", depth=100_000))
        assert {each.id for each in found.candidates if each.id.startswith(f"{trial}-")} == ids
        assert await store.get_embedded(NOTES, MODEL.name, sorted(ids)) == ids
        assert all(isinstance(each, Document) for each in await store.get_documents(NOTES, sorted(ids)))
    if any(parts[number] < BATCH for number in acknowledged):
        faults.add("lost")
    if any(count < BATCH for count in parts.values()):
        faults.add("torn")
    return faults


async def kill(path: Path, kills: int, manner: str, seed: int) -> set[str]:
    """Return the faults of so many kills, or of as many as it takes to see one."""
    random = Random(seed)
    with running(1, "write_in_children", path, manner) as (worker,):
        for trial in range(kills):
            acknowledged = write_until_killed(worker, trial, manner, random)
            if faults := await find_faults(path, trial, acknowledged):
                return faults
    return set()


async def test_killed_writers_lose_nothing_they_acknowledged_and_leave_nothing_half_done(tmp_path: Path) -> None:
    assert await kill(tmp_path / "store.sqlite3", 20, "honest", seed=1) == set()


@pytest.mark.soak
async def test_many_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path) -> None:
    assert await kill(tmp_path / "store.sqlite3", 1000, "honest", seed=2) == set()


async def test_the_proof_catches_a_writer_that_acknowledges_before_it_commits(tmp_path: Path) -> None:
    assert "lost" in await kill(tmp_path / "store.sqlite3", 20, "early", seed=3)


async def test_the_proof_catches_a_writer_that_commits_a_batch_in_two(tmp_path: Path) -> None:
    assert "torn" in await kill(tmp_path / "store.sqlite3", 20, "torn", seed=4)
