"""Leases: mutual exclusion between processes that survives the crash of a holder.

A lease is a record with an expiry. Its holder renews it while working; a holder that died on this machine is replaced
at once, one that died elsewhere when its lease runs out. A lease whose expiry is further ahead than any holder could
have set it was written by a wrong clock, and is ignored.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.protocols import Clock, Store, Transaction

KIND = "lease"
PROCESSES = "/proc/self/ns/pid"
"""Linux's name for the processes that this one can see."""


def name_host() -> str:
    """Return a name that only those share who see the same processes: containers may share the machine's own."""
    try:
        return f"{socket.gethostname()}/{os.stat(PROCESSES).st_ino}"
    except OSError:
        return socket.gethostname()


@dataclass(frozen=True, slots=True)
class Holder:
    """One worker in one process; `token` distinguishes workers in the same process."""

    host: str = field(default_factory=name_host)
    process: int = field(default_factory=os.getpid)
    token: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do `name`, held by at most one holder until it expires.

    Attributes:
        name: The work it is for, such as `sync:azure-updates`.
        duration: How long it lasts without being renewed; renew it after a third of that.
    """

    name: str
    store: Store
    clock: Clock
    holder: Holder
    duration: timedelta = timedelta(seconds=15)

    async def acquire(self) -> bool:
        """Take the lease, or extend it if it is already ours; return whether it is ours now."""
        async with self.store.transaction() as transaction:
            record = await transaction.get_metadata(self._key)
            if record is not None and self._binds_us(record):
                return False
            await transaction.put_metadata([self._record()])
        return True

    async def renew(self, transaction: Transaction) -> bool:
        """Extend the lease inside a transaction; return `False` if it is no longer ours."""
        record = await transaction.get_metadata(self._key)
        if record is None or record.value["token"] != self.holder.token:
            return False
        await transaction.put_metadata([self._record()])
        return True

    async def release(self) -> None:
        """Give the lease back, if it is still ours."""
        async with self.store.transaction() as transaction:
            record = await transaction.get_metadata(self._key)
            if record is not None and record.value["token"] == self.holder.token:
                await transaction.remove_metadata([self._key])

    async def is_held(self) -> bool:
        """Return whether anybody who is still alive holds it now."""
        record = await self.store.get_metadata(self._key)
        return record is not None and not self._is_over(record) and not _is_abandoned(record, self.holder)

    @property
    def _key(self) -> MetadataKey:
        return MetadataKey(SHARED_ORG, KIND, self.name)

    def _record(self) -> Metadata:
        value = {
            "host": self.holder.host,
            "process": self.holder.process,
            "token": self.holder.token,
            "seconds": self.duration.total_seconds(),
        }
        return Metadata(self._key, value, due_at=self.clock.now() + self.duration)

    def _binds_us(self, record: Metadata) -> bool:
        if record.value["token"] == self.holder.token or self._is_over(record):
            return False
        return not _is_abandoned(record, self.holder)

    def _is_over(self, record: Metadata) -> bool:
        # Clocks of two machines may differ by the length of a lease; a holder that loses one so notices in `renew`.
        now, length = self.clock.now(), timedelta(seconds=float(str(record.value.get("seconds", 0))))
        return record.due_at is None or not now < record.due_at <= now + 2 * max(self.duration, length)


def _is_abandoned(record: Metadata, seen_by: Holder) -> bool:
    """Return whether the holder was a process, now dead, on the same machine as `seen_by`."""
    return record.value["host"] == seen_by.host and is_dead(int(str(record.value["process"])))


def is_dead(process: int) -> bool:
    """Return whether there is no such process on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
