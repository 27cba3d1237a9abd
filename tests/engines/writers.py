"""Writers that go on while servers are killed and started again, and what must be there of what they wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from refdesk.errors import StoreError
from refdesk.model import Collection, Metadata, MetadataKey
from refdesk.protocols import Store
from tests.stores.samples import MODEL, asking, find_ids, make_document, passage

MOST_BETWEEN = 12
"""Writes that are acknowledged before the next kill, at most."""


@dataclass
class Writer:
    """Writes a document, its vector and a count in one transaction, until told to stop.

    Attributes:
        name: Its own within its org.
        is_early: A planted fault: acknowledges before it is done.
        also: A planted fault: an org that is written to in the same transaction.
        failed: How many writes were refused.
    """

    name: str
    collection: Collection
    store: Store
    acknowledgements: anyio.Semaphore
    is_early: bool = False
    also: str | None = None
    acknowledged: int = 0
    failed: int = 0
    is_stopped: bool = False
    outcome: anyio.Event = field(default_factory=anyio.Event)

    @property
    def key(self) -> MetadataKey:
        return MetadataKey(self.collection.org, "written", self.name)

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
        document = make_document(f"{self.name}-{number}", f"apple {self.name}", collection=self.collection)
        if self.is_early:
            self._acknowledge()
        async with self.store.transaction() as transaction:
            await transaction.put_documents([document])
            passages = [passage([1, 0, 0, 0])]
            await transaction.put_vectors(self.collection, document.id, MODEL, document.text_digest, passages)
            written = [Metadata(self.key, {"n": number + 1})]
            if self.also is not None:
                written.append(Metadata(MetadataKey(self.also, "beside", self.name), {"n": number}))
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
    """Return what is wrong: "lost" (acknowledged, not there) or "torn" (there in part, or twice)."""
    faults: set[str] = set()
    expected: defaultdict[Collection, set[str]] = defaultdict(set)
    for writer in writers:
        written = await writer.count()
        expected[writer.collection] |= {f"{writer.name}-{number}" for number in range(written)}
        if written < writer.acknowledged:
            faults.add("lost")
    for collection, right in expected.items():
        ids = set(await store.get_digests(collection))
        found = await find_ids(store, asking("apple", collection=collection, depth=100_000))
        embedded = set(await store.get_embedded(collection, MODEL.name, sorted(ids)))
        if not ids == right == set(found) == embedded or len(found) != len(ids):
            faults.add("torn")
    return faults
