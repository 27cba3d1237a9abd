"""Embeds documents out of band, so that no writer waits for a model.

What is left to embed is not a queue that could lose an entry: it is read from the store, as the documents without
vectors of the wanted model. One process at a time works on it, under a lease. Where a queue is shared, that process
hands out what is left instead, and every process embeds what it gets. A document that fails is tried again after
growing pauses, and after `MAX_ATTEMPTS` is set aside with its reason until it changes or somebody retries.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from refdesk import errors
from refdesk.core.background.batching import Rounds
from refdesk.core.background.changing import ModelChange
from refdesk.core.background.due import Lookout
from refdesk.core.background.failures import FAILURE_KIND, keep_current, make_key, read_failure
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.background.vectors import embed_all
from refdesk.core.search.breaker import PROBE, find_trouble
from refdesk.core.search.semantics import GONE
from refdesk.model import Collection, Document, JsonValue, Metadata, State
from refdesk.protocols import EmbeddingJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from refdesk.core.background.due import Blocked
    from refdesk.core.background.failures import Failure
    from refdesk.core.background.vectors import Embedded
    from refdesk.core.search.semantics import Semantics
    from refdesk.model import EmbeddedCount
    from refdesk.protocols import Clock, JobOutcome, JobQueue, Store, Transaction

logger = logging.getLogger(__name__)

EmbeddingStatus: TypeAlias = Literal["ready", "pending", "failed"]

LEASE = "embedding"
MAX_ATTEMPTS = 5
BATCH_DOCUMENTS = 16
FIRST_RETRY_SECONDS = 10
IDLE_SECONDS = 2.0
MOST_SECONDS = 60.0
SWEEP_SECONDS = 10.0
"""How long documents handed to workers are left alone. A job that gets lost is handed out again after this long."""

LEFT_SECONDS = 30.0
"""How long a document that was handed out is left to workers: longer than it takes for a dead worker's job to go to
another. After that the process that hands out jobs embeds it, so that a stalled queue costs no more than a delay."""

MOST_HANDED_OUT = 50_000
"""Of how many documents whose turn it is not it is remembered when they were handed out."""

OWN_DOCUMENTS = 128
"""Most such documents that it embeds itself before it hands out jobs again."""

SWEEP_DOCUMENTS = 1000
"""About how many documents are handed out at a time, so that a queue stays small however much is left to do."""

LISTED_DOCUMENTS = 1024
"""How many due documents of a collection are listed at a time: finding them means searching the whole collection,
however few they are."""

LOOKING_SHARE = 0.1
"""Share of the working time spent looking for what else has come due; in a small store that means after every batch."""

CALM_SECONDS = 0.1
"""How long after the last write embedding still lets writers go first, since it takes processors from them."""

MOST_HELD_SECONDS = 30.0
"""How long embedding gives way to writes that keep coming."""

MOST_SET_ASIDE = 0.1
"""Largest share of documents that a new model may refuse and still take over: beyond it, something is wrong with it."""

PROBE_SECONDS = 10.0
"""How long an embedder that failed has for a probe, which says whether its documents are to blame."""


@dataclass(slots=True)
class Indexer:
    """Embeds what is not embedded yet; `run` it as a background task in a server or a worker.

    Attributes:
        trouble: Why `run` could not go on when it last tried; `None` if it could.
        queue: Hands out work to every process; `None` where this process polls by itself.
        at_work: How many pieces of work this process is doing right now.
        make_note: Returns what else is to be stored, in the same commit, about a document that was embedded.
    """

    store: Store
    semantics: Semantics
    clock: Clock
    holder: Holder = field(default_factory=Holder)
    trouble: str | None = None
    queue: JobQueue | None = None
    at_work: int = 0
    make_note: Callable[[Document], Metadata | None] | None = None
    _attends: bool = False
    _gives_way: bool = False
    _held_since: float | None = None
    _orgs_served: dict[str, int] = field(default_factory=dict[str, int])
    _handed_out: dict[EmbeddingJob, float] = field(default_factory=dict[EmbeddingJob, float])
    _all_done: tuple[str, str] | None = None
    _rounds: Rounds[Document, JobOutcome | None] = field(init=False, repr=False)
    _lookout: Lookout = field(init=False, repr=False)
    _change: ModelChange = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._lookout = Lookout(self.store, self.clock)
        self._change = ModelChange(self.store, self.clock, self.semantics)
        self._rounds = Rounds(self._embed_round, BATCH_DOCUMENTS)

    async def run(self) -> None:
        """Work until cancelled. Errors of refdesk are logged and never end the loop; each retry waits longer."""
        self._gives_way = True
        async with anyio.create_task_group() as group:
            if self.queue is not None:
                group.start_soon(self.queue.consume, self.embed_job)
            try:
                await self._keep_sweeping()
            finally:
                await self._stop_attending()

    async def run_once(self) -> int:
        """Embed everything that is due now, if no other process is at it; return how many documents were tried."""
        if not await self.semantics.follow():
            return 0
        # Taken before looking: what is written meanwhile is looked for the next time.
        present = (await self.store.get_change_mark(), self._wanted)
        if present == self._all_done:
            return 0
        if not await self._has_work() and not await self.semantics.is_outdated():
            self._all_done = None if await self.list_failures() else present
            await self._change.tidy_up(self._make_lease())
            return 0
        lease = self._make_lease()
        if not await lease.acquire():
            return 0
        self.at_work += 1
        try:
            return await self._drain(lease)
        finally:
            self.at_work -= 1
            with anyio.CancelScope(shield=True):
                await lease.release()

    async def sweep(self) -> float:
        """Enqueue what is due where a queue is shared, or else embed it; return the seconds until the next sweep.

        While anything is left to the workers, the lease is held: it shows that the backlog has an owner. What they do
        not do for `LEFT_SECONDS` is embedded here after all.
        """
        if self.queue is None or not self.queue.is_shared:
            worked = await self.run_once()
            self.trouble = None
            return 0.0 if worked else IDLE_SECONDS
        if not await self.semantics.follow() or not await self._has_work():
            await self._stop_attending()
            await self.run_once()
            self.trouble = None
            return IDLE_SECONDS
        lease = self._make_lease()
        if not await lease.acquire():
            return IDLE_SECONDS
        self._attends = True
        await self._change.keep_up(lease)
        jobs, is_all = await self._list_jobs()
        is_handed_out = await self.queue.enqueue(jobs)
        if late := self._find_late(jobs, is_all=is_all):
            await self._embed_late(lease, late)
            return 0.0
        return SWEEP_SECONDS if is_handed_out and is_all else IDLE_SECONDS

    async def embed_job(self, job: EmbeddingJob) -> JobOutcome:
        """Embed a document if it still needs it; may be repeated, and run concurrently for the same document.

        Raises:
            EmbedderError: The embedder is down; the document is not to blame.
        """
        if not await self.semantics.follow():
            raise errors.EmbedderError(GONE)
        collection = Collection(job.org, job.toolset)
        [document] = await self.store.get_documents(collection, [job.id])
        if document is None or document.state is State.WITHDRAWN:
            return "gone"
        if await self.store.get_embedded(collection, self._wanted, [job.id]):
            return "current"
        if await self._must_wait(document):
            return "failed"
        self.at_work += 1
        try:
            outcome = await self._rounds.ask(document)
        except errors.EmbedderError as error:
            self.trouble = error.message
            raise
        finally:
            self.at_work -= 1
        self.trouble = None
        return outcome or await self.embed_job(job)

    async def retry_failures(self, orgs: frozenset[str] | None = None, toolset: str | None = None) -> int:
        """Make every document that could not be embedded due again; return how many.

        Args:
            orgs: Only documents of these orgs.
            toolset: Only documents of this toolset.
        """
        failures = [
            failure
            for failure in await self.list_failures()
            if (orgs is None or failure.collection.org in orgs) and toolset in (None, failure.collection.toolset)
        ]
        async with self.store.transaction() as transaction:
            await transaction.remove_metadata([make_key(f.collection, f.id) for f in failures])
        self.semantics.doorbell.ring()
        return len(failures)

    async def list_failures(self) -> list[Failure]:
        """Return what the wanted model could not embed, next to be tried first, those set aside last."""
        model = self._wanted
        failures = [read_failure(record) for record in await self.store.list_metadata(FAILURE_KIND, limit=10_000)]
        return [failure for failure in failures if failure.model == model]

    async def count_pending(self) -> int:
        """Return how many documents, not counting withdrawn ones, have no vectors of the wanted model yet."""
        return count_lacking(await self.count())

    async def count(self) -> list[EmbeddedCount]:
        """Return for each collection how many documents it has, and how many have vectors of the wanted model."""
        return await self.store.count_embedded(self._wanted)

    @property
    def _wanted(self) -> str:
        """The name of the wanted model."""
        return self.semantics.wanted.model.name

    async def _keep_sweeping(self) -> None:
        pause = IDLE_SECONDS
        while True:
            try:
                await self.semantics.load_if_asked()
                await self.semantics.measure_if_asked()
                await self._let_writers_go_first()
                rest = await self.sweep()
                pause = IDLE_SECONDS
            except errors.RefdeskError as error:
                logger.warning("embedding paused", extra={"reason": error.message, "seconds": pause})
                rest, self.trouble = pause, error.message
                pause = min(2 * pause, MOST_SECONDS)
            if rest:
                await self.semantics.doorbell.wait(rest)

    async def _let_writers_go_first(self) -> None:
        """Return once nobody writes, or writing has lasted so long that embedding must go on beside it."""
        while self._gives_way and self._must_hold():
            await anyio.sleep(CALM_SECONDS)
            await self.semantics.load_if_asked()

    def _must_hold(self) -> bool:
        bell = self.semantics.doorbell
        now = bell.now()
        if now - bell.rung_at >= CALM_SECONDS:
            self._held_since = None
            return False
        if self._held_since is None:
            self._held_since = now
        return now - self._held_since < MOST_HELD_SECONDS

    async def _stop_attending(self) -> None:
        if self._attends:
            self._attends = False
            with anyio.CancelScope(shield=True):
                await self._make_lease().release()

    def _find_late(self, jobs: Sequence[EmbeddingJob], *, is_all: bool) -> list[EmbeddingJob]:
        """Note which jobs are handed out; return those left to workers for too long, at most `OWN_DOCUMENTS`.

        They are taken from the end of the list, since workers begin at its start. If more is due than these, the others
        come when it is their turn, and it is remembered until then when they were handed out.
        """
        now, earlier = self.semantics.doorbell.now(), self._handed_out
        since = {job: earlier.pop(job, now) for job in jobs}
        kept = [] if is_all else list(earlier.items())[-MOST_HANDED_OUT:]
        self._handed_out = dict(kept) | since
        return [job for job, instant in since.items() if now - instant >= LEFT_SECONDS][-OWN_DOCUMENTS:]

    async def _embed_late(self, lease: Lease, jobs: Sequence[EmbeddingJob]) -> None:
        logger.warning("jobs not done by workers", extra={"documents": len(jobs)})
        ids: dict[Collection, list[str]] = {}
        for job in jobs:
            ids.setdefault(Collection(job.org, job.toolset), []).append(job.id)
        self.at_work += 1
        try:
            for collection, own in ids.items():
                for start in range(0, len(own), BATCH_DOCUMENTS):
                    if not await self._embed(lease, collection, own[start : start + BATCH_DOCUMENTS]):
                        return
        finally:
            self.at_work -= 1
        self.trouble = None

    def _make_lease(self) -> Lease:
        return Lease(LEASE, self.store, self.clock, self.holder, timedelta(seconds=60))

    async def _has_work(self) -> bool:
        return await self._lookout.has_any(self._wanted, await self._list_blocked())

    async def _find_due(self, limit: int) -> dict[Collection, list[str]]:
        """Return what is due by collection, at most `limit` of each, of those whose turn it is; no list is empty."""
        blocked = await self._list_blocked()
        return await self._lookout.find(self._wanted, blocked, limit, self._get_turn)

    def _take_turns(self, collections: Sequence[Collection]) -> list[Collection]:
        """Return collections in the order in which their orgs were last served, longest ago first, so that none waits
        for everything of another."""
        return sorted(collections, key=self._get_turn)

    def _get_turn(self, collection: Collection) -> int:
        return self._orgs_served.get(collection.org, 0)

    def _note_served(self, org: str) -> None:
        self._orgs_served[org] = max(self._orgs_served.values(), default=0) + 1

    async def _list_jobs(self) -> tuple[list[EmbeddingJob], bool]:
        """Return what is due, a share of every collection, and whether that is all."""
        due = await self._find_due(SWEEP_DOCUMENTS)
        share = max(BATCH_DOCUMENTS, SWEEP_DOCUMENTS // max(1, len(due)))
        jobs: list[EmbeddingJob] = []
        for collection in self._take_turns(list(due)):
            self._note_served(collection.org)
            ids = due[collection][:share]
            jobs += [to_job(one) for one in await self.store.get_documents(collection, ids) if one is not None]
            if len(jobs) >= SWEEP_DOCUMENTS:
                break
        return jobs, len(jobs) < share

    async def _drain(self, lease: Lease) -> int:
        tried, looked = 0, anyio.current_time()
        while due := await self._find_due(LISTED_DOCUMENTS):
            await self._change.keep_up(lease)
            look_again = anyio.current_time() + (anyio.current_time() - looked) / LOOKING_SHARE
            while due:
                [collection, *_] = self._take_turns(list(due))
                ids, left = due[collection][:BATCH_DOCUMENTS], due.pop(collection)[BATCH_DOCUMENTS:]
                due |= {collection: left} if left else {}
                self._note_served(collection.org)
                await self._let_writers_go_first()
                if not await self._embed(lease, collection, ids):
                    return tried
                tried += len(ids)
                if anyio.current_time() >= look_again:
                    break
            looked = anyio.current_time()
        await self._adopt_when_complete()
        return tried

    async def _adopt_when_complete(self) -> None:
        if not await self.semantics.is_outdated() or not await self._is_through():
            return
        # Another process may have adopted a different model meanwhile, and removed vectors of this one.
        self._lookout.forget()
        if not await self._has_work():
            old = await self.semantics.adopt_wanted()
            logger.info("embedding model adopted", extra={"model": self._wanted, "old": str(old)})

    async def _is_through(self) -> bool:
        """Return whether nothing that failed is to be tried again by itself, and little was set aside.

        A document that the wanted model refuses must not keep the others from it for ever.
        """
        failures = await keep_current(self.store, await self.list_failures(), self._wanted)
        if not failures:
            return True
        documents = sum(one.documents for one in await self.count())
        return all(each.is_final for each in failures) and len(failures) <= max(1, documents * MOST_SET_ASIDE)

    async def _list_blocked(self) -> Blocked:
        now = self.clock.now()
        waiting = [each for each in await self.list_failures() if each.retry_at is None or each.retry_at > now]
        blocked: dict[Collection, set[str]] = {}
        for failure in await keep_current(self.store, waiting, self._wanted):
            blocked.setdefault(failure.collection, set()).add(failure.id)
        return {collection: frozenset(ids) for collection, ids in blocked.items()}

    async def _must_wait(self, document: Document) -> bool:
        record = await self.store.get_metadata(make_key(document.collection, document.id))
        if record is None or not read_failure(record).is_of(document, self._wanted):
            return False
        return record.due_at is None or record.due_at > self.clock.now()

    async def _embed(self, lease: Lease, collection: Collection, ids: Sequence[str]) -> bool:
        documents = [document for document in await self.store.get_documents(collection, ids) if document is not None]
        embedded = await self._embed_documents(documents)
        async with self.store.transaction() as transaction:
            if not await lease.renew(transaction):
                return False
            await self._keep(transaction, embedded)
        return True

    async def _embed_round(self, documents: Sequence[Document]) -> list[JobOutcome | None]:
        """Embed documents requested at the same time; the outcome is `None` if the text has changed meanwhile."""
        embedded = await self._embed_documents(documents)
        async with self.store.transaction() as transaction:
            kept = await self._keep(transaction, embedded)
        outcomes: dict[tuple[Collection, str], JobOutcome | None] = {
            (document.collection, document.id): "embedded" if is_kept else None
            for (document, _), is_kept in zip(embedded, kept, strict=True)
        }
        return [outcomes.get((document.collection, document.id), "failed") for document in documents]

    async def _keep(self, transaction: Transaction, embedded: Sequence[Embedded]) -> list[bool]:
        """Write vectors; return for each document whether they were still wanted."""
        model = self.semantics.wanted.model
        kept = [
            await transaction.put_vectors(document.collection, document.id, model, document.text_digest, own)
            for document, own in embedded
        ]
        await transaction.remove_metadata([make_key(document.collection, document.id) for document, _ in embedded])
        if self.make_note is not None:
            notes = [self.make_note(document) for (document, _), is_kept in zip(embedded, kept, strict=True) if is_kept]
            await transaction.put_metadata([note for note in notes if note is not None])
        return kept

    async def _embed_documents(self, documents: Sequence[Document]) -> list[Embedded]:
        try:
            return await embed_all(self.semantics.wanted, documents)
        except errors.EmbedderError:
            # Asked once, before each document waits for every attempt at a service that hangs.
            if await find_trouble(self.semantics.wanted, PROBE_SECONDS) is not None:
                raise
            return await self._embed_one_by_one(documents)

    async def _embed_one_by_one(self, documents: Sequence[Document]) -> list[Embedded]:
        """Embed whatever is possible; a document is to blame only if the embedder still works for another text."""
        done: list[Embedded] = []
        for document in documents:
            try:
                done += await embed_all(self.semantics.wanted, [document])
            except errors.EmbedderError as error:
                await self.semantics.wanted.embed_passages([PROBE])
                await self._note_failure(document, error.message)
        return done

    async def _note_failure(self, document: Document, reason: str) -> None:
        key = make_key(document.collection, document.id)
        async with self.store.transaction() as transaction:
            [now] = await transaction.get_documents(document.collection, [document.id])
            if now is None or now.state is State.WITHDRAWN or now.text_digest != document.text_digest:
                # Nothing may be kept of what was erased while the model read it.
                return
            record = await transaction.get_metadata(key)
            before = read_failure(record) if record is not None else None
            attempts = 1 + (before.attempts if before is not None and before.is_of(document, self._wanted) else 0)
            wait = timedelta(seconds=FIRST_RETRY_SECONDS * 4 ** (attempts - 1))
            value: dict[str, JsonValue] = {"toolset": document.collection.toolset, "id": document.id}
            value |= {"reason": reason, "attempts": attempts, "text_digest": document.text_digest}
            value["model"] = self._wanted
            due_at = None if attempts >= MAX_ATTEMPTS else self.clock.now() + wait
            await transaction.put_metadata([Metadata(key, value, due_at=due_at)])
        logger.warning("document not embedded", extra={"document": document.id, "attempts": attempts})


def to_job(document: Document) -> EmbeddingJob:
    """Return the job of embedding a document as it is now."""
    return EmbeddingJob(document.collection.org, document.collection.toolset, document.id, document.text_digest)


async def get_statuses(
    store: Store, semantics: Semantics, collection: Collection, ids: Sequence[str]
) -> list[EmbeddingStatus]:
    """Return for each document whether its vectors are `ready`, `pending`, or `failed` until somebody retries."""
    embedder = await semantics.get_active() or semantics.wanted
    embedded = await store.get_embedded(collection, embedder.model.name, ids)
    waiting = [id for id in ids if id not in embedded]
    records = await store.get_many_metadata([make_key(collection, id) for id in waiting]) if waiting else []
    failures = [read_failure(record) for record in records if record is not None]
    final = {each.id for each in failures if each.is_final and each.model == semantics.wanted.model.name}
    return ["ready" if id in embedded else "failed" if id in final else "pending" for id in ids]


def count_lacking(counts: Iterable[EmbeddedCount]) -> int:
    """Return how many documents have no vectors of the model that was counted."""
    return sum(max(0, one.documents - one.embedded) for one in counts)
