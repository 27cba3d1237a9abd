"""With many orgs, finding what is to be embedded and telling how far that is cost no more than with few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from refdesk.core.background import embedding
from refdesk.core.background.due import MOST_COLLECTIONS, MOST_LOOKED_AT, SURE_FOR, Lookout
from refdesk.core.background.embedding import Indexer
from refdesk.core.background.health import measure_backlog
from refdesk.core.clock import FixedClock
from refdesk.core.doorbell import Doorbell
from refdesk.core.search.semantics import Semantics
from refdesk.model import Collection, Document, EmbeddedCount, Revision
from refdesk.protocols import EmbeddingJob, Store
from refdesk.stores.memory import MemoryStore
from tests.core.background.test_shared_embedding import HandedOut
from tests.core.fakes import NOW, ScriptedEmbedder, make_document
from tests.reliability.delegates import DelegatingStore

ORGS = 250


class Observed(DelegatingStore):
    """Counts what is asked, of which collections; what is counted as embedded may be wrong."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked = Counter[str]()
        self.looked_at = set[Collection]()
        self.miscounted = dict[Collection, int]()
        self.recounted = list[Collection]()

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        self.asked["get_unembedded"] += 1
        self.looked_at.add(collection)
        return await super().get_unembedded(collection, model, limit, since)

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        self.asked["get_revisions"] += 1
        return await super().get_revisions(collection, id)

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        self.asked["get_histories"] += 1
        return await super().get_histories(collection, ids)

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        self.asked["get_documents"] += 1
        return await super().get_documents(collection, ids)

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        counts = await super().count_embedded(model)
        return [replace(each, embedded=self.miscounted.get(each.collection, each.embedded)) for each in counts]

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        self.recounted.append(collection)
        self.miscounted.pop(collection, None)


def in_org(number: int) -> Collection:
    return Collection(f"org-{number:04}", "notes")


class Bench:
    """A store of many orgs with a document each."""

    def __init__(self) -> None:
        self.clock = FixedClock(NOW)
        self.store = Observed(MemoryStore(self.clock))
        self.embedder = ScriptedEmbedder()

    def start_process(self) -> Indexer:
        return Indexer(self.store, Semantics(self.store, self.embedder), self.clock)

    async def put(self, *documents: Document) -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents(documents)

    async def fill(self) -> None:
        await self.put(*(make_document("a", collection=in_org(number)) for number in range(ORGS)))

    async def count_pending(self) -> int:
        return await self.start_process().count_pending()


async def test_a_process_that_starts_asks_only_for_some_of_the_orgs_in_which_all_is_embedded() -> None:
    bench = Bench()
    await bench.fill()
    while await bench.start_process().run_once():
        pass
    process = bench.start_process()
    bench.store.asked.clear()
    assert await process.run_once() == 0
    assert 0 < bench.store.asked["get_unembedded"] <= MOST_LOOKED_AT
    await bench.put(make_document("new", collection=in_org(ORGS - 1)))
    bench.store.asked.clear()
    assert await process.run_once() == 1
    assert bench.store.asked["get_unembedded"] < 10


async def test_what_is_due_in_many_orgs_is_found_in_some_at_a_time_and_all_is_embedded() -> None:
    bench = Bench()
    await bench.fill()
    process = bench.start_process()
    found = await Lookout(bench.store, bench.clock).find(bench.embedder.name, {}, 10)
    assert len(found) == MOST_COLLECTIONS < ORGS
    assert await process.run_once() == ORGS
    assert await bench.count_pending() == 0


async def test_what_is_counted_as_embedded_but_is_not_is_found_in_the_end() -> None:
    bench = Bench()
    await bench.fill()
    bench.store.miscounted = {in_org(number): 1 for number in range(ORGS)}
    process = bench.start_process()
    for number in range(-(-ORGS // MOST_LOOKED_AT)):
        await bench.put(make_document(f"{number}", collection=in_org(number)))
        await process.run_once()
        bench.clock.advance(SURE_FOR)
    missing = [n for n in range(ORGS) if await bench.store.get_unembedded(in_org(n), bench.embedder.name, 1)]
    assert missing == []


async def test_a_count_that_is_wrong_is_made_again_and_no_other() -> None:
    bench = Bench()
    await bench.fill()
    while await bench.start_process().run_once():
        pass
    bench.store.recounted.clear()
    bench.store.miscounted = {in_org(7): 0, in_org(8): 5}
    assert await bench.count_pending() == 1
    for number in range(-(-ORGS // MOST_LOOKED_AT)):
        bench.clock.advance(SURE_FOR)
        await bench.put(make_document(f"{number}", collection=in_org(100 + number)))
        await bench.start_process().run_once()
    assert sorted(bench.store.recounted) == [in_org(7), in_org(8)]
    assert await bench.count_pending() == 0


async def test_how_far_it_is_behind_is_told_after_a_look_at_few_documents() -> None:
    bench = Bench()
    await bench.fill()
    indexer = bench.start_process()
    bench.store.asked.clear()
    backlog = await measure_backlog(indexer)
    assert (backlog.waiting, backlog.oldest) == (ORGS, NOW)
    assert bench.store.asked.total() < 50
    await bench.put(*(make_document(f"{number:04}", collection=in_org(0)) for number in range(300)))
    bench.store.asked.clear()
    assert (await measure_backlog(indexer)).waiting == ORGS + 300
    assert bench.store.asked.total() < 50


async def test_whether_documents_are_still_those_that_failed_is_asked_once_for_each_collection() -> None:
    bench = Bench()
    bench.embedder.poison = frozenset({"venom"})
    await bench.put(*(make_document(f"{number}", "venom", collection=in_org(0)) for number in range(20)))
    process = bench.start_process()
    await process.run_once()
    assert len(await process.list_failures()) == 20
    bench.store.asked.clear()
    assert await process.run_once() == 0
    assert bench.store.asked["get_documents"] <= 3


@pytest.mark.parametrize("orgs", [1, 70])
async def test_what_no_worker_does_is_embedded_by_who_hands_it_out_however_many_orgs_wait(orgs: int) -> None:
    bench, seconds = Bench(), [0.0]
    for number in range(orgs):
        await bench.put(*(make_document(f"{n:02}", collection=in_org(number)) for n in range(20)))
    semantics = Semantics(bench.store, bench.embedder, doorbell=Doorbell(lambda: seconds[0]))
    process = Indexer(bench.store, semantics, bench.clock, queue=HandedOut())
    handed_out = set[EmbeddingJob]()
    while len(handed_out) < orgs * 16:
        await process.sweep()
        assert isinstance(process.queue, HandedOut)
        handed_out |= set(process.queue.jobs)
        seconds[0] += embedding.IDLE_SECONDS
        assert seconds[0] < orgs * embedding.SWEEP_SECONDS + embedding.LEFT_SECONDS
    while await bench.count_pending():
        await process.sweep()
        seconds[0] += embedding.IDLE_SECONDS
        assert seconds[0] < 60 * embedding.LEFT_SECONDS
    assert len(bench.embedder.seen) == orgs * 20
