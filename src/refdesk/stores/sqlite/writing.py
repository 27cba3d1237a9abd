"""The port's `Reader` and `Transaction`, implemented for SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

import anyio.to_thread

from refdesk.core.keeping.encoding import encode_instant
from refdesk.stores.sqlite import reads, writes
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.rows import encode_passages
from refdesk.stores.sqlite.transactions import Session

if TYPE_CHECKING:
    from refdesk.model import (
        AuditEntry,
        Collection,
        Document,
        EmbeddedPassage,
        EmbeddingModel,
        Link,
        Metadata,
        MetadataKey,
        Reference,
        Revision,
    )
    from refdesk.protocols import Clock, DocumentVectors

P = ParamSpec("P")
R = TypeVar("R")

ANALYSED_HERE = 4_000
"""Most characters analysed on the event loop's thread, which takes a millisecond; longer texts go to another thread."""

WRITTEN_HERE, ROWS_HERE = 64_000, 8
"""Most characters and rows written on the event loop's thread: for these it is quicker than a hop to another one."""


READ_HERE = 16
"""Most documents read on the event loop's thread, for the same reason."""

RECORDS_HERE = reads.RECORDS_AT_ONCE
"""The same for metadata records, which are small."""


class Runner(Protocol):
    """What runs reads: either the read connections, where each call sees a snapshot of its own, or one transaction."""

    async def run(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run in another thread."""
        ...

    async def run_here(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run in this thread, for a few rows."""
        ...


class SqliteReader:
    """See `Reader`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        run = self._runner.run_here if len(ids) <= READ_HERE else self._runner.run
        return await run(reads.get_documents, collection, ids)

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        return await self._runner.run(reads.get_revisions, collection, id)

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """See `Reader.get_digests`."""
        return await self._runner.run(reads.get_digests, collection)

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """See `Reader.get_unembedded`."""
        return await self._runner.run(reads.get_unembedded, collection, model, limit, since)

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        run = self._runner.run_here if len(ids) <= READ_HERE else self._runner.run
        return await run(reads.get_embedded, collection, model, ids)

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        return await self._runner.run(reads.get_links, org, reference)

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return await self._runner.run_here(reads.get_metadata, key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        run = self._runner.run_here if len(keys) <= RECORDS_HERE else self._runner.run
        return await run(reads.get_many_metadata, keys)

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """See `Reader.list_metadata`."""
        return await self._runner.run(reads.list_metadata, kind, org, due_until, limit)

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """See `Reader.get_audit`."""
        return await self._runner.run(reads.get_audit, org, after, limit)

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        return await self._runner.run_here(reads.get_last_audit, org)


class SqliteTransaction(SqliteReader):
    """See `Transaction`; begun and ended by an `async with`."""

    def __init__(
        self, session: Session, clock: Clock, note_changes: Callable[[Mapping[Collection, int]], None]
    ) -> None:
        super().__init__(session)
        self._session = session
        self._clock = clock
        self._note_changes = note_changes
        self._changes: dict[Collection, int] = {}

    async def __aenter__(self) -> SqliteTransaction:
        await self._session.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        await self._session.__aexit__(kind, *rest)
        if kind is None and self._changes:
            self._note_changes(self._changes)

    def _count(self, collection: Collection) -> None:
        self._changes[collection] = self._changes.get(collection, 0) + 1

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.expect`."""

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        await self._put(documents, self._clock.now())

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """See `Transaction.put_revisions`."""
        for recorded_at, together in groupby(revisions, attrgetter("recorded_at")):
            await self._put([revision.document for revision in together], recorded_at)

    async def _put(self, documents: Sequence[Document], recorded_at: datetime) -> None:
        size = sum(len(document.title) + len(document.body) for document in documents)
        if size <= ANALYSED_HERE:
            rows = writes.prepare_documents(documents)
        else:
            rows = await anyio.to_thread.run_sync(writes.prepare_documents, documents)
        run = self._session.run_here if size <= WRITTEN_HERE and len(rows) <= ROWS_HERE else self._session.run
        await run(writes.put_documents, rows, encode_instant(recorded_at))
        for document in documents:
            self._count(document.collection)

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """See `Transaction.put_vectors`. A withdrawn document counts as gone; vectors are kept in half precision."""
        rows = encode_passages(model, passages)
        is_kept = await self._session.run(writes.put_vectors, collection, id, model, text_digest, rows)
        if is_kept:
            self._count(collection)
        return is_kept

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """See `Transaction.put_all_vectors`."""
        for document, vectors in documents:
            for model, passages in vectors:
                await self.put_vectors(document.collection, document.id, model, document.text_digest, passages)

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        return await self._session.run(writes.remove_vectors, model)

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.erase_documents`."""
        rows = writes.prepare_documents(documents)
        await self._session.run(writes.erase_documents, rows, encode_instant(self._clock.now()))

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        run = self._session.run_here if len(links) <= ROWS_HERE else self._session.run
        await run(writes.put_links, links)

    async def remove_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.remove_links`."""
        await self._session.run(writes.remove_links, links)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `Transaction.put_audit`."""
        run = self._session.run_here if len(entries) <= ROWS_HERE else self._session.run
        await run(writes.put_audit, entries)
        known = self._session.last_audits
        known.update({each.org: each for each in entries if each.org in known and each.number > known[each.org].number})

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`; read once for all transactions that are committed together."""
        if org not in self._session.last_audits and (last := await super().get_last_audit(org)) is not None:
            self._session.last_audits[org] = last
        return self._session.last_audits.get(org)

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """See `Transaction.put_metadata`."""
        run = self._session.run_here if len(records) <= ROWS_HERE else self._session.run
        await run(writes.put_metadata, records)

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.remove_metadata`."""
        run = self._session.run_here if len(keys) <= ROWS_HERE else self._session.run
        await run(writes.remove_metadata, keys)

    async def leave_no_trace(self) -> None:
        """See `Transaction.leave_no_trace`."""
        await self._session.run_here(writes.note_traces)
