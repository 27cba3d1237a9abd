"""The PostgreSQL store: one database, shared by any number of processes and machines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from psycopg.errors import LockNotAvailable

from refdesk.core.clock import SystemClock
from refdesk.core.keeping.encoding import encode_instant
from refdesk.errors import ConfigurationError, StoreError
from refdesk.model import Revision
from refdesk.stores.postgres import archive, backfill, distribution, embeddings, hnsw, reads, scrubbing, writes
from refdesk.stores.postgres.address import lead_to_primary
from refdesk.stores.postgres.building import LOOK_SECONDS, Graphs
from refdesk.stores.postgres.citus import CitusConnections
from refdesk.stores.postgres.connections import ALL_ORGS, Connections
from refdesk.stores.postgres.known import Knowledge
from refdesk.stores.postgres.migrations import examine, get_missing, is_above_policies, load_migrations, migrate
from refdesk.stores.postgres.moving import PostgresMoves
from refdesk.stores.postgres.replicas import Replicas, open_replicas
from refdesk.stores.postgres.search import Limits, Searcher
from refdesk.stores.postgres.transactions import LONG_SECONDS, Session, Turns, open_session
from refdesk.stores.postgres.writing import PostgresReader, PostgresTransaction

if TYPE_CHECKING:
    from refdesk.model import (
        Collection,
        CollectionStatistics,
        EmbeddedCount,
        FindRequest,
        Found,
        Link,
        Metadata,
        MetadataKey,
        StoreNode,
    )
    from refdesk.protocols import Clock, DocumentVectors, Store
    from refdesk.stores.postgres.distribution import Cluster

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0
"""How long a transaction waits for those of other processes, and for any answer."""


class PostgresStore(PostgresReader):
    """See `Store`.

    Attributes:
        connections: The connections to the database.
        graphs: The graphs of the models whose vectors it holds.
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
        self._knowledge = Knowledge()
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
        transaction = None
        try:
            async with open_session(self.connections, self._turns) as session:
                transaction = PostgresTransaction(session, self._clock, self._knowledge, is_loading=self._loads > 0)
                yield transaction
                await transaction.count_vectors()
                transaction.remember()
        except Exception as error:
            if transaction is not None:
                transaction.doubt(error)
            raise
        if transaction.lacks_graph:
            self.graphs.begin()

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        found = await self._replicas.find(request) if self._replicas is not None else None
        return await self._searcher.find(request) if found is None else found

    async def catch_up(self) -> None:
        """See `Store.catch_up`; the server keeps its indexes."""

    async def scrub(self) -> bool:
        """See `Store.scrub`.

        VACUUM lets the room of removed rows be reused and tidies the pages; it does not overwrite it. Only VACUUM FULL
        would, which keeps everybody out for as long as it takes to rewrite all tables and indexes.
        """
        await scrubbing.vacuum(self.connections)
        return False

    async def list_nodes(self) -> list[StoreNode]:
        """See `Store.list_nodes`."""
        nodes = await distribution.list_nodes(self.connections) if self._is_distributed else []
        return nodes + (await self._replicas.list_nodes() if self._replicas is not None else [])

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        """See `Store.get_statistics`; orgs are counted one group after another, each as of a moment of its own."""
        return await reads.get_statistics(self.connections, org)

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`; counts are kept beside the documents and the vectors."""
        return await reads.count_embedded(self.connections, model)

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        """See `Store.recount_embedded`; nobody else can write to the org meanwhile."""
        async with open_session(self.connections, self._turns) as session:
            await embeddings.recount(session, collection, model)

    async def list_models(self) -> list[str]:
        """See `Store.list_models`."""
        return await reads.list_models(self.connections)

    async def list_collections(self) -> Mapping[Collection, str]:
        """See `Store.list_collections`."""
        return await reads.list_collections(self.connections)

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
        """See `Archive.loading`. The graphs are built at its end: inserting vectors one by one takes far longer.

        If it is cancelled it builds none, as a cancelled caller must not wait; the next to open the store does.
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
    """Yield the store kept in a PostgreSQL database; its tables are created if absent.

    Args:
        url: `postgresql://user:password@host:port/database`, with libpq's parameters. The role owns the tables and
            should be neither superuser nor BYPASSRLS, so that row-level security binds it. The tables are in the first
            schema of its search path.
        clock: Says when revisions were recorded; the machine's clock by default.
        patience_seconds: How long a transaction waits for another's, and for any one answer.
        limits: Up to what sizes searches consider everything; small collections are searched as exactly as by any
            engine.
        read: The URLs of standbys that may answer searches.

    Raises:
        ConfigurationError: The database cannot serve, or was written by a newer refdesk or another program.
        StoreError: It cannot be reached or used; the message says why.
    """
    clock = clock or SystemClock()
    connections = Connections(lead_to_primary(url), patience_seconds)
    try:
        cluster = await distribution.find_cluster(connections)
        engine, is_new = await _prepare(connections, clock)
        if cluster is not None:
            if read:
                raise ConfigurationError(
                    "REFDESK_STORE names a Citus cluster, whose searches go to its nodes: leave REFDESK_STORE_READ out."
                )
            connections = await _join_cluster(connections, cluster, is_new=is_new)
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


async def stands_above_policies(url: str) -> bool:
    """Return whether row-level security does not bind the role of a URL; errors as in `open_store`."""
    connections = Connections(lead_to_primary(url), PATIENCE_SECONDS)
    try:
        return await is_above_policies(connections)
    finally:
        with anyio.CancelScope(shield=True):
            await connections.pool.close()


async def _prepare(connections: Connections, clock: Clock) -> tuple[str, bool]:
    """Return the versions of what serves, for display, and whether the schema was made or changed."""
    engine, has_schema = await examine(connections)
    migrations = load_migrations()
    is_new = not has_schema or bool(await get_missing(connections, migrations))
    if is_new:
        await _work(connections, lambda session: migrate(session, migrations, encode_instant(clock.now())))
    return engine, is_new


async def _join_cluster(connections: Connections, cluster: Cluster, *, is_new: bool) -> Connections:
    is_complete = await distribution.is_complete(connections)
    if not is_complete:
        await _work(connections, distribution.distribute)
    if is_new or not is_complete:
        await distribution.plan_shards(connections)
    return CitusConnections(connections, cluster.path, await distribution.list_tables(connections))


class _HeldError(StoreError):
    """Another process works on the store."""


async def _work(connections: Connections, work: Callable[[Session], Awaitable[None]]) -> None:
    """Do work that nobody can do without; wait while another process does it, or anything else that takes long."""
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
