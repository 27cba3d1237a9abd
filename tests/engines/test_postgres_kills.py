"""PostgreSQL killed under load, again and again: nothing acknowledged is lost, nothing is there twice or in part."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from refdesk.stores.postgres import open_store
from tests.engines.postgres import PostgresServer, get_store_url, running
from tests.engines.writers import MOST_BETWEEN, Writer, find_faults
from tests.stores.samples import NOTES

pytestmark = pytest.mark.engines

WRITERS = 3


async def kill(folder: Path, kills: int, seed: int, *, is_early: bool = False) -> set[str]:
    """Return the faults after so many kills, or after as many as it takes to see one."""
    random = Random(seed)
    with running(fsync=True) as server:
        url = get_store_url(folder, server)
        async with open_store(url, patience_seconds=5) as store:
            acknowledgements = anyio.Semaphore(0)
            writers = [Writer(f"w{n}", NOTES, store, acknowledgements, is_early) for n in range(WRITERS)]
            for _ in range(kills):
                async with anyio.create_task_group() as group:
                    for writer in writers:
                        group.start_soon(writer.run)
                    for _ in range(random.randrange(1, MOST_BETWEEN)):
                        await acknowledgements.acquire()
                    await restart(server)
                    # The same store goes on: the writers must get through again before they are looked at.
                    for _ in range(WRITERS):
                        await acknowledgements.acquire()
                    for writer in writers:
                        writer.is_stopped = True
                if faults := await find_faults(store, writers):
                    return faults
    return set()


async def restart(server: PostgresServer) -> None:
    await anyio.to_thread.run_sync(server.kill)
    await anyio.to_thread.run_sync(server.start)


@pytest.mark.timeout(1200)
async def test_a_killed_server_loses_nothing_it_acknowledged_and_keeps_nothing_twice(tmp_path: Path) -> None:
    assert await kill(tmp_path, 3, seed=1) == set()


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_server_killed_300_times_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    assert await kill(tmp_path, 300, seed=2) == set()


@pytest.mark.timeout(1200)
async def test_the_proof_catches_a_writer_that_acknowledges_before_it_commits(tmp_path: Path) -> None:
    assert "lost" in await kill(tmp_path, 30, seed=3, is_early=True)
