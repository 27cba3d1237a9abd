"""The SQLite store: one file shared by any number of processes, and search indexes derived from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import anyio
import anyio.to_thread

from refdesk.core.clock import SystemClock
from refdesk.core.keeping.encoding import encode_instant
from refdesk.errors import StoreError
from refdesk.stores.sqlite import archive, reads, writes
from refdesk.stores.sqlite.catching_up import CatchingUp
from refdesk.stores.sqlite.checking import LARGEST_AT_ONCE, LateExamination, examine
from refdesk.stores.sqlite.connections import Readers, Writer, configure, enter_wal, make_folder, open_file
from refdesk.stores.sqlite.counting import Counts
from refdesk.stores.sqlite.driver import SQLITE_VERSION
from refdesk.stores.sqlite.erasures import begin_list, remove_left
from refdesk.stores.sqlite.failures import FULL, Damage, translated
from refdesk.stores.sqlite.freezing import Sizes
from refdesk.stores.sqlite.indexing import DerivedIndexes
from refdesk.stores.sqlite.lineage import Before, Seal, look
from refdesk.stores.sqlite.migrations import get_missing, load_migrations, migrate
from refdesk.stores.sqlite.moving import SqliteMoves, settle_mark
from refdesk.stores.sqlite.presence import Presence
from refdesk.stores.sqlite.read_only import ReadOnlyStore, copied, find_obstacle, has_no_room
from refdesk.stores.sqlite.scrubbing import scrub, scrub_noted
from refdesk.stores.sqlite.transactions import Transactions
from refdesk.stores.sqlite.versions import require_safe
from refdesk.stores.sqlite.writing import SqliteReader, SqliteTransaction

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
        Revision,
        StoreNode,
    )
    from refdesk.protocols import Clock, DocumentVectors, Store

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE_SECONDS = 30.0
"""How long a transaction waits for those of other processes, which take a few milliseconds each."""

RETRY_SECONDS = 0.02

NAMING_SECONDS = 5.0
"""How long naming a new file of the search index waits for other processes, and after how long it is tried again."""

logger = logging.getLogger(__name__)

SCRUB_SECONDS = 5.0
"""How long opening a store waits for other processes so that it can overwrite traces of what was erased."""

BUSY = "Another process held the store too long. Try again; look for a process that hangs."


class SqliteStore(SqliteReader):
    """See `Store`."""

    def __init__(
        self,
        path: Path,
        readers: Readers,
        writer: Writer,
        damage: Damage,
        clock: Clock,
        patience_seconds: float,
        index_sizes: Sizes,
    ) -> None:
        super().__init__(readers)
        self._damage = damage
        self._late = LateExamination(path, damage)
        self._patience_seconds = patience_seconds
        self._readers = readers
        self._writer = writer
        self._transactions = Transactions(writer)
        self.moves = SqliteMoves(self._transactions, readers)
        self._clock = clock
        self._indexes = DerivedIndexes(readers, path, index_sizes, self._name_soon)
        self._catching_up = CatchingUp(self._indexes, index_sizes, self._keep_derived)
        self._loop = asyncio.get_running_loop()
        self._counts = Counts()
        self._naming: set[asyncio.Task[None]] = set()
        self._is_ending = False

    obstacle: str | None = None

    @property
    def engine(self) -> str:
        """See `Store.engine`."""
        return f"SQLite {SQLITE_VERSION}"

    def transaction(self) -> SqliteTransaction:
        """See `Store.transaction`."""
        return SqliteTransaction(self._transactions.open(), self._clock, self._catching_up.note)

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        found = await self._indexes.find(request)
        self._catching_up.forget(request.collection)
        await self._keep_derived()
        return found

    async def catch_up(self) -> None:
        """See `Store.catch_up`; the work goes on after this has returned."""
        self._catching_up.note_older(await self._readers.run(self._indexes.list_behind))

    async def _keep_derived(self) -> None:
        """Store what reading has derived, unless somebody is writing just now."""
        if self._transactions.is_idle:
            await self._name_frozen()
            await self._keep_renewed()
        else:
            self._start_naming()

    async def _keep_renewed(self) -> None:
        """Store texts that searches have analysed anew, which saves the next process work."""
        if renewed := self._indexes.take_renewed():
            with suppress(StoreError):
                async with self._transactions.open() as session:
                    await session.run(writes.put_terms, renewed)

    def _name_soon(self) -> None:
        """Have the event loop name what another thread has frozen."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._start_naming)

    def _start_naming(self) -> None:
        if self._indexes.has_frozen and not self._is_ending:
            task = self._loop.create_task(self._name_frozen())
            self._naming.add(task)
            task.add_done_callback(self._naming.discard)

    async def _name_frozen(self) -> None:
        """Name in the store what was frozen, even if the search that made it is given up: the next one reads it."""
        if not (frozen := self._indexes.take_frozen()):
            return
        is_named = False
        with anyio.move_on_after(NAMING_SECONDS, shield=True), suppress(StoreError):
            async with self._transactions.open() as session:
                await session.run(self._indexes.name_parts, frozen)
            is_named = True
        if is_named:
            with anyio.CancelScope(shield=True), suppress(StoreError):
                await self._readers.run(self._indexes.tidy, frozen)
            return
        self._indexes.put_back(frozen)
        if not self._is_ending:
            self._loop.call_later(NAMING_SECONDS, self._start_naming)

    async def scrub(self) -> bool:
        """See `Store.scrub`. The file is rewritten and its log emptied; searches continue, writers wait."""
        await self._readers.run(self._indexes.remove_unnamed)
        await scrub(self._transactions, self._patience_seconds)
        return True

    async def list_nodes(self) -> list[StoreNode]:
        """See `Store.list_nodes`."""
        return []

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        return await self._readers.run(self._counts.get, org)

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`; what has not changed since it was last asked for is not counted again."""
        return await self._readers.run(self._counts.count_embedded, model)

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        """See `Store.recount_embedded`; counts are not kept in the file."""

    async def list_models(self) -> list[str]:
        """See `Store.list_models`."""
        return await self._readers.run(reads.list_models)

    async def list_collections(self) -> Mapping[Collection, str]:
        """See `Store.list_collections`."""
        return await self._readers.run(reads.list_collections)

    async def get_change_mark(self) -> str:
        """See `Store.get_change_mark`."""
        return await self._readers.run(reads.get_change_mark)

    async def check(self) -> None:
        """See `Store.check`."""
        self._damage.require_none()
        await self._readers.run(reads.get_change_mark)
        async with self._transactions.open() as session:
            await session.run(writes.probe)

    async def list_documents(self, after: tuple[Collection, str] | None, limit: int) -> list[tuple[Collection, str]]:
        """See `Archive.list_documents`."""
        return await self._readers.run(archive.list_documents, after, limit)

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        """See `Archive.get_histories`."""
        return await self._readers.run(archive.get_histories, collection, ids)

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        """See `Archive.get_vectors`."""
        return await self._readers.run(archive.get_vectors, collection, ids)

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """See `Archive.list_links`."""
        return await self._readers.run(archive.list_links, after, limit)

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        """See `Archive.list_all_metadata`."""
        return await self._readers.run(archive.list_all_metadata, after, limit)

    async def list_audited_orgs(self) -> list[str]:
        """See `Archive.list_audited_orgs`."""
        return await self._readers.run(archive.list_audited_orgs)

    @asynccontextmanager
    async def loading(self) -> AsyncGenerator[None, None]:
        """See `Archive.loading`; searches build what makes them fast, and keep it in memory."""
        yield

    def examine_late(self) -> None:
        """Examine the file while it serves, if that was not done before."""
        if not self._damage.is_examined:
            self._late.start()

    async def finish(self) -> None:
        """Name what background work has frozen, or is about to."""
        self._is_ending = True
        self._indexes.stop()
        await self._catching_up.finish()
        await anyio.to_thread.run_sync(self._indexes.close)
        await self._name_frozen()
        if self._naming:
            await asyncio.wait(self._naming)
        await self._writer.rest()

    def close(self) -> None:
        """Stop background work and close every connection; blocks."""
        self._late.stop()
        self._readers.close()
        self._writer.close()


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    clock: Clock | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
    index_sizes: Sizes | None = None,
    largest_at_once: int = LARGEST_AT_ONCE,
) -> AsyncGenerator[Store, None]:
    """Yield the store kept in the file at `path`; the file and its folder are created if absent.

    A file that exists but cannot be written can still be read: see `read_only`.

    Args:
        path: On a local disk; SQLite keeps its `-wal` and `-shm` files beside it.
        clock: Says when revisions were recorded; the machine's clock by default.
        patience_seconds: How long a transaction waits for another process's.
        index_sizes: When parts of the search index are written to files.
        largest_at_once: Size in bytes up to which a file is examined before it serves, if there is reason to.

    Raises:
        ConfigurationError: This SQLite loses data, or the file was written by a newer refdesk or another program.
        StoreError: The file cannot be used; the message says why.
    """
    require_safe(SQLITE_VERSION)
    async with AsyncExitStack() as stack:
        file = path
        if obstacle := find_obstacle(path):
            logger.warning("store can only be read", extra={"reason": obstacle})
            file = await anyio.to_thread.run_sync(stack.enter_context, copied(path))
        try:
            opened = _open_file(file, clock, patience_seconds, index_sizes or Sizes(), largest_at_once)
            store = await stack.enter_async_context(opened)
        except StoreError as error:
            if has_no_room(file):
                # SQLite's error names what it could not do for lack of room, such as sharing memory.
                raise StoreError(FULL) from error
            raise
        yield cast("Store", ReadOnlyStore(store, obstacle)) if obstacle else store


@asynccontextmanager
async def _open_file(
    path: Path, clock: Clock | None, patience_seconds: float, index_sizes: Sizes, largest_at_once: int
) -> AsyncGenerator[SqliteStore, None]:
    clock, presence, damage = clock or SystemClock(), Presence(path), Damage()
    await anyio.to_thread.run_sync(make_folder, path)
    seal = Seal(path)
    try:
        before = await _claim(path, seal, patience_seconds)
        connection = await anyio.to_thread.run_sync(open_file, path)
    except BaseException:
        seal.close()
        raise
    writer = Writer(connection, seal, presence, damage, patience_seconds)
    readers = Readers(path, presence, damage)
    store = SqliteStore(path, readers, writer, damage, clock, patience_seconds, index_sizes)
    try:
        await _enter(writer, patience_seconds)
        damage.is_examined = await writer.call(examine, before, seal, largest_at_once)
        if before is not None:
            await anyio.to_thread.run_sync(remove_left, path)
        presence.note()
        seal.share()
        await _prepare(writer, clock)
        await writer.call(begin_list)
        await writer.call(settle_mark)
        with suppress(StoreError):
            # A process that was killed while erasing left traces, and a note of them; whoever is reading may go on.
            await scrub_noted(Transactions(writer), min(SCRUB_SECONDS, patience_seconds))
        store.examine_late()
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.finish()
            await anyio.to_thread.run_sync(store.close)


async def _claim(path: Path, seal: Seal, patience_seconds: float) -> Before | None:
    """Return what is at the path if this process is alone there, else `None`; others wait until it has looked."""
    deadline = anyio.current_time() + patience_seconds
    while seal.can_lock and not seal.claim():
        if seal.share():
            return None
        if anyio.current_time() >= deadline:
            raise StoreError(BUSY)
        await anyio.sleep(RETRY_SECONDS)
    return await anyio.to_thread.run_sync(_look, path, seal) if seal.can_lock else None


def _look(path: Path, seal: Seal) -> Before:
    with translated():
        return look(path, seal)


async def _enter(writer: Writer, patience_seconds: float) -> None:
    deadline = anyio.current_time() + patience_seconds
    while not await writer.call(enter_wal):
        if anyio.current_time() >= deadline:
            raise StoreError(BUSY)
        await anyio.sleep(RETRY_SECONDS)
    await writer.call(configure)


async def _prepare(writer: Writer, clock: Clock) -> None:
    migrations = load_migrations()
    if await writer.call(get_missing, migrations):
        async with Transactions(writer).open() as session:
            await session.run(migrate, migrations, encode_instant(clock.now()))
