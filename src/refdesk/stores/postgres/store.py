"""The PostgreSQL store: one database, shared by any number of processes and machines."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import anyio
from psycopg.errors import LockNotAvailable

from refdesk.core.clock import SystemClock
from refdesk.core.keeping.encoding import encode_instant
from refdesk.errors import ConfigurationError, StoreError
from refdesk.model import Revision
from refdesk.stores.postgres import archive, backfill, distribution, hnsw, reads, records, scrubbing, writes
from refdesk.stores.postgres.building import LOOK_SECONDS, Graphs
from refdesk.stores.postgres.citus import CitusConnections
from refdesk.stores.postgres.connections import ALL_ORGS, Connections, Scope
from refdesk.stores.postgres.embeddings import Embedded, Vectors
from refdesk.stores.postgres.indexing import Ahead
from refdesk.stores.postgres.migrations import examine, get_missing, load_migrations, migrate
from refdesk.stores.postgres.moving import PostgresMoves
from refdesk.stores.postgres.records import put_metadata
from refdesk.stores.postgres.replicas import Replicas, open_replicas
from refdesk.stores.postgres.rows import encode_passages
from refdesk.stores.postgres.search import Limits, Searcher
from refdesk.stores.postgres.transactions import LONG_SECONDS, Session, Turns, open_session

if TYPE_CHECKING:
    from refdesk.model import (
        AuditEntry,
        Collection,
        CollectionStatistics,
        Document,
        EmbeddedPassage,
        EmbeddingModel,
        FindRequest,
        Found,
        Link,
        Metadata,
        MetadataKey,
        Reference,
        StoreNode,
    )
    from refdesk.protocols import Clock, DocumentVectors, Store
    from refdesk.stores.postgres.distribution import Cluster

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0
"""How long a transaction waits for those of other processes, and any answer is waited for."""


class _PostgresReader:
    def __init__(self, source: reads.Statements) -> None:
        self._source = source

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        return await reads.get_documents(self._source, collection, ids)

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        return await reads.get_revisions(self._source, collection, id)

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """See `Reader.get_digests`."""
        return await reads.get_digests(self._source, collection)

    async def get_unembedded(self, collection: Collection, model: str, limit: int) -> list[str]:
        """See `Reader.get_unembedded`."""
        return await reads.get_unembedded(self._source, collection, model, limit)

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        return await reads.get_embedded(self._source, collection, model, ids)

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        return await reads.get_links(self._source, org, reference)

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return await reads.get_metadata(self._source, key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        return await reads.get_many_metadata(self._source, keys)

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """See `Reader.list_metadata`."""
        return await reads.list_metadata(self._source, kind, org, due_until, limit)

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """See `Reader.get_audit`."""
        return await reads.get_audit(self._source, org, after, limit)

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        return await reads.get_last_audit(self._source, org)


@dataclass(slots=True)
class Known:
    """What a transaction has read or written, and need not read again: the locks of their orgs keep others out."""

    records: dict[MetadataKey, Metadata | None] = field(default_factory=dict["MetadataKey", "Metadata | None"])
    contents: dict[Collection, writes.Content] = field(default_factory=dict["Collection", writes.Content])
    last_audits: dict[str, AuditEntry | None] = field(default_factory=dict[str, "AuditEntry | None"])


class PostgresTransaction(_PostgresReader):
    """See `Transaction`."""

    def __init__(self, session: Session, clock: Clock, *, is_loading: bool) -> None:
        super().__init__(session)
        self._session = session
        self._clock = clock
        self._is_loading = is_loading
        self._vectors = Vectors(session, is_loading=is_loading)
        self._known, self._ahead = Known(), Ahead()

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return (await self.get_many_metadata([key]))[0]

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        new = list(dict.fromkeys(key for key in keys if key not in self._known.records))
        if new:
            self._known.records.update(zip(new, await reads.get_many_metadata(self._session, new), strict=True))
        return [self._known.records[key] for key in keys]

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        if org not in self._known.last_audits:
            self._known.last_audits[org] = await reads.get_last_audit(self._session, org)
        return self._known.last_audits[org]

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.expect`."""
        by_collection: defaultdict[Collection, list[str]] = defaultdict(list)
        for document in documents:
            by_collection[document.collection].append(document.id)
        orgs = {key.org for key in keys} | {collection.org for collection in by_collection}
        if len(orgs) != 1 or self._session.has_begun:
            return
        self._session.is_brief = True
        self._ahead.begin(documents)
        contents = [writes.Asked(collection, ids) for collection, ids in by_collection.items()]
        asked = [statement for content in contents for statement in content.statements]
        rows = await self._session.send(Scope(orgs.pop()), *asked, *reads.ask_for_metadata(keys))
        for content in contents:
            opened = content.read([rows.pop(0) for _ in content.statements])
            self._known.contents[content.collection] = opened
            self._known.last_audits[content.collection.org] = opened.last_audit
        self._known.records.update(zip(keys, reads.match_metadata(keys, rows), strict=True))

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        now = self._clock.now()
        await self.put_revisions([Revision(document, now) for document in documents])

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """See `Transaction.put_revisions`."""
        rows = await writes.prepare(revisions, self._ahead)
        # Of vectors that are replaced the count is taken at once.
        await self._vectors.count()
        ends = await writes.put_revisions(self._session, rows, self._known.contents, is_loading=self._is_loading)
        self._known.last_audits.update(ends)

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """See `Transaction.put_vectors`. A withdrawn document counts as gone; vectors are kept in half precision."""
        text = Embedded(id, text_digest, encode_passages(model, passages))
        return bool(await self._vectors.put(collection, model, [text]))

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """See `Transaction.put_all_vectors`. All of a collection and a model are sent together."""
        together: defaultdict[tuple[Collection, EmbeddingModel], list[Embedded]] = defaultdict(list)
        for document, vectors in documents:
            for model, passages in vectors:
                text = Embedded(document.id, document.text_digest, encode_passages(model, passages))
                together[document.collection, model].append(text)
        for (collection, model), texts in together.items():
            await self._vectors.put(collection, model, texts)

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        return await self._vectors.remove(model)

    @property
    def lacks_graph(self) -> bool:
        """Whether it brought a model whose graph is still to be built."""
        return self._vectors.lack_graph

    async def count_vectors(self) -> None:
        """Bring the counts of vectors up to date, before the transaction ends."""
        await self._vectors.count()

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.erase_documents`."""
        now = self._clock.now()
        rows = writes.prepare_revisions([Revision(document, now) for document in documents])
        await self._vectors.count()
        self._known.contents.clear()
        await writes.erase_documents(self._session, rows)

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        await records.put_links(self._session, links)

    async def remove_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.remove_links`."""
        await records.remove_links(self._session, links)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `Transaction.put_audit`."""
        last = {org: end.number if end else 0 for org, end in self._known.last_audits.items()}
        await records.put_audit(self._session, entries, last)
        for entry in sorted(entries, key=lambda each: each.number):
            self._known.last_audits[entry.org] = entry

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """See `Transaction.put_metadata`."""
        await put_metadata(self._session, records)
        self._known.records.update((record.key, record) for record in records)

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.remove_metadata`."""
        await records.remove_metadata(self._session, keys)
        self._known.records.update(dict.fromkeys(keys))


class PostgresStore(_PostgresReader):
    """See `Store`.

    Attributes:
        connections: To the database.
        graphs: Those of the models whose vectors it holds.
    """

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        engine: str,
        searcher: Searcher,
        replicas: Replicas | None = None,
    ) -> None:
        super().__init__(connections)
        self.connections = connections
        self._clock = clock
        self._engine = engine
        self._searcher = searcher
        self._replicas = replicas
        self._turns = Turns()
        self._is_distributed = isinstance(connections, CitusConnections)
        if not self._is_distributed:
            self.moves = PostgresMoves(connections)
        self._loads = 0
        self.graphs = Graphs(connections)

    obstacle: str | None = None

    @property
    def engine(self) -> str:
        """See `Store.engine`."""
        return self._engine

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[PostgresTransaction, None]:
        """See `Store.transaction`."""
        async with open_session(self.connections, self._turns) as session:
            transaction = PostgresTransaction(session, self._clock, is_loading=self._loads > 0)
            yield transaction
            await transaction.count_vectors()
        if transaction.lacks_graph:
            self.graphs.begin()

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        found = await self._replicas.find(request) if self._replicas is not None else None
        return await self._searcher.find(request) if found is None else found

    async def scrub(self) -> bool:
        """See `Store.scrub`.

        VACUUM lets the room of removed rows be used again and tidies the pages; it does not overwrite it. Only VACUUM
        FULL would, which keeps everybody out for as long as it takes to write all tables and indexes anew.
        """
        await scrubbing.vacuum(self.connections)
        return False

    async def list_nodes(self) -> list[StoreNode]:
        """See `Store.list_nodes`."""
        nodes = await distribution.list_nodes(self.connections) if self._is_distributed else []
        return nodes + (await self._replicas.list_nodes() if self._replicas is not None else [])

    async def get_statistics(self) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        return await reads.get_statistics(self.connections)

    async def get_change_mark(self) -> str:
        """See `Store.get_change_mark`."""
        return await reads.get_change_mark(self.connections)

    async def check(self) -> None:
        """See `Store.check`."""
        async with open_session(self.connections, self._turns) as session:
            await writes.probe(session)

    async def list_documents(self, after: tuple[Collection, str] | None, limit: int) -> list[tuple[Collection, str]]:
        """See `Archive.list_documents`."""
        return await archive.list_documents(self.connections, after, limit)

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        """See `Archive.get_histories`."""
        return await archive.get_histories(self.connections, collection, ids)

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        """See `Archive.get_vectors`."""
        return await archive.get_vectors(self.connections, collection, ids)

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """See `Archive.list_links`."""
        return await archive.list_links(self.connections, after, limit)

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        """See `Archive.list_all_metadata`."""
        return await archive.list_all_metadata(self.connections, after, limit)

    async def list_audited_orgs(self) -> list[str]:
        """See `Archive.list_audited_orgs`."""
        return await archive.list_audited_orgs(self.connections)

    @asynccontextmanager
    async def loading(self) -> AsyncGenerator[None, None]:
        """See `Archive.loading`. The graphs are built at its end: to put vectors in one by one takes far longer.

        When cancelled it builds none, as a cancelled caller must not wait; the next to open the store does.
        """
        await self.graphs.drop()
        try:
            with self._loaded():
                yield
        except Exception:
            # Why the load failed matters more than a graph.
            with suppress(StoreError):
                await self._end_load()
            raise
        await self._end_load()

    @contextmanager
    def _loaded(self) -> Generator[None, None, None]:
        self._loads += 1
        try:
            yield
        finally:
            self._loads -= 1

    async def _end_load(self) -> None:
        if not self._loads:
            async with open_session(self.connections, self._turns, is_alone=True) as session:
                await session.take_time(ALL_ORGS)
                await writes.count_loaded(session)
            await self.graphs.build()
            await archive.analyze(self.connections)


@asynccontextmanager
async def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
    limits: Limits | None = None,
    read: Sequence[str] = (),
) -> AsyncGenerator[Store, None]:
    """Yield the store kept in a PostgreSQL database; its tables are made where there are none.

    Args:
        url: `postgresql://user:password@host:port/database`, with libpq's parameters. The role owns the tables and
            should be neither superuser nor BYPASSRLS, so that row-level security binds it. The tables stand in the
            first schema of its search path.
        clock: Says when revisions were recorded; the machine's clock by default.
        patience_seconds: How long a transaction waits for another's, and any one answer is waited for.
        limits: Up to what size searches do everything; small collections are searched as exactly as by any engine.
        read: The URLs of standbys that searches may be asked of.

    Raises:
        ConfigurationError: The database cannot serve, or is of a newer refdesk or another program.
        StoreError: It cannot be reached or used; the message says why.
    """
    clock = clock or SystemClock()
    connections = Connections(url, patience_seconds)
    try:
        cluster = await distribution.find_cluster(connections)
        engine = await _prepare(connections, clock)
        if cluster is not None:
            if read:
                raise ConfigurationError(
                    "REFDESK_STORE names a Citus cluster, whose searches go to its nodes: leave REFDESK_STORE_READ out."
                )
            connections = await _join_cluster(connections, cluster)
            engine = f"Citus {cluster.version} on {cluster.nodes} nodes, {engine}"
        if await backfill.is_outdated(connections):
            await _work(connections, backfill.rebuild)
        limits = limits or Limits()
        async with open_replicas(connections, read, limits) as replicas:
            store = PostgresStore(connections, clock, engine, Searcher(connections, limits), replicas)
            if not await hnsw.is_complete(connections):
                store.graphs.begin()
            try:
                yield store
            finally:
                await store.graphs.stop()
    finally:
        with anyio.CancelScope(shield=True):
            await connections.pool.close()


async def _prepare(connections: Connections, clock: Clock) -> str:
    engine, has_schema = await examine(connections)
    migrations = load_migrations()
    if not has_schema or await get_missing(connections, migrations):
        await _work(connections, lambda session: migrate(session, migrations, encode_instant(clock.now())))
    return engine


async def _join_cluster(connections: Connections, cluster: Cluster) -> Connections:
    if not await distribution.is_complete(connections):
        await _work(connections, distribution.distribute)
    return CitusConnections(connections, cluster.path, await distribution.list_tables(connections))


class _HeldError(StoreError):
    """Another process works on the store."""


async def _work(connections: Connections, work: Callable[[Session], Awaitable[None]]) -> None:
    """Do what nobody can do without; wait for as long as another process does it, or anything else that is long."""
    deadline = anyio.current_time() + LONG_SECONDS
    while True:
        try:
            return await _try_work(connections, work)
        except _HeldError:
            if anyio.current_time() > deadline:
                raise
            logger.info("another process works on the store; waiting for it")
            await asyncio.sleep(LOOK_SECONDS)


async def _try_work(connections: Connections, work: Callable[[Session], Awaitable[None]]) -> None:
    try:
        async with open_session(connections, Turns(), is_alone=True) as session:
            if not await hnsw.hold(session):
                raise _HeldError(hnsw.BUSY)
            await work(session)
    except StoreError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise _HeldError(error.message) from error.__cause__
        raise
