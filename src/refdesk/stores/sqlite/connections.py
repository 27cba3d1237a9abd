"""Connections to the file: one writer and a few readers, all in threads.

A hop to a thread costs more than a statement, so each hop carries a whole unit of work, and reads and writes of a few
rows do without one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Concatenate, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import apsw

from refdesk.errors import ConfigurationError, RefdeskError, StoreError
from refdesk.stores.sqlite import lineage
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.failures import Damage, translated
from refdesk.stores.sqlite.lineage import Seal
from refdesk.stores.sqlite.presence import Presence
from refdesk.stores.sqlite.threads import Threads

P = ParamSpec("P")
R = TypeVar("R")

READERS = 4
"""How many reads of one process may run at once; more would only queue for two or four cores."""

SLICE_MILLISECONDS = 250
"""How long a thread waits for another process's transaction before it checks whether its task was cancelled."""

PATIENCE_MILLISECONDS = 10_000
"""How long a statement waits for a lock. Only a transaction that writes waits for another; everything waits while a
process recovers or resets the WAL."""

PAUSE_SECONDS = 0.001
"""How long reads may follow each other on the event loop's thread before other tasks get their turn."""

LONG_LOG_PAGES = 4000
"""Length of the log from which it is moved into the file, while every writer waits: four times SQLite's own default,
because it takes hardly longer. Most pages are in a longer log several times, and only the last copy counts."""

_FULL = 2

UNDONE = "An earlier failure has undone this transaction. Repeat all of it."


def open_file(path: Path) -> Connection:
    """Return a connection to the file, created if absent: readable by its owner only, as it holds what all orgs wrote.

    Raises:
        StoreError: The file cannot be made, read or written, or is not a database.
    """
    with translated():
        # Opening and closing a file that is in use would drop this process's locks on it.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = Connection(path, PATIENCE_MILLISECONDS)
        # If the log turns out to belong to another file, it must not be moved into this one.
        connection.set_checkpoint_on_close(is_on=False)
        return connection


def make_folder(path: Path) -> None:
    """Create the folder of a file, if absent: readable by its owner only.

    Raises:
        StoreError: It cannot be made.
    """
    with translated():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def enter_wal(connection: Connection) -> bool:
    """Put the file into WAL mode; return whether that is done (`False`: another process is using it just now).

    Raises:
        ConfigurationError: The file's place does not allow it, such as a network drive.
    """
    try:
        with _waiting(connection, SLICE_MILLISECONDS):
            mode = connection.set_pragma("journal_mode", "wal")
    except apsw.BusyError:
        return False
    if mode != "wal":
        raise ConfigurationError(
            "The store's file is in a place where SQLite cannot keep a write-ahead log, such as a network drive. "
            "Name a file on a local disk in REFDESK_STORE."
        )
    return True


def configure(connection: Connection) -> None:
    """Make commits survive a power failure, and read the settings back.

    With `synchronous=NORMAL` a power failure can undo commits that were acknowledged; an `mmap_size` other than 0 was
    part of the reported corruptions.

    Raises:
        ConfigurationError: SQLite did not take a setting.
    """
    wanted = {"synchronous": _FULL, "foreign_keys": 1, "mmap_size": 0, "journal_mode": "wal"}
    connection.set_pragma("synchronous", "FULL")
    connection.set_pragma("foreign_keys", 1)
    connection.set_pragma("mmap_size", 0)
    for name, value in wanted.items():
        found = connection.get_pragma(name)
        if found != value and not (name == "mmap_size" and found is None):
            raise ConfigurationError(f"SQLite did not take {name}={value}: install another build of apsw.")


