from __future__ import annotations

from datetime import timedelta

from refdesk.core.background.embedding import LEASE, MAX_ATTEMPTS, Indexer
from refdesk.core.background.health import STALLED_AFTER, Backlog, Health, ToolsetHealth, measure_backlog
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.clock import FixedClock
from refdesk.core.search.semantics import Semantics
from refdesk.model import Document
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOW, ScriptedEmbedder, make_document

MINUTE = timedelta(minutes=1)


class Bench:
    """A store whose documents are not embedded yet."""

    def __init__(self, embedder: ScriptedEmbedder | None = None) -> None:
        self.clock = FixedClock(NOW)
        self.store = MemoryStore(self.clock)
        self.indexer = self.with_embedder(embedder or ScriptedEmbedder())

    def with_embedder(self, embedder: ScriptedEmbedder) -> Indexer:
        semantics = Semantics(self.store, embedder, lambda _: ScriptedEmbedder())
        return Indexer(self.store, semantics, self.clock)

    async def put(self, *documents: Document) -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents(documents)

    async def measure(self) -> Backlog:
        return await measure_backlog(self.indexer)


async def test_what_waits_is_counted_and_the_oldest_is_known_by_when_it_was_written() -> None:
    bench = Bench()
    assert await bench.measure() == Backlog(0, 0, 0, None, is_attended=False)
    await bench.put(make_document("z", created_at=NOW - 99 * MINUTE))
    bench.clock.advance(MINUTE)
    await bench.put(make_document("a"), make_document("b"))
    assert await bench.measure() == Backlog(3, 0, 0, NOW, is_attended=False)
    await bench.indexer.run_once()
    assert await bench.measure() == Backlog(0, 0, 0, None, is_attended=False)


async def test_what_failed_is_counted_apart_and_does_not_wait() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("bad", "venom"))
    await bench.indexer.run_once()
    bench.clock.advance(MINUTE)
    await bench.put(make_document("good"))
    assert await bench.measure() == Backlog(1, 1, 0, NOW + MINUTE, is_attended=False)
    for _ in range(MAX_ATTEMPTS):
        bench.clock.advance(timedelta(days=1))
        await bench.indexer.run_once()
    assert await bench.measure() == Backlog(0, 0, 1, None, is_attended=False)
    await bench.indexer.retry_failures()
    assert (await bench.measure()).waiting == 1


async def test_a_process_that_embeds_is_seen_until_its_lease_is_over() -> None:
    bench = Bench()
    lease = Lease(LEASE, bench.store, bench.clock, Holder(host="elsewhere"), MINUTE)
    await lease.acquire()
    assert (await bench.measure()).is_attended
    bench.clock.advance(MINUTE)
    assert not (await bench.measure()).is_attended


async def test_a_holder_that_died_on_this_machine_attends_to_nothing() -> None:
    bench = Bench()
    await Lease(LEASE, bench.store, bench.clock, Holder(process=2**22 + 1), MINUTE).acquire()
    assert not (await bench.measure()).is_attended


async def test_while_the_model_changes_what_has_vectors_of_the_old_one_does_not_wait() -> None:
    bench = Bench()
    await bench.put(make_document("old"))
    await bench.indexer.run_once()
    bench.indexer = bench.with_embedder(ScriptedEmbedder("newer-8"))
    assert (await bench.measure()).oldest is None
    bench.clock.advance(MINUTE)
    await bench.put(make_document("new"))
    assert await bench.measure() == Backlog(2, 0, 0, NOW + MINUTE, is_attended=False)


def test_embedding_is_stalled_when_something_waits_too_long_and_nobody_is_at_it() -> None:
    later = NOW + STALLED_AFTER + timedelta(seconds=1)
    long_ago = NOW - timedelta(days=1)
    assert Backlog(1, 0, 0, NOW, is_attended=False).is_stalled(later, long_ago)
    assert not Backlog(1, 0, 0, NOW, is_attended=False).is_stalled(NOW + STALLED_AFTER, long_ago)
    assert not Backlog(1, 0, 0, NOW, is_attended=True).is_stalled(later, long_ago)
    assert not Backlog(1, 0, 0, long_ago, is_attended=False).is_stalled(later, later - MINUTE)
    assert not Backlog(0, 0, 9, None, is_attended=False).is_stalled(later, long_ago)


def test_what_anybody_may_see_holds_no_count() -> None:
    backlog = Backlog(2, 1, 4, NOW - MINUTE, is_attended=True)
    health = Health("degraded", ("Something.",), {"notes": ToolsetHealth(7, NOW)}, NOW, backlog)
    whole = health.to_json()
    assert whole == {
        "status": "degraded",
        "problems": ["Something."],
        "toolsets": {"notes": {"asOf": NOW.isoformat(), "documents": 7}},
        "pendingEmbeddings": 3,
        "failedEmbeddings": 4,
        "oldestUnembeddedSeconds": 60.0,
    }
    assert health.without_counts().to_json() == {
        "status": "degraded",
        "problems": ["Something."],
        "toolsets": {"notes": {"asOf": NOW.isoformat()}},
    }
