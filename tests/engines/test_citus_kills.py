"""A node of a cluster killed under load, again and again: the other orgs go on, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest

from refdesk.errors import StoreError
from refdesk.model import Collection, Metadata, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from tests.engines import citus
from tests.engines.citus import CitusCluster
from tests.engines.postgres import get_schema
from tests.reliability.counting import count
from tests.stores.samples import MODEL, asking, find_ids, make_document, passage

pytestmark = pytest.mark.engines

ORGS = [f"org{number}" for number in range(6)]
MOST_BETWEEN = 12
"""Writes that are acknowledged before the next kill, at most."""

MEANWHILE = 3
"""Writes of each org of the other nodes that are acknowledged while one is gone."""


@dataclass
class Writer:
    """Writes a document, its vector and a count in one transaction, until told to stop.

    Attributes:
        is_early: A planted fault: acknowledges before it is done.
        also: A planted fault: an org that is written to in the same transaction.
        failed: How many writes were refused.
    """

    org: str
    store: Store
    acknowledgements: anyio.Semaphore
    is_early: bool = False
    also: str | None = None
    acknowledged: int = 0
    failed: int = 0
    is_stopped: bool = False
    outcome: anyio.Event = field(default_factory=anyio.Event)

    @property
    def collection(self) -> Collection:
        return Collection(self.org, "notes")

    @property
    def key(self) -> MetadataKey:
        return MetadataKey(self.org, "written", "here")

    async def run(self) -> None:
        self.is_stopped = False
        while not self.is_stopped:
            try:
                await self.write_next()
            except StoreError:
                # It may have been written or not: what is stored says how many there are.
                self.failed += 1
                self._tell()
                continue
            if not self.is_early:
                self._acknowledge()

    async def count(self) -> int:
        record = await self.store.get_metadata(self.key)
        return int(str(record.value["n"])) if record else 0

    async def write_next(self) -> None:
        number = await self.count()
        document = make_document(f"{self.org}-{number}", f"apple {self.org}", collection=self.collection)
        if self.is_early:
            self._acknowledge()
        async with self.store.transaction() as transaction:
            await transaction.put_documents([document])
            passages = [passage([1, 0, 0, 0])]
            await transaction.put_vectors(self.collection, document.id, MODEL, document.text_digest, passages)
            written = [Metadata(self.key, {"n": number + 1})]
            if self.also is not None:
                written.append(Metadata(MetadataKey(self.also, "beside", self.org), {"n": number}))
            await transaction.put_metadata(written)

    def _acknowledge(self) -> None:
        self.acknowledged += 1
        self.acknowledgements.release()
        self._tell()

    def _tell(self) -> None:
        self.outcome.set()
        self.outcome = anyio.Event()

    async def get_on(self, times: int, *, whatever_fails: bool) -> bool:
        """Return whether so many more writes are acknowledged, before any fails unless that is no matter."""
        wanted, failed = self.acknowledged + times, self.failed
        while self.acknowledged < wanted:
            await self.outcome.wait()
            if self.failed > failed and not whatever_fails:
                return False
        return True


async def find_faults(store: Store, writers: Sequence[Writer]) -> set[str]:
    """Return what is wrong: "lost" (acknowledged, not there) or "torn" (there in part)."""
    faults: set[str] = set()
    for writer in writers:
        written = await writer.count()
        expected = {f"{writer.org}-{number}" for number in range(written)}
        if written < writer.acknowledged:
            faults.add("lost")
        ids = set(await store.get_digests(writer.collection))
        found = await find_ids(store, asking("apple", collection=writer.collection, depth=100_000))
        embedded = set(await store.get_embedded(writer.collection, MODEL.name, sorted(ids)))
        if not ids == expected == set(found) == embedded or len(found) != len(ids):
            faults.add("torn")
    return faults


async def strike(cluster: CitusCluster, schema: str, writers: Sequence[Writer], victim_org: str) -> set[str]:
    """Kill the node of an org and start it again; return "held up" where an org of another node did not go on."""
    places = {writer.org: cluster.find_worker(schema, writer.org) for writer in writers}
    victim = places[victim_org]
    others = [writer for writer in writers if places[writer.org] is not victim]
    await anyio.to_thread.run_sync(victim.kill)
    faults = set[str]()

    async def look(writer: Writer) -> None:
        if not await writer.get_on(MEANWHILE, whatever_fails=False):
            faults.add("held up")

    async with anyio.create_task_group() as group:
        for writer in others:
            group.start_soon(look, writer)
    await anyio.to_thread.run_sync(victim.start)
    # The same store goes on: the writers must get through again before they are looked at.
    for writer in writers:
        await writer.get_on(1, whatever_fails=True)
    return faults


async def kill(folder: Path, cluster: CitusCluster, kills: int, seed: int, fault: str = "") -> set[str]:
    """Return the faults after so many kills, or after as many as it takes to see one."""
    random, schema = Random(seed), get_schema(folder)
    async with open_store(citus.get_store_url(folder, cluster), patience_seconds=5) as store:
        acknowledgements = anyio.Semaphore(0)
        writers = [
            Writer(org, store, acknowledgements, fault == "early", also if fault == "entangled" else None)
            for org, also in zip(ORGS, [*ORGS[1:], ORGS[0]], strict=True)
        ]
        workers = [org for org in ORGS if cluster.find_worker(schema, org) is not cluster.coordinator]
        assert len({cluster.find_worker(schema, org).port for org in workers}) == len(cluster.workers)
        # A model's first vector makes its graph on every node.
        for writer in writers:
            await writer.write_next()
        faults = set[str]()
        for _ in range(kills):
            async with anyio.create_task_group() as group:
                for writer in writers:
                    group.start_soon(writer.run)
                for _ in range(random.randrange(1, MOST_BETWEEN)):
                    await acknowledgements.acquire()
                faults = await strike(cluster, schema, writers, random.choice(workers))
                for writer in writers:
                    writer.is_stopped = True
            if faults := faults | await find_faults(store, writers):
                return faults
    return set()


@pytest.mark.timeout(300)
async def test_killed_nodes_stop_nobody_else_and_lose_nothing(tmp_path: Path) -> None:
    with citus.running() as cluster:
        assert await kill(tmp_path, cluster, 5, seed=1) == set()
    count("kills of a cluster's nodes", 5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_nodes_killed_a_hundred_times_stop_nobody_else_and_lose_nothing(tmp_path: Path) -> None:
    with citus.running() as cluster:
        assert await kill(tmp_path, cluster, 100, seed=2) == set()
    count("kills of a cluster's nodes", 100)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fault", "seen"), [("early", "lost"), ("entangled", "held up")])
async def test_the_proof_catches(tmp_path: Path, fault: str, seen: str) -> None:
    with citus.running() as cluster:
        assert seen in await kill(tmp_path, cluster, 30, seed=3, fault=fault)
