"""Out-of-band embedding: every document gets vectors without any writer waiting for a model.

What is left to embed is not a queue that could lose an entry: it is read from the truth, as the documents without
vectors of the wanted model. One process at a time works on it, under a lease. A document that fails is tried again
later and later, and after `MAX_ATTEMPTS` is set aside with its reason until it changes or somebody retries.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from refdesk import errors
from refdesk.core import passages
from refdesk.core.leases import Holder, Lease
from refdesk.model import Collection, Document, EmbeddedPassage, JsonValue, Record, RecordKey, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.semantics import Semantics
    from refdesk.protocols import Clock, Embedder, Store

logger = logging.getLogger(__name__)

Embedded: TypeAlias = tuple[Document, list[EmbeddedPassage]]
EmbeddingStatus: TypeAlias = Literal["ready", "pending", "failed"]

LEASE = "embedding"
FAILURE_KIND = "embedding_failure"
MAX_ATTEMPTS = 5
BATCH_DOCUMENTS = 16
FIRST_RETRY_SECONDS = 10
IDLE_SECONDS = 2.0
MOST_SECONDS = 60.0
PROBE = "Is anybody there?"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a document has no vectors."""

    collection: Collection
    id: str
    reason: str
    attempts: int
    text_digest: str
    retry_at: datetime | None

    @property
    def is_final(self) -> bool:
        """Whether it is set aside until somebody retries or its text changes."""
        return self.retry_at is None


@dataclass(slots=True)
class Indexer:
    """Embeds what is not embedded yet; `run` it as a background task in a server or a worker.

    Attributes:
        trouble: Why `run` could not go on when it last tried; `None` when it could.
    """

    store: Store
    semantics: Semantics
    clock: Clock
    holder: Holder = field(default_factory=Holder)
    trouble: str | None = None

    async def run(self) -> None:
        """Work until cancelled. Trouble is logged and tried again, later each time; it never ends the loop."""
        pause = IDLE_SECONDS
        while True:
            try:
                await self.semantics.load_if_asked()
                worked = await self.run_once()
                pause, self.trouble = IDLE_SECONDS, None
            except errors.RefdeskError as error:
                logger.warning("embedding paused", extra={"reason": error.message, "seconds": pause})
                worked, pause, self.trouble = 0, min(2 * pause, MOST_SECONDS), error.message
            if not worked:
                await self.semantics.doorbell.wait(pause)

    async def run_once(self) -> int:
        """Embed everything that is due now, if no other process is at it; return how many documents were tried."""
        collection = await self._find_work()
        if collection is None and not await self.semantics.is_outdated():
            return 0
        lease = Lease(LEASE, self.store, self.clock, self.holder, timedelta(seconds=60))
        if not await lease.acquire():
            return 0
        try:
            return await self._drain(lease)
        finally:
            with anyio.CancelScope(shield=True):
                await lease.release()

    async def retry_failures(self) -> int:
        """Make every document that was set aside due again; return how many."""
        failures = await self.list_failures()
        async with self.store.transaction() as transaction:
            await transaction.remove_records([_failure_key(f.collection, f.id) for f in failures])
        self.semantics.doorbell.ring()
        return len(failures)

    async def list_failures(self) -> list[Failure]:
        """Return what could not be embedded, next to be tried first, those set aside last."""
        return [_failure(record) for record in await self.store.list_records(FAILURE_KIND, limit=10_000)]

    async def count_pending(self) -> int:
        """Return how many documents, not withdrawn, have no vectors of the wanted model yet."""
        model = self.semantics.wanted.model.name
        return sum(
            sum(count for state, count in statistics.documents.items() if state is not State.WITHDRAWN)
            - statistics.embedded.get(model, 0)
            for statistics in await self.store.get_statistics()
        )

    async def _find_work(self) -> Collection | None:
        blocked = await self._list_blocked()
        for statistics in await self.store.get_statistics():
            if await self._list_due(statistics.collection, blocked, 1):
                return statistics.collection
        return None

    async def _drain(self, lease: Lease) -> int:
        tried = 0
        while (collection := await self._find_work()) is not None:
            ids = await self._list_due(collection, await self._list_blocked(), BATCH_DOCUMENTS)
            if not await self._embed(lease, collection, ids):
                return tried
            tried += len(ids)
        await self._adopt_when_complete()
        return tried

    async def _adopt_when_complete(self) -> None:
        if await self.semantics.is_outdated() and not await self.list_failures():
            old = await self.semantics.adopt_wanted()
            logger.info("embedding model adopted", extra={"model": self.semantics.wanted.model.name, "old": str(old)})

    async def _list_blocked(self) -> Mapping[Collection, frozenset[str]]:
        now = self.clock.now()
        blocked: dict[Collection, set[str]] = {}
        for failure in await self.list_failures():
            if (failure.retry_at is None or failure.retry_at > now) and await self._is_current(failure):
                blocked.setdefault(failure.collection, set()).add(failure.id)
        return {collection: frozenset(ids) for collection, ids in blocked.items()}

    async def _is_current(self, failure: Failure) -> bool:
        [document] = await self.store.get_documents(failure.collection, [failure.id])
        return document is not None and document.text_digest == failure.text_digest

    async def _list_due(
        self, collection: Collection, blocked: Mapping[Collection, frozenset[str]], limit: int
    ) -> list[str]:
        skip = blocked.get(collection, frozenset())
        model = self.semantics.wanted.model.name
        ids = await self.store.get_unembedded(collection, model, limit + len(skip))
        return [id for id in ids if id not in skip][:limit]

    async def _embed(self, lease: Lease, collection: Collection, ids: Sequence[str]) -> bool:
        documents = [document for document in await self.store.get_documents(collection, ids) if document is not None]
        try:
            embedded = await _embed_all(self.semantics.wanted, documents)
        except errors.EmbedderError:
            embedded = await self._embed_one_by_one(documents)
        async with self.store.transaction() as transaction:
            if not await lease.renew(transaction):
                return False
            for document, own in embedded:
                model = self.semantics.wanted.model
                await transaction.put_vectors(collection, document.id, model, document.text_digest, own)
            await transaction.remove_records([_failure_key(collection, document.id) for document, _ in embedded])
        return True

    async def _embed_one_by_one(self, documents: Sequence[Document]) -> list[Embedded]:
        """Embed what can be; a document is to blame only when the embedder still answers for another text."""
        done: list[Embedded] = []
        for document in documents:
            try:
                done += await _embed_all(self.semantics.wanted, [document])
            except errors.EmbedderError as error:
                await self.semantics.wanted.embed_passages([PROBE])
                await self._note_failure(document, error.message)
        return done

    async def _note_failure(self, document: Document, reason: str) -> None:
        key = _failure_key(document.collection, document.id)
        async with self.store.transaction() as transaction:
            record = await transaction.get_record(key)
            is_same = record is not None and record.value["text_digest"] == document.text_digest
            attempts = 1 + (_failure(record).attempts if record is not None and is_same else 0)
            wait = timedelta(seconds=FIRST_RETRY_SECONDS * 4 ** (attempts - 1))
            value: dict[str, JsonValue] = {"toolset": document.collection.toolset, "id": document.id}
            value |= {"reason": reason, "attempts": attempts, "text_digest": document.text_digest}
            due_at = None if attempts >= MAX_ATTEMPTS else self.clock.now() + wait
            await transaction.put_records([Record(key, value, due_at=due_at)])
        logger.warning("document not embedded", extra={"document": document.id, "attempts": attempts})


