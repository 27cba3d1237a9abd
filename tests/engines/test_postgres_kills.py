"""PostgreSQL killed under load, again and again: nothing acknowledged is lost, nothing is there twice or in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from refdesk.errors import StoreError
from refdesk.model import Metadata, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from tests.engines.postgres import PostgresServer, get_store_url, running
from tests.stores.samples import MODEL, NOTES, asking, find_ids, make_document, passage

pytestmark = pytest.mark.engines

WRITERS = 3
MOST_BETWEEN = 12
"""Writes that are acknowledged before the next kill, at most."""


@dataclass
class Writer:
    """Writes a document, its vector and a count in one transaction, until told to stop; counts what was acknowledged.

    Attributes:
        is_early: A planted fault: acknowledges before it is done.
    """

    name: str
    store: Store
    acknowledgements: anyio.Semaphore
    is_early: bool = False
    acknowledged: int = 0
    is_stopped: bool = False

    @property
    def key(self) -> MetadataKey:
        return MetadataKey("acme", "written", self.name)

    async def run(self) -> None:
        self.is_stopped = False
        while not self.is_stopped:
            try:
                await self._write(await self._count())
            except StoreError:
                # It may have been written or not: what is stored says how many there are.
                continue
            if not self.is_early:
                self._acknowledge()

    async def _count(self) -> int:
        record = await self.store.get_metadata(self.key)
        count = record.value["n"] if record else 0
        assert isinstance(count, int)
        return count

    async def _write(self, number: int) -> None:
        document = make_document(f"{self.name}-{number}", f"apple {self.name}", title=str(number))
        if self.is_early:
            self._acknowledge()
        async with self.store.transaction() as transaction:
            await transaction.put_documents([document])
            passages = [passage([1, 0, 0, 0])]
            await transaction.put_vectors(NOTES, document.id, MODEL, document.text_digest, passages)
            await transaction.put_metadata([Metadata(self.key, {"n": number + 1})])

    def _acknowledge(self) -> None:
        self.acknowledged += 1
        self.acknowledgements.release()


async def find_faults(store: Store, writers: Sequence[Writer]) -> set[str]:
    """Return what is wrong: "lost" (acknowledged, not there) or "torn" (there in part)."""
    ids = set(await store.get_digests(NOTES))
    faults: set[str] = set()
    expected: set[str] = set()
    for writer in writers:
        record = await store.get_metadata(writer.key)
        count = int(str(record.value["n"])) if record else 0
        expected |= {f"{writer.name}-{n}" for n in range(count)}
        if count < writer.acknowledged:
            faults.add("lost")
    found = await find_ids(store, asking("apple", depth=100_000))
    embedded = set(await store.get_embedded(NOTES, MODEL.name, sorted(ids)))
    if not ids == expected == set(found) == embedded or len(found) != len(ids):
        faults.add("torn")
    return faults


async def kill(folder: Path, kills: int, seed: int, *, is_early: bool = False) -> set[str]:
    """Return the faults after so many kills, or after as many as it takes to see one."""
    random = Random(seed)
    with running(fsync=True) as server:
        url = get_store_url(folder, server)
        async with open_store(url, patience_seconds=5) as store:
            acknowledgements = anyio.Semaphore(0)
            writers = [Writer(f"w{n}", store, acknowledgements, is_early) for n in range(WRITERS)]
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


@pytest.mark.timeout(180)
async def test_a_killed_server_loses_nothing_it_acknowledged_and_keeps_nothing_twice(tmp_path: Path) -> None:
    assert await kill(tmp_path, 3, seed=1) == set()


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_a_server_killed_300_times_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    assert await kill(tmp_path, 300, seed=2) == set()


@pytest.mark.timeout(180)
async def test_the_proof_catches_a_writer_that_acknowledges_before_it_commits(tmp_path: Path) -> None:
    assert "lost" in await kill(tmp_path, 30, seed=3, is_early=True)
