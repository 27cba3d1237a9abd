"""Embedding by many processes: work is handed out by one that looks, and done by whoever gets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import pytest

from refdesk.core.background import embedding
from refdesk.core.background.embedding import MAX_ATTEMPTS, Indexer, to_job
from refdesk.core.background.health import measure_backlog
from refdesk.core.clock import FixedClock
from refdesk.core.doorbell import Doorbell
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.errors import EmbedderError
from refdesk.model import Collection, Document, State, Vector
from refdesk.protocols import EmbeddingJob, JobOutcome
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, ScriptedEmbedder, make_document


@dataclass
class HandedOut:
    """A queue whose worker is the test."""

    is_shared: bool = True
    trouble: str | None = None
    jobs: dict[EmbeddingJob, None] = field(default_factory=dict[EmbeddingJob, None])

    def announce(self, jobs: Sequence[EmbeddingJob]) -> None:
        self.jobs.update(dict.fromkeys(jobs))

    async def enqueue(self, jobs: Sequence[EmbeddingJob]) -> bool:
        self.announce(jobs)
        return self.is_shared

    async def forget(self, is_meant: Callable[[EmbeddingJob], bool]) -> bool:
        self.jobs = {job: None for job in self.jobs if not is_meant(job)}
        return True

    async def consume(self, work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]) -> None:
        await anyio.sleep_forever()


class Bench:
    """A store, a queue and as many processes as are asked for."""

    def __init__(self, embedder: ScriptedEmbedder | None = None) -> None:
        self.store = MemoryStore()
        self.clock = FixedClock(NOW)
        self.embedder = embedder or ScriptedEmbedder()
        self.queue = HandedOut()
        self.indexer = self.start_process()

    def start_process(self) -> Indexer:
        return Indexer(self.store, Semantics(self.store, self.embedder), self.clock, queue=self.queue)

    async def put(self, *documents: Document) -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents(documents)

    async def list_missing(self) -> list[str]:
        return await self.store.get_unembedded(NOTES, self.embedder.name, 10_000)

    async def work_off(self) -> list[JobOutcome]:
        jobs = list(self.queue.jobs)
        self.queue.jobs.clear()
        return [await self.indexer.embed_job(job) for job in jobs]


async def test_what_is_due_is_handed_out_and_not_embedded_by_who_looks() -> None:
    bench = Bench()
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    assert await bench.indexer.sweep() == embedding.SWEEP_SECONDS
    assert bench.embedder.seen == []
    assert sorted(job.id for job in bench.queue.jobs) == ["0", "1", "2"]
    assert await bench.work_off() == ["embedded"] * 3
    assert await bench.list_missing() == []


async def test_a_job_handed_out_by_the_sweep_is_the_one_that_was_announced() -> None:
    bench = Bench()
    document = make_document("a")
    await bench.put(document)
    KnowledgeBase(bench.store, queue=bench.queue).note_change(document)
    await bench.indexer.sweep()
    assert list(bench.queue.jobs) == [to_job(document)]


async def test_when_the_queue_is_away_who_looks_embeds() -> None:
    bench = Bench()
    await bench.put(make_document("a"))
    bench.queue.is_shared = False
    assert await bench.indexer.sweep() == 0.0
    assert await bench.list_missing() == []


async def test_a_queue_that_goes_away_meanwhile_is_looked_after_soon() -> None:
    class Lost(HandedOut):
        async def enqueue(self, jobs: Sequence[EmbeddingJob]) -> bool:
            self.is_shared = False
            return False

    bench = Bench()
    bench.queue = bench.indexer.queue = Lost()
    await bench.put(make_document("a"))
    assert await bench.indexer.sweep() == embedding.IDLE_SECONDS
    await bench.indexer.sweep()
    assert await bench.list_missing() == []


async def test_what_no_worker_does_is_embedded_by_who_hands_it_out_and_the_rest_is_left_to_workers() -> None:
    bench, seconds = Bench(), [0.0]
    bench.indexer.semantics = Semantics(bench.store, bench.embedder, doorbell=Doorbell(lambda: seconds[0]))
    await bench.put(*(make_document(f"{n:03}") for n in range(embedding.OWN_DOCUMENTS + 40)))
    await bench.indexer.sweep()
    seconds[0] = embedding.LEFT_SECONDS - 1
    await bench.put(make_document("new"))
    assert await bench.indexer.sweep() == embedding.SWEEP_SECONDS
    assert bench.embedder.seen == []
    seconds[0] = embedding.LEFT_SECONDS
    assert [await bench.indexer.sweep() for _ in range(2)] == [0.0, 0.0]
    assert await bench.list_missing() == ["new"]
    assert len(bench.embedder.seen) == embedding.OWN_DOCUMENTS + 40
    assert await bench.indexer.sweep() == embedding.SWEEP_SECONDS


async def test_what_cannot_be_embedded_is_not_tried_without_end_where_workers_do_nothing() -> None:
    bench, seconds = Bench(ScriptedEmbedder(poison=frozenset({"venom"}))), [0.0]
    bench.indexer.semantics = Semantics(bench.store, bench.embedder, doorbell=Doorbell(lambda: seconds[0]))
    await bench.put(make_document("a", "venom"))
    await bench.indexer.sweep()
    seconds[0] = embedding.LEFT_SECONDS
    assert await bench.indexer.sweep() == 0.0
    assert await bench.indexer.sweep() == embedding.IDLE_SECONDS
    [failure] = await bench.indexer.list_failures()
    assert failure.attempts == 1


async def test_only_one_process_hands_out_and_while_it_does_somebody_attends() -> None:
    bench, other = Bench(), Bench()
    other.store, other.indexer = bench.store, bench.start_process()
    other.indexer.queue = other.queue
    await bench.put(make_document("a"))
    await bench.indexer.sweep()
    assert await other.indexer.sweep() == embedding.IDLE_SECONDS
    assert other.queue.jobs == {}
    assert (await measure_backlog(bench.indexer)).is_attended
    await bench.work_off()
    await bench.indexer.sweep()
    assert not (await measure_backlog(bench.indexer)).is_attended
    await bench.put(make_document("b"))
    await other.indexer.sweep()
    assert [job.id for job in other.queue.jobs] == ["b"]


async def test_a_process_that_is_stopped_lets_another_one_hand_out() -> None:
    bench = Bench()
    await bench.put(make_document("a"))
    async with anyio.create_task_group() as group:
        group.start_soon(bench.indexer.run)
        while not bench.queue.jobs:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    bench.queue.jobs.clear()
    await bench.start_process().sweep()
    assert [job.id for job in bench.queue.jobs] == ["a"]


async def test_what_is_handed_out_at_a_time_is_bounded_and_every_collection_gets_its_share() -> None:
    bench = Bench()
    large, small = Collection("large", "notes"), Collection("small", "notes")
    await bench.put(*(make_document(f"{n:04}", collection=large) for n in range(1200)))
    await bench.put(*(make_document(f"{n}", collection=small) for n in range(5)))
    assert await bench.indexer.sweep() == embedding.IDLE_SECONDS
    orgs = [job.org for job in bench.queue.jobs]
    assert (orgs.count("large"), orgs.count("small")) == (500, 5)


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        (make_document("a"), "embedded"),
        (make_document("a", state=State.WITHDRAWN), "gone"),
        (make_document("another"), "gone"),
        (make_document("a", collection=Collection("other", "notes")), "gone"),
        (make_document("a", "venom"), "failed"),
    ],
)
async def test_a_job_says_what_became_of_it(document: Document, outcome: JobOutcome) -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(document)
    job = to_job(make_document("a"))
    assert await bench.indexer.embed_job(job) == outcome
    assert await bench.indexer.embed_job(job) == ("current" if outcome == "embedded" else outcome)


async def test_a_job_embeds_the_text_that_is_there_now() -> None:
    bench = Bench()
    old = make_document("a", "Old words.")
    await bench.put(old)
    await bench.put(make_document("a", "New words.", version=2))
    assert await bench.indexer.embed_job(to_job(old)) == "embedded"
    assert [text for text in bench.embedder.seen if "New words." in text] == bench.embedder.seen != []


async def test_a_text_that_changes_while_it_is_embedded_is_embedded_anew() -> None:
    class Slow(ScriptedEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            if not self.seen:
                await bench.put(make_document("a", "New words.", version=2))
            return await ScriptedEmbedder.embed_passages(self, texts)

    bench = Bench(Slow())
    await bench.put(make_document("a", "Old words."))
    assert await bench.indexer.embed_job(to_job(make_document("a"))) == "embedded"
    assert await bench.list_missing() == []
    assert "New words." in bench.embedder.seen[-1]


async def test_a_document_that_fails_is_handed_out_again_when_it_is_due_and_then_set_aside() -> None:
    bench = Bench(ScriptedEmbedder(poison=frozenset({"venom"})))
    await bench.put(make_document("a", "venom"))
    for attempt in range(1, MAX_ATTEMPTS + 1):
        await bench.indexer.sweep()
        assert await bench.work_off() == ["failed"]
        [failure] = await bench.indexer.list_failures()
        assert failure.attempts == attempt
        assert await bench.indexer.embed_job(to_job(make_document("a", "venom"))) == "failed"
        assert [one.attempts for one in await bench.indexer.list_failures()] == [attempt]
        await bench.indexer.sweep()
        assert bench.queue.jobs == {}
        bench.clock.advance(timedelta(days=1))
    await bench.indexer.sweep()
    assert bench.queue.jobs == {}


async def test_an_embedder_that_is_down_is_nobodys_failure_and_is_told() -> None:
    bench = Bench(ScriptedEmbedder(is_down=True))
    await bench.put(make_document("a"))
    with pytest.raises(EmbedderError):
        await bench.indexer.embed_job(to_job(make_document("a")))
    assert await bench.indexer.list_failures() == []
    await bench.indexer.sweep()
    assert bench.indexer.trouble == "the model is down"
    bench.embedder.is_down = False
    assert await bench.indexer.embed_job(to_job(make_document("a"))) == "embedded"
    assert bench.indexer.trouble is None


async def test_a_new_model_takes_over_when_everything_handed_out_is_done() -> None:
    bench = Bench(ScriptedEmbedder("old"))
    await bench.put(*(make_document(f"{n}") for n in range(3)))
    await bench.indexer.run_once()
    new = ScriptedEmbedder("new")
    semantics = Semantics(bench.store, new, reopen=lambda _: bench.embedder)
    indexer = Indexer(bench.store, semantics, bench.clock, queue=bench.queue)
    await indexer.sweep()
    assert await semantics.is_outdated()
    for job in list(bench.queue.jobs):
        assert await indexer.embed_job(job) == "embedded"
    await indexer.sweep()
    assert not await semantics.is_outdated()
    assert await bench.list_missing() == ["0", "1", "2"]


async def test_jobs_that_come_at_the_same_time_are_embedded_together_and_each_gets_its_own_outcome() -> None:
    class Counting(ScriptedEmbedder):
        calls = 0

        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            Counting.calls += 1
            await anyio.lowlevel.checkpoint()
            return await ScriptedEmbedder.embed_passages(self, texts)

    bench = Bench(Counting(poison=frozenset({"venom"})))
    documents = [make_document(f"{n:02}", "venom" if n == 35 else "") for n in range(40)]
    await bench.put(*documents)
    outcomes: dict[str, JobOutcome] = {}

    async def embed(document: Document) -> None:
        outcomes[document.id] = await bench.indexer.embed_job(to_job(document))

    async with anyio.create_task_group() as group:
        for document in documents:
            group.start_soon(embed, document)
    assert outcomes == {one.id: "failed" if one.id == "35" else "embedded" for one in documents}
    assert await bench.list_missing() == ["35"]
    # The round with the one that fails is embedded again, one by one.
    assert Counting.calls <= 4 + embedding.BATCH_DOCUMENTS + 1


async def test_many_processes_on_the_same_jobs_leave_one_set_of_vectors_each() -> None:
    bench = Bench()
    documents = [make_document(f"{n}") for n in range(20)]
    await bench.put(*documents)
    async with anyio.create_task_group() as group:
        for process in [bench.start_process() for _ in range(3)]:
            for document in documents:
                group.start_soon(process.embed_job, to_job(document))
    [statistics] = await bench.store.get_statistics()
    assert statistics.embedded == {bench.embedder.name: 20}
