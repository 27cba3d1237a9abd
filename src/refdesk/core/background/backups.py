"""Scheduled backups: made by one process at a time, rotated, with a status for whoever runs the server."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from refdesk.core.background.leases import Holder, Lease
from refdesk.core.writing import audit
from refdesk.errors import RefdeskError, StoreError
from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.core.writing.audit import Actor
    from refdesk.model import JsonValue
    from refdesk.protocols import Clock, Store

logger = logging.getLogger(__name__)

KIND = "backup"
MADE, FAILED = MetadataKey(SHARED_ORG, KIND, "made"), MetadataKey(SHARED_ORG, KIND, "failed")
LEFT = MetadataKey(SHARED_ORG, KIND, "left")
"""The record that says that older backups could not be removed."""
LEASE = "backup"
ACTION = "backup"
LEASE_FOR = timedelta(seconds=60)
LOOK_SECONDS = 60.0
"""How often to check whether a backup is due."""

RETRY_AFTER = timedelta(minutes=10)
"""The pause after a failed backup; the interval of the schedule counts instead where it is shorter."""

_NAME = re.compile(r"refdesk-\d{8}T\d{6}Z\.sqlite3")
_LEFT = re.compile(_NAME.pattern + r"\.partial(-.*)?")
_LEFT_THERE = (
    "Backups are made, but older ones could not be removed, so they become more: {}. Remove them, or let the user that "
    "the server runs as do so."
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When backups are made, how many are kept, and in which folder."""

    every: timedelta
    keep: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was made: its size, how many documents it holds, and the toolsets whose files it encloses.

    Attributes:
        obstacle: Why the store does not record that it was made, if the store can only be read.
    """

    bytes: int
    documents: int
    enclosed: tuple[str, ...] = ()
    obstacle: str | None = None


MakeBackup = Callable[[Path], Made]
"""Makes a backup in a file that does not exist yet; blocks."""

IsOwn = Callable[[Path], bool]
"""Says whether a backup is of this store, or whether a leftover of one belongs to no running process; blocks."""


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """What is known of the backups of a store.

    Attributes:
        made_at: When the last one was made, by whomever; `None` if none ever was.
        name: Its file's name, without its folder.
        failed_at: When an attempt last failed; see `has_failed`.
        reason: Why it failed.
        left: Why older ones could not be removed; empty if they were.
    """

    made_at: datetime | None = None
    name: str = ""
    failed_at: datetime | None = None
    reason: str = ""
    left: str = ""

    def get_made_at(self, now: datetime) -> datetime | None:
        """Return when the last one was made; a time in the future means that a clock was set back, and is ignored."""
        return self.made_at if self.made_at is not None and self.made_at <= now else None

    def has_failed(self, now: datetime) -> bool:
        """Return whether none has been made since an attempt failed."""
        made_at = self.get_made_at(now)
        return self.failed_at is not None and (made_at is None or self.failed_at >= made_at)


async def read_status(store: Store) -> BackupStatus:
    """Return what is known of the backups of a store."""
    made, failed, left = await store.get_many_metadata([MADE, FAILED, LEFT])
    made_at, name = _read(made, "name")
    failed_at, reason = _read(failed, "reason")
    return BackupStatus(made_at, name, failed_at, reason, _read(left, "reason")[1])


async def note_made(store: Store, clock: Clock, actor: Actor, name: str, made: Made) -> None:
    """Put on record that a backup was made, since whoever has the file has everything in the store."""
    now = clock.now()
    details: dict[str, JsonValue] = {"file": name, "bytes": made.bytes, "documents": made.documents}
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(MADE, {"at": now.isoformat(), "name": name})])
        await transaction.remove_metadata([FAILED])
        await audit.append(transaction, SHARED_ORG, now, audit.make_act(actor, ACTION, details=details))


def find_problem(status: BackupStatus, schedule: Schedule, now: datetime, since: datetime) -> str | None:
    """Return what is wrong with scheduled backups, or `None`.

    Args:
        status: What is known about them.
        schedule: When they are to be made.
        now: The present.
        since: When this process began to look after them.
    """
    if status.failed_at is not None and status.has_failed(now):
        return f"The last backup failed ({status.failed_at:%Y-%m-%d %H:%M} UTC): {status.reason}"
    if now - max(status.get_made_at(now) or since, since) > 2 * schedule.every:
        last = "none was made" if status.made_at is None else f"the last one is of {status.made_at:%Y-%m-%d %H:%M} UTC"
        return f"Backups are overdue: {last}. Restart the server, or run refdesk worker."
    return _LEFT_THERE.format(status.left) if status.left else None


@dataclass(slots=True)
class BackupKeeper:
    """Makes backups when they are due.

    Attributes:
        store: Where their status is kept, and in whose audit log each is put on record.
        make: Makes one.
        is_own: Decides what may be removed from the folder, which several desks may share.
    """

    store: Store
    clock: Clock
    schedule: Schedule
    make: MakeBackup
    is_own: IsOwn

    async def run(self) -> None:
        """Make a backup whenever one is due, until cancelled. Failures are recorded, logged and tried again."""
        while True:
            try:
                await self.run_once()
            except RefdeskError as error:
                logger.warning("backups pause", extra={"reason": error.message})
            await anyio.sleep(min(LOOK_SECONDS, self.schedule.every.total_seconds() / 4))

    async def run_once(self) -> bool:
        """Make a backup if one is due and no other process is making it; return whether one was made.

        Raises:
            StoreError: The store failed, so it is not known whether a backup is due.
        """
        if not await self._is_due():
            return False
        lease = Lease(LEASE, self.store, self.clock, Holder(), LEASE_FOR)
        if not await lease.acquire():
            return False
        try:
            # The previous holder of the lease may have made it.
            return await self._is_due() and await self._attempt(lease)
        finally:
            with anyio.CancelScope(shield=True):
                await lease.release()

    async def _is_due(self) -> bool:
        status, now = await read_status(self.store), self.clock.now()
        if status.has_failed(now):
            return _is_past(status.failed_at, now, min(RETRY_AFTER, self.schedule.every))
        return _is_past(status.made_at, now, self.schedule.every)

    async def _attempt(self, lease: Lease) -> bool:
        name = f"refdesk-{self.clock.now():%Y%m%dT%H%M%SZ}.sqlite3"
        try:
            made = await self._renewing(lease, lambda: anyio.to_thread.run_sync(self._make, name))
        except RefdeskError as error:
            logger.warning("no backup", extra={"reason": error.message})
            value: dict[str, JsonValue] = {"at": self.clock.now().isoformat(), "reason": error.message}
            async with self.store.transaction() as transaction:
                await transaction.put_metadata([Metadata(FAILED, value)])
            return False
        await note_made(self.store, self.clock, audit.SERVER, name, made)
        await self._note_left(await anyio.to_thread.run_sync(self._rotate))
        logger.info("backed up", extra={"file": name, "bytes": made.bytes, "documents": made.documents})
        return True

    def _make(self, name: str) -> Made:
        try:
            self.schedule.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self.make(self.schedule.folder / name)
        except OSError as error:
            raise StoreError(f"The folder for backups cannot be made or used: {error.strerror}.") from error

    async def _renewing(self, lease: Lease, work: Callable[[], Awaitable[Made]]) -> Made:
        """Do the work, renewing the lease meanwhile."""
        failure: RefdeskError | None = None
        made: Made | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._renew, lease)
            try:
                made = await work()
            except RefdeskError as error:
                failure = error  # raised below, so that it does not come out wrapped in a group
            group.cancel_scope.cancel()
        if made is None:
            raise failure or RefdeskError("The backup was broken off.")
        return made

    async def _renew(self, lease: Lease) -> None:
        while True:
            await anyio.sleep(LEASE_FOR.total_seconds() / 3)
            try:
                async with self.store.transaction() as transaction:
                    await lease.renew(transaction)
            except RefdeskError as error:
                logger.warning("lease not renewed", extra={"reason": error.message})

    def _rotate(self) -> str:
        """Remove surplus old backups and what killed processes left behind, but only what belongs to this store.

        Returns:
            The first file that could not be removed, and why; empty if all were.
        """
        reason = ""
        try:
            paths = sorted(self.schedule.folder.iterdir())
            whole = [path for path in paths if _NAME.fullmatch(path.name) and self.is_own(path)]
            left = [path for path in paths if _LEFT.fullmatch(path.name) and self.is_own(path)]
        except (OSError, RefdeskError) as error:
            return str(error)
        for path in [*whole[: -self.schedule.keep], *left]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                reason = reason or f"{path.name} ({error.strerror})"
        return reason

    async def _note_left(self, reason: str) -> None:
        """Record why older backups could not be removed, or delete that record if they were."""
        if reason:
            logger.warning("older backups not removed", extra={"reason": reason})
        if not reason and await self.store.get_metadata(LEFT) is None:
            return
        async with self.store.transaction() as transaction:
            if reason:
                value: dict[str, JsonValue] = {"at": self.clock.now().isoformat(), "reason": reason}
                await transaction.put_metadata([Metadata(LEFT, value)])
            else:
                await transaction.remove_metadata([LEFT])


def _is_past(instant: datetime | None, now: datetime, pause: timedelta) -> bool:
    # An instant in the future means that a clock was set back since; waiting for it might take years.
    return instant is None or not timedelta(0) <= now - instant < pause


def _read(record: Metadata | None, name: str) -> tuple[datetime | None, str]:
    if record is None:
        return None, ""
    return datetime.fromisoformat(str(record.value["at"])), str(record.value[name])
