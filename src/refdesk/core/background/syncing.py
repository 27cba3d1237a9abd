"""Syncs a collection with its source, keeping every earlier version.

A delta reads what changed since a watermark. A full sync reads everything and compares by content, because sources edit
and remove records without changing any date; it also withdraws what is gone, unless the source is known to drop old
records. Both write only what differs, in small transactions, each complete in itself: a process killed at any point
leaves a state from which the next sync resumes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from refdesk import errors
from refdesk.core.background import change_log, sync_log
from refdesk.core.background.conversions import (
    Conversion,
    Conversions,
    digest_record,
    read_conversions,
    write_conversions,
)
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.background.records import (
    NAMELESS,
    REPEATED,
    InvalidRecordError,
    PageRecords,
    ToDocument,
    is_name,
    tell_repeated,
)
from refdesk.core.background.sync_log import (
    MAX_CHANGES,
    Change,
    ChangeKind,
    DeadLetter,
    SyncKind,
    SyncReport,
    SyncStatus,
)
from refdesk.model import Collection, Document, State
from refdesk.sources import RecognisingSource, Source, SourcePage

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.protocols import Clock, Store, Transaction

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 200
SUSPICIOUS_DOCUMENTS = 20
SUSPICIOUS_SHARE = 0.05
OVERLAP = timedelta(hours=1)
"""How far before the watermark a delta begins, so that records that came late, with an older date, are still seen."""


class LeaseLostError(errors.StoreError):
    """Another process took over while this one was working; nothing has been written since then."""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """The progress of a sync: how many records were read, and how many there are in all if the source says so."""

    read: int
    total: int | None


OnProgress: TypeAlias = Callable[[SyncProgress], None]


@dataclass(frozen=True, slots=True)
class Syncer:
    """Brings one collection up to date with its source.

    Attributes:
        to_document: Pure; raises `InvalidRecordError` for a record that cannot be read. It runs in a worker thread.
        converter_version: Differs whenever `to_document` may give a different document for some record; a record that
            did not change is not converted again by the same version. `None`: every record is converted every time.
        stale_after: A sync is due if the last successful one is older than this.
        full_after: A sync is a full one if the last full one is older than this.
        lease_duration: How long another process waits for one that vanished without a trace.
        name: The name under which the status, the logs and the lease are kept where a collection has several sources;
            by default the toolset's name. It contains no `/`.
        owns: Returns whether the document of an id belongs to this source, where a collection has several; a record
            that belongs to another source is set aside. `None`: all belong to this one.
    """

    store: Store
    source: Source
    collection: Collection
    to_document: ToDocument
    clock: Clock
    holder: Holder = field(default_factory=Holder)
    stale_after: timedelta = timedelta(hours=24)
    full_after: timedelta = timedelta(days=7)
    lease_duration: timedelta = timedelta(seconds=15)
    converter_version: str | None = None
    name: str | None = None
    owns: Callable[[str], bool] | None = None

    @property
    def log_name(self) -> str:
        """The name under which the status, the logs and the lease are kept."""
        return self.name or self.collection.toolset

    async def get_digests(self) -> dict[str, str]:
        """Return the digests of the source's documents, by id, without withdrawn ones."""
        digests = await self.store.get_digests(self.collection)
        return {id: digest for id, digest in digests.items() if self.owns is None or self.owns(id)}

    def convert(self, record: JsonObject) -> Document:
        """Return the document of a record; raises an `InvalidRecordError` if it is invalid or another source's."""
        document = self.to_document(record)
        if self.owns is not None and not self.owns(document.id):
            raise InvalidRecordError("id: another source of this collection has ids that begin so")
        return document

    async def get_status(self) -> SyncStatus:
        """Return the status of syncing."""
        return await sync_log.read_status(self.store, self.log_name)

    async def is_running(self) -> bool:
        """Whether some process is syncing it at this moment."""
        return await self._make_lease().is_held()

    def _make_lease(self) -> Lease:
        return Lease(f"sync:{self.log_name}", self.store, self.clock, self.holder, self.lease_duration)

    async def is_due(self, now: datetime) -> bool:
        """Whether no sync succeeded within `stale_after` before `now`, or no full one within `full_after`."""
        status = await self.get_status()
        return _is_older(status.last_success, now, self.stale_after) or _is_older(
            status.last_full, now, self.full_after
        )

    async def sync(
        self, *, full: bool = False, force: bool = False, on_progress: OnProgress | None = None
    ) -> SyncReport:
        """Bring the collection up to date and return what was done; `busy`, and nothing done, if another process does.

        The first sync is a full one, and so is one if the last full one is older than `full_after`. Documents that did
        not change are not written. After a failure what was already written stays, and the next sync begins where the
        last successful one ended.

        Args:
            full: Read everything, whatever is due.
            force: Withdraw what is gone from the source even if records are missing or it is suspiciously much: more
                than both `SUSPICIOUS_DOCUMENTS` and `SUSPICIOUS_SHARE` of all, or everything.
            on_progress: Called after each page.

        Raises:
            SourceError: The source failed in spite of retries; the status and the run's entry say so too.
            StoreError: The store failed, or another process took over.
        """
        started = self.clock.now()
        status = await self.get_status()
        kind: SyncKind = "full" if full or _is_older(status.last_full, started, self.full_after) else "delta"
        lease = self._make_lease()
        if not await lease.acquire():
            return SyncReport("busy", kind, started, self.clock.now())
        try:
            return await _hold(lease, _Run(self, lease, kind, started, status, force, on_progress).run)
        finally:
            with anyio.CancelScope(shield=True):
                await lease.release()