async def get_statuses(
    store: Store, semantics: Semantics, collection: Collection, ids: Sequence[str]
) -> list[EmbeddingStatus]:
    """Return for each document whether its vectors are `ready`, `pending`, or `failed` until somebody retries."""
    embedder = await semantics.get_active() or semantics.wanted
    embedded = await store.get_embedded(collection, embedder.model.name, ids)
    return ["ready" if id in embedded else await _get_status(store, collection, id) for id in ids]


async def _get_status(store: Store, collection: Collection, id: str) -> EmbeddingStatus:
    record = await store.get_record(_failure_key(collection, id))
    return "failed" if record is not None and _failure(record).is_final else "pending"


async def _embed_all(embedder: Embedder, documents: Sequence[Document]) -> list[Embedded]:
    cuts = [passages.split(document.title, document.body) for document in documents]
    texts = [
        passages.embedding_text(document.title, document.body, cut)
        for document, own in zip(documents, cuts, strict=True)
        for cut in own
    ]
    vectors = iter(await embedder.embed_passages(texts))
    return [
        (document, [EmbeddedPassage(start, end, next(vectors)) for start, end in own])
        for document, own in zip(documents, cuts, strict=True)
    ]


def _failure_key(collection: Collection, id: str) -> RecordKey:
    return RecordKey(collection.org, FAILURE_KIND, f"{collection.toolset}/{id}")


def _failure(record: Record) -> Failure:
    value = record.value
    return Failure(
        collection=Collection(record.key.org, str(value["toolset"])),
        id=str(value["id"]),
        reason=str(value["reason"]),
        attempts=int(str(value["attempts"])),
        text_digest=str(value["text_digest"]),
        retry_at=record.due_at,
    )