class Readers:
    """Connections that only read; opened when needed, kept for the next read."""

    def __init__(self, path: Path, presence: Presence, damage: Damage) -> None:
        self._path = path
        self._presence = presence
        self._translated = translated(damage.note)
        self._threads = Threads("refdesk-reader", READERS)
        self._idle: list[Connection] = []
        self._looked_at = 0.0

    async def run(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns; it reads one snapshot, which includes every commit made before the call."""

        def call() -> R:
            with self._translated:
                return self._call(lambda connection: function(connection, *args, **kwargs))

        return await self._threads.run(call)

    async def run_here(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the same in this thread, for a few rows; in another one if this would have to wait for something.

        Other tasks get their turn first, unless they have just had one.
        """
        if perf_counter() - self._looked_at < PAUSE_SECONDS:
            await anyio.lowlevel.checkpoint_if_cancelled()
        else:
            await anyio.lowlevel.checkpoint()
            self._looked_at = perf_counter()
        if self._idle:
            with self._translated, suppress(apsw.BusyError):
                return self._call(lambda connection: function(connection, *args, **kwargs), 0)
        return await self.run(function, *args, **kwargs)

    def close(self) -> None:
        """Close idle connections, and let the threads end."""
        self._threads.close()
        while self._idle:
            self._idle.pop().close()

    def _call(self, function: Callable[[Connection], R], patience_milliseconds: int = PATIENCE_MILLISECONDS) -> R:
        connection = self._take()
        try:
            connection.set_busy_timeout(patience_milliseconds)
            connection.execute("BEGIN")
            result = function(connection)
            connection.execute("COMMIT")
            self._presence.require()
        except BaseException:
            # The connection's transaction is in doubt, and after an I/O error more than that: the next read gets a new
            # one.
            connection.close()
            raise
        self._idle.append(connection)
        return result

    def _take(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def _open(self) -> Connection:
        self._presence.require()
        connection = Connection(self._path, PATIENCE_MILLISECONDS)
        connection.set_pragma("query_only", 1)
        connection.set_pragma("mmap_size", 0)
        return connection


class Writer:
    """The one connection of this process that writes; one task at a time may use it (`Transactions`)."""

    def __init__(
        self, connection: Connection, seal: Seal, presence: Presence, damage: Damage, patience_seconds: float
    ) -> None:
        self._connection = connection
        self._damage = damage
        self._translated = translated(damage.note)
        self._seal = seal
        self._presence = presence
        self._is_marked = False
        self._log_pages = 0
        self._moving: asyncio.Task[None] | None = None
        self._patience_seconds = patience_seconds
        self._thread = Threads("refdesk-writer", 1)
        connection.watch_log(self._note_log)

    async def begin(self) -> None:
        """Start a transaction that will not fail later because of another one.

        Raises:
            StoreError: Another process held the store for longer than the patience.
        """
        await self.rest()
        if self.call_here(_try_begin, 0):
            return
        deadline = anyio.current_time() + self._patience_seconds
        while not await self.call(_try_begin, SLICE_MILLISECONDS):
            if anyio.current_time() >= deadline:
                raise StoreError("Another process held the store too long. Try again; look for a process that hangs.")

    async def call(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run in a thread; a task that is cancelled meanwhile still waits for it."""
        return await self._thread.run(lambda: self.call_here(function, *args, **kwargs))

    def call_here(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run in this thread: it must neither wait for others nor take long."""
        with self._translated:
            return function(self._connection, *args, **kwargs)

    async def commit(self) -> None:
        """Return once what was written is on the disk, in the file that the path names; for a task that is shielded.

        Raises:
            StoreError: It is not on the disk, or in another file.
        """
        await self._thread.run_shielded(partial(self.call_here, self._commit))

    def move_long_log(self) -> None:
        """Begin to move a long log into the file, except what readers still need; see `rest`."""
        if self._log_pages >= LONG_LOG_PAGES:
            self._moving = asyncio.create_task(self._move_log())

    async def rest(self) -> None:
        """Return once the log is no longer being moved."""
        if self._moving is not None:
            await asyncio.wait((self._moving,))
            self._moving = None

    async def _move_log(self) -> None:
        with suppress(StoreError):  # what could not be moved now is moved the next time
            await self._thread.run_shielded(partial(self.call_here, Connection.checkpoint))

    def _note_log(self, pages: int) -> None:
        self._log_pages = pages

    def close(self) -> None:
        """Close the connection; the last process to do so marks the file as complete."""
        is_last = False
        try:
            with suppress(RefdeskError):
                is_last = self._leave()
        finally:
            self._thread.close()
            self._connection.close()
            if is_last and self._damage.is_ruled_out:
                self._seal.note_closed()
            self._seal.close()

    def _commit(self, connection: Connection) -> None:
        require_transaction(connection)
        if not self._is_marked:
            lineage.note_use(connection, is_used=True)
        counted = lineage.count_commit(connection)
        connection.execute("COMMIT")
        if not self._is_marked:
            # A copy of the file without its log must show that it was in use, so the mark must not remain in the log.
            # What was committed is on the disk even if the log cannot be moved now: the next commit tries again.
            with suppress(apsw.FullError, apsw.IOError):
                self._is_marked = connection.checkpoint()
        self._presence.require()
        if counted is not None:
            self._seal.write(*counted)

    def _leave(self) -> bool:
        """Mark the file as complete if nobody else has it open; return whether that was done."""
        with translated():
            self._presence.require()
            if (
                not self._presence.is_known
                or not self._seal.claim()
                or not _try_begin(self._connection, SLICE_MILLISECONDS)
            ):
                return False
            is_noted = lineage.note_use(self._connection, is_used=False)
            counted = lineage.count_commit(self._connection) if is_noted else None
            self._connection.execute("COMMIT")
            if counted is not None:
                self._seal.write(*counted)
            return True


def _try_begin(connection: Connection, milliseconds: int) -> bool:
    try:
        with _waiting(connection, milliseconds):
            connection.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return False
    return True


def require_transaction(connection: Connection) -> None:
    """Return if a transaction is still open.

    Raises:
        StoreError: It was undone.
    """
    # A full disk or an I/O error may end a transaction: what follows would be committed on its own.
    if not connection.in_transaction:
        raise StoreError(UNDONE)


@contextmanager
def _waiting(connection: Connection, milliseconds: int) -> Generator[None, None, None]:
    connection.set_busy_timeout(milliseconds)
    try:
        yield
    finally:
        connection.set_busy_timeout(PATIENCE_MILLISECONDS)
