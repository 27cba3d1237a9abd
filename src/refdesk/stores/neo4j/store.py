"""The Neo4j store: concurrent reads, and transactions serialised by a lock in the database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread

from refdesk.core.clock import SystemClock
from refdesk.errors import StoreError
from refdesk.stores.neo4j import archive, reads, writes
from refdesk.stores.neo4j.address import parse_address
from refdesk.stores.neo4j.connections import Database, Limits, OpenTransaction, Rows
from refdesk.stores.neo4j.failures import UNREACHABLE
from refdesk.stores.neo4j.migrations import VectorIndexes, get_space_name, prepare, require_server
from refdesk.stores.neo4j.reads import Neo4jReader
from refdesk.stores.neo4j.rows import ANALYSIS_VERSION, encode_document, encode_instant, encode_passages
from refdesk.stores.neo4j.search import Searcher
from refdesk.stores.neo4j.silence import SilentError
from refdesk.stores.neo4j.writes import Place, VectorRow

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import (
        AuditEntry,
        Collection,
        CollectionStatistics,
        Document,
        EmbeddedCount,
        EmbeddedPassage,
        EmbeddingModel,
        FindRequest,
        Found,
        Link,
        Metadata,
        MetadataKey,
        Revision,
        StoreNode,
    )
    from refdesk.protocols import Clock, DocumentVectors, Store

    _Embedded: TypeAlias = tuple[Collection, str, str, Sequence[EmbeddedPassage]]
    """A document with the digest of its embedded text and the passages."""

_LOCK = "MATCH (r:Refdesk {name: $name}) SET r.lock = 0 RETURN r.analysis, r.seq"
_PROBE = "MATCH (r:Refdesk {name: $name}) SET r.checked_at = $now"
_RENEWED = "A newer refdesk works on this store. Upgrade this one."


class _Session:
    """One transaction; begins and locks with its first statement, so that nobody waits while rows are encoded."""

    def __init__(self, database: Database, place: Place) -> None:
        self._database = database
        self._place = place
        self._stack = AsyncExitStack()
        self._open: OpenTransaction | None = None
        self._has_ended = False
        self.sequence = 0

    async def run(self, statement: str, **parameters: object) -> Rows:
        if self._has_ended:
            raise RuntimeError("this transaction has ended")
        if self._open is None:
            self._open = await self._begin()
        return await self._open.run(statement, **parameters)

    async def commit(self) -> None:
        if self._open is not None:
            await self._open.commit()
            self._database.note_sequence(self.sequence, least=0)

    async def end(self) -> None:
        """Roll back what was not committed."""
        self._has_ended = True
        await self._stack.aclose()

    async def _begin(self) -> OpenTransaction:
        try:
            return await self._take_lock()
        except StoreError as error:
            if error.message != UNREACHABLE or isinstance(error, SilentError):
                raise
        # The connection may be from before a restart of the server; nothing has been written yet.
        await self._stack.aclose()
        return await self._take_lock()

    async def _take_lock(self) -> OpenTransaction:
        opened, least = await self._stack.enter_async_context(self._database.begin()), self._database.sequence
        rows = await opened.take_lock(_LOCK, name=self._place.name)
        if not rows:
            raise StoreError(reads.GONE)
        if rows[0][0] > ANALYSIS_VERSION:
            raise StoreError(_RENEWED)
        self._database.note_sequence(rows[0][1], least)
        return opened


class Neo4jTransaction(Neo4jReader):
    """See `Transaction`."""

    def __init__(self, session: _Session, indexes: VectorIndexes, place: Place, clock: Clock) -> None:
        super().__init__(session, place.space)
        self._session = session
        self._indexes = indexes
        self._place = place
        self._clock = clock

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.expect`."""

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        await self._put(documents, [self._clock.now()] * len(documents))

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """See `Transaction.put_revisions`."""
        await self._put([each.document for each in revisions], [each.recorded_at for each in revisions])

    async def _put(self, documents: Sequence[Document], recorded_at: Sequence[datetime]) -> None:
        encode = partial(encode_document, namespace=self._place.space)
        rows = await anyio.to_thread.run_sync(lambda: [encode(document) for document in documents])
        await writes.put_documents(self._session, self._place, rows, recorded_at)

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """See `Transaction.put_vectors`. A withdrawn document counts as gone; vectors are kept in half precision."""
        return bool(await self._put_vectors(model, [(collection, id, text_digest, passages)]))

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """See `Transaction.put_all_vectors`."""
        by_model: dict[EmbeddingModel, list[_Embedded]] = {}
        for document, vectors in documents:
            for model, passages in vectors:
                embedded = (document.collection, document.id, document.text_digest, passages)
                by_model.setdefault(model, []).append(embedded)
        for model, together in by_model.items():
            await self._put_vectors(model, together)

    async def _put_vectors(self, model: EmbeddingModel, embedded: Sequence[_Embedded]) -> set[tuple[Collection, str]]:
        rows = [
            VectorRow(collection, id, text_digest, encode_passages(model, passages))
            for collection, id, text_digest, passages in embedded
        ]
        await self._indexes.ensure(model.dimensions)
        return await writes.put_vectors(self._session, self._place, model, rows)

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        return await writes.remove_vectors(self._session, self._place, model)

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.erase_documents`."""
        rows = [encode_document(document, self._place.space) for document in documents]
        await writes.erase_documents(self._session, self._place, rows, self._clock.now())

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        await writes.put_links(self._session, self._place, links)

    async def remove_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.remove_links`."""
        await writes.remove_links(self._session, self._place, links)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `Transaction.put_audit`."""
        await writes.put_audit(self._session, self._place, entries)

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """See `Transaction.put_metadata`."""
        await writes.put_metadata(self._session, self._place, records)

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.remove_metadata`."""
        await writes.remove_metadata(self._session, self._place, keys)

    async def leave_no_trace(self) -> None:
        """See `Transaction.leave_no_trace`; Neo4j offers no way to overwrite removed data."""


class Neo4jStore(Neo4jReader):
    """See `Store`."""

    def __init__(self, database: Database, agent: str, namespace: str, clock: Clock) -> None:
        super().__init__(database, namespace)
        self._database = database
        self._agent = agent
        self._place = Place(namespace, get_space_name(namespace))
        self._clock = clock
        version = require_server(agent)
        self._indexes = VectorIndexes(database, version)
        self._searcher = Searcher(database, namespace, version, self._indexes)
        # Tasks of this process queue here; in the database each would hold a connection while waiting.
        self._turn = anyio.Lock()

    obstacle: str | None = None

    @property
    def engine(self) -> str:
        """See `Store.engine`."""
        return self._agent.replace("/", " ")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Neo4jTransaction, None]:
        """See `Store.transaction`."""
        async with self._take_turn():
            session = _Session(self._database, self._place)
            try:
                yield Neo4jTransaction(session, self._indexes, self._place, self._clock)
                await session.commit()
            finally:
                await session.end()

    @asynccontextmanager
    async def _take_turn(self) -> AsyncGenerator[None, None]:
        with self._database.silence.watched():
            await self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        return await self._searcher.find(request)

    async def catch_up(self) -> None:
        """See `Store.catch_up`; the server keeps its indexes."""

    async def scrub(self) -> bool:
        """See `Store.scrub`.

        Neo4j reuses the space of removed records without overwriting it first, and offers no means to overwrite it.
        """
        return False

    async def list_nodes(self) -> list[StoreNode]:
        """See `Store.list_nodes`."""
        return []

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        return await reads.get_statistics(self._database, self._place.space, org)

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`; each of the documents is looked at."""
        # Read before the counts, so that what is written meanwhile counts as written later.
        marks = await self.list_collections()
        statistics = await self.get_statistics()
        return [each.count(model, marks[each.collection]) for each in statistics if each.collection in marks]

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        """See `Store.recount_embedded`; all is counted when it is asked for."""

    async def list_models(self) -> list[str]:
        """See `Store.list_models`."""
        return await reads.list_models(self._database, self._place.space)

    async def list_collections(self) -> Mapping[Collection, str]:
        """See `Store.list_collections`."""
        return await reads.list_collections(self._database, self._place.space)

    async def get_change_mark(self) -> str:
        """See `Store.get_change_mark`."""
        least = self._database.sequence
        sequence = await reads.get_sequence(self._database, self._place.name)
        self._database.note_sequence(sequence, least)
        return str(sequence)

    async def check(self) -> None:
        """See `Store.check`."""
        async with self._take_turn():
            session = _Session(self._database, self._place)
            try:
                await session.run(_PROBE, name=self._place.name, now=encode_instant(self._clock.now()))
                await session.commit()
            finally:
                await session.end()

    async def list_documents(self, after: tuple[Collection, str] | None, limit: int) -> list[tuple[Collection, str]]:
        """See `Archive.list_documents`."""
        return await archive.list_documents(self._database, self._place.space, after, limit)

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        """See `Archive.get_vectors`."""
        return await archive.get_vectors(self._database, self._place.space, collection, ids)

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """See `Archive.list_links`."""
        return await archive.list_links(self._database, self._place.space, after, limit)

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        """See `Archive.list_all_metadata`."""
        return await archive.list_all_metadata(self._database, self._place.space, after, limit)

    async def list_audited_orgs(self) -> list[str]:
        """See `Archive.list_audited_orgs`."""
        return await archive.list_audited_orgs(self._database, self._place.space)

    @asynccontextmanager
    async def loading(self) -> AsyncGenerator[None, None]:
        """See `Archive.loading`; the indexes serve other namespaces too, so none may be dropped."""
        yield


@asynccontextmanager
async def open_store(
    url: str, *, clock: Clock | None = None, limits: Limits | None = None
) -> AsyncGenerator[Store, None]:
    """Yield the store in the database that the URL names; missing constraints and indexes are created.

    Args:
        url: See `address.parse_address`.
        clock: Says when revisions were recorded; the machine's clock by default.
        limits: How long to wait for the database.

    Raises:
        ConfigurationError: The URL is malformed, the server not Neo4j or too old, or the data from a newer refdesk.
        StoreError: The server cannot be reached or refuses access; the message says why.
    """
    address = parse_address(url)
    database = Database(address, limits or Limits())
    try:
        agent = await prepare(database, address.namespace)
        yield Neo4jStore(database, agent, address.namespace, clock or SystemClock())
    finally:
        await database.close()