async def _hold(lease: Lease, work: Callable[[], Awaitable[SyncReport]]) -> SyncReport:
    """Return what `work` returns, renewing the lease meanwhile. Losing the lease ends the work."""
    reports: list[SyncReport] = []
    failures: list[Exception] = []

    async def keep() -> None:
        try:
            await _renew_until_lost(lease)
            failures.append(_lost())
        except errors.RefdeskError as error:
            failures.append(error)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(keep)
        try:
            reports.append(await work())
        except Exception as error:
            failures.append(error)
        group.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return reports[0]


async def _renew_until_lost(lease: Lease) -> None:
    is_ours = True
    while is_ours:
        await anyio.sleep(lease.duration.total_seconds() / 3)
        with anyio.CancelScope(shield=True):
            async with lease.store.transaction() as transaction:
                is_ours = await lease.renew(transaction)


def _lost() -> LeaseLostError:
    return LeaseLostError("Another process took over syncing; this one stopped and wrote nothing since.")


@dataclass(slots=True)
class _Run:
    """One sync under its lease."""

    syncer: Syncer
    lease: Lease
    kind: SyncKind
    started: datetime
    status: SyncStatus
    force: bool
    on_progress: OnProgress | None
    digests: dict[str, str] = field(default_factory=dict[str, str])
    conversions: Conversions = field(default_factory=lambda: Conversions(None))
    set_aside: dict[str, DeadLetter] = field(default_factory=dict[str, DeadLetter])
    seen: set[str] = field(default_factory=set[str])
    bad: set[str] = field(default_factory=set[str])
    newest: datetime | None = None
    total: int | None = None
    withheld: int = 0
    missing: int = 0
    nameless: int = 0
    repeated: set[str] = field(default_factory=set[str])
    outdone: dict[str, Document] = field(default_factory=dict[str, Document])
    touched: set[str] = field(default_factory=set[str])
    counts: Counter[ChangeKind] = field(default_factory=Counter["ChangeKind"])
    changes: list[Change] = field(default_factory=list[Change])

    async def run(self) -> SyncReport:
        """Sync, and record how it went."""
        try:
            await self._load()
            async for page in self._read():
                await self._take(page)
            if self.kind == "full":
                await self._reconcile()
        except LeaseLostError:
            raise
        except Exception as error:
            await self._finish_failed(error.message if isinstance(error, errors.RefdeskError) else sync_log.BUG)
            raise
        return await self._finish()

    @property
    def _name(self) -> str:
        return self.syncer.log_name

    async def _load(self) -> None:
        store = self.syncer.store
        self.digests = await self.syncer.get_digests()
        self.conversions = await read_conversions(store, self._name, self.syncer.converter_version)
        self.set_aside = {each.name: each for each in await sync_log.read_dead_letters(store, self._name)}
        self.repeated = {name.removeprefix(REPEATED) for name in self.set_aside if name.startswith(REPEATED)}

    def _read(self) -> AsyncIterator[SourcePage]:
        source, since = self.syncer.source, self._get_since()
        if isinstance(source, RecognisingSource):
            return source.read_with(self.conversions.outlines, since)
        return source.read(since)

    def _get_since(self) -> str | None:
        if self.kind == "full" or self.status.watermark is None:
            return None
        return (self.status.watermark - OVERLAP).astimezone(UTC).isoformat(timespec="microseconds")

    async def _take(self, page: SourcePage) -> None:
        """Process one page: write what changed, and set aside what cannot be read."""
        converted = self._recall(page) or await anyio.to_thread.run_sync(self._convert, page)
        converted.bad += [tell_repeated(id) for id in sorted(page.repeated) if is_name(id)]
        self.repeated |= page.repeated
        self._note_read(converted.last.values(), converted.bad, page.total)
        self.conversions.note(converted.by_record)
        self.conversions.note_page(page, converted.names)
        changed = [each for each in converted.documents.values() if self._is_new(converted.last[each.id])]
        news = [each for each in converted.bad if self.set_aside.get(each.name) != each]
        repaired = [id for id in converted.last if id in self.set_aside]
        for batch in _cut(changed):
            await self._write(batch)
        if news or repaired:
            await self._write_dead_letters(news, repaired)
        if self.on_progress is not None:
            self.on_progress(SyncProgress(len(self.seen), self.total))

    def _is_new(self, conversion: Conversion) -> bool:
        return self.digests.get(conversion.id) != conversion.digest

    def _recall(self, page: SourcePage) -> PageRecords | None:
        """Return the records of a known page if the store still holds all of their documents."""
        known = None if page.repeated else self.conversions.find_page(page.name, self.digests)
        if known is None:
            return None
        converted = PageRecords(names=[*known.records])
        for record in known.records:
            converted.add_known(self.conversions.known[record])
        return converted

    def _convert(self, page: SourcePage) -> PageRecords:
        """Return the converted records; those known to give a document that the store holds are not converted again."""
        converted = PageRecords()
        for record in page.records if page.unread is None else page.unread():
            name = digest_record(record) if self.conversions.version is not None else ""
            converted.names.append(name)
            known = self.conversions.find(name, self.digests)
            if known is not None:
                converted.add_known(known)
            else:
                converted.add(self.syncer.convert, record, name, page.repeated)
        converted.bad = [each for each in converted.bad if each.name not in converted.last]
        return converted

    def _note_read(self, documents: Iterable[Conversion], bad: Sequence[DeadLetter], total: int | None) -> None:
        for document in documents:
            self.seen.add(document.id)
            self.bad.discard(document.id)
            self.newest = max(self.newest or document.modified_at, document.modified_at)
        self.seen |= {each.name for each in bad}
        self.bad |= {each.name for each in bad}
        self.nameless += sum(each.name.startswith(NAMELESS) for each in bad if not each.name.startswith(REPEATED))
        self.total = total

    async def _write(self, documents: Sequence[Document]) -> None:
        """Write the documents that differ from what the store holds by then, in one transaction."""
        collection = self.syncer.collection
        async with self._fenced() as transaction:
            before = await transaction.get_documents(collection, [each.id for each in documents])
            read = [(old, new) for old, new in zip(before, documents, strict=True) if _differ(old, new)]
            pairs = [(old, new) for old, new in read if not self._is_outdone(old, new)]
            await transaction.put_documents([_next_version(old, new) for old, new in pairs])
            changed = [(old, _next_version(old, new)) for old, new in pairs if not _is_rendered_anew(old, new)]
            changes = [Change(new.id, change_log.name_change(old, new), new.version) for old, new in changed]
            await change_log.add_changes(transaction, self._name, self.syncer.clock.now(), changes)
        self.outdone |= {new.id: new for old, new in read if self._is_outdone(old, new)}
        self.digests |= {new.id: new.digest for _, new in pairs}
        for change, (_, document) in zip(changes, changed, strict=True):
            self._note_change(change, document)

    def _is_outdone(self, old: Document | None, new: Document) -> bool:
        """Whether another record with this id is newer or as new, and so is kept, so that no sync undoes another."""
        if old is None or new.id not in self.repeated or State.WITHDRAWN in (old.state, new.state):
            return False
        return new.modified_at <= old.modified_at

    def _note_change(self, change: Change, document: Document) -> None:
        self.counts[change.kind] += 1
        self.touched.add(change.id)
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(change)
        if document.state is State.WITHDRAWN:
            self.digests.pop(change.id, None)

    async def _write_dead_letters(self, news: Sequence[DeadLetter], gone: Sequence[str]) -> None:
        async with self._fenced() as transaction:
            await sync_log.put_dead_letters(transaction, self._name, news)
            await sync_log.remove_dead_letters(transaction, self._name, gone)
        self.set_aside |= {each.name: each for each in news}
        for name in gone:
            self.set_aside.pop(name, None)

    async def _reconcile(self) -> None:
        """Withdraw what was not found in a complete reading, and forget bad records that are gone.

        If the source itself is not complete, a missing record does not mean that it is gone. If the source gave fewer
        records than it says it holds, the missing ones may be among those not given, so nothing is withdrawn; but if
        it lacked exactly as many the last time, its count is taken to be wrong.
        """
        self.missing = max(0, (self.total or 0) - self._count_read())
        gone = sorted(self.digests.keys() - self.seen) if self.syncer.source.is_complete else []
        is_short = bool(gone) and self.missing not in (0, self.status.missing)
        if (is_short or self._is_suspicious(len(gone))) and not self.force:
            self.withheld = len(gone)
            extra = {"documents": len(gone), "of": len(self.digests), "missing": self.missing}
            logger.warning("withdrawals withheld", extra=extra)
        else:
            for batch in _cut(gone):
                await self._withdraw(batch)
        vanished = sorted(self.set_aside.keys() - self.seen)
        if vanished:
            # Of records that were repeated and are no longer, the one that is left counts, however old it says it is.
            self.repeated -= {name.removeprefix(REPEATED) for name in vanished}
            for batch in _cut([new for id, new in self.outdone.items() if id not in self.repeated]):
                await self._write(batch)
            await self._write_dead_letters([], vanished)

    def _count_read(self) -> int:
        """Return how many records were read, counting those with the same id once."""
        return sum(not name.startswith(NAMELESS) for name in self.seen) + self.nameless

    def _is_suspicious(self, gone: int) -> bool:
        known = len(self.digests)
        return gone > 0 and (gone == known or (gone > SUSPICIOUS_DOCUMENTS and gone > SUSPICIOUS_SHARE * known))

    async def _withdraw(self, ids: Sequence[str]) -> None:
        documents = await self.syncer.store.get_documents(self.syncer.collection, ids)
        await self._write([replace(each, state=State.WITHDRAWN) for each in documents if each is not None])

    async def _finish(self) -> SyncReport:
        self.conversions.keep_only(self.digests)
        if self.kind == "full":
            self.conversions.keep_seen_pages()
        report = self._report("succeeded")
        status = SyncStatus(
            last_success=report.finished_at,
            last_full=report.finished_at if self.kind == "full" else self.status.last_full,
            watermark=self._get_watermark(report.started_at),
            documents=len(self.digests),
            withheld=self.withheld if self.kind == "full" else self.status.withheld,
            missing=self.missing if self.kind == "full" else self.status.missing,
        )
        await self._write_down(status, report)
        return report

    async def _finish_failed(self, reason: str) -> None:
        report = self._report("failed", reason)
        status = replace(self.status, last_error=reason, last_error_at=report.finished_at)
        try:
            await self._write_down(status, report)
        except errors.StoreError as second:
            logger.warning("failed sync not written down", extra={"reason": second.message})

    async def _write_down(self, status: SyncStatus, report: SyncReport) -> None:
        async with self._fenced() as transaction:
            await sync_log.write_status(transaction, self._name, status)
            await write_conversions(transaction, self._name, self.conversions)
            await sync_log.add_run(transaction, self._name, report)

    def _get_watermark(self, started: datetime) -> datetime | None:
        """Return the newest change seen, but not after `started`, which would hide later ones; year 1 is no date."""
        instants = [each for each in (self.status.watermark, self.newest) if each is not None and each.year > 1]
        return min(max(instants), started) if instants else None

    def _report(self, outcome: sync_log.SyncOutcome, error: str = "") -> SyncReport:
        return SyncReport(
            outcome=outcome,
            kind=self.kind,
            started_at=self.started,
            finished_at=self.syncer.clock.now(),
            added=self.counts["added"],
            changed=self.counts["changed"],
            withdrawn=self.counts["withdrawn"],
            restored=self.counts["restored"],
            unchanged=len(self.seen - self.bad - self.touched),
            quarantined=len(self.bad),
            withheld=self.withheld,
            missing=self.missing,
            changes=tuple(self.changes),
            error=error,
        )

    @asynccontextmanager
    async def _fenced(self) -> AsyncGenerator[Transaction]:
        """Open a transaction that can write only while the lease is ours."""
        async with self.syncer.store.transaction() as transaction:
            if not await self.lease.renew(transaction):
                raise _lost()
            yield transaction


def _is_older(instant: datetime | None, now: datetime, age: timedelta) -> bool:
    # An instant in the future means that a clock was set back since; it says nothing about the age of the data.
    return instant is None or not timedelta(0) <= now - instant < age


def _differ(old: Document | None, new: Document) -> bool:
    return old is None or old.digest != new.digest


def _is_rendered_anew(old: Document | None, new: Document) -> bool:
    """Return whether only refdesk's rendering differs: the source's record, kept as `data["record"]`, is the same."""
    record = new.data.get("record")
    return old is not None and record is not None and old.state is new.state and old.data.get("record") == record


def _next_version(old: Document | None, new: Document) -> Document:
    return replace(new, version=1 if old is None else old.version + 1)


T = TypeVar("T")


def _cut(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH_DOCUMENTS] for start in range(0, len(items), BATCH_DOCUMENTS)]
