"""Stores in a place that cannot be written, such as a read-only file system or a full disk: they can only be read.

SQLite cannot share such a file: its log may have to be read into it first, and nothing can be created beside it. So the
file and its log are copied to the folder for temporary files when the store is opened, and read there, with a search
index of its own. Nobody changes what is read-only, and whoever makes it writable again starts the server anew. On a
full disk a file is copied only if no process has it open: if one has, all that it takes to read the file is there
already.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, cast

from refdesk.errors import StoreError
from refdesk.protocols import Reader
from refdesk.stores.sqlite.copying import copy_file
from refdesk.stores.sqlite.driver import Connection, open_reading, open_snapshot
from refdesk.stores.sqlite.failures import translated

if TYPE_CHECKING:
    from refdesk.core.keeping.moves import Change, Move
    from refdesk.protocols import Store, Transaction

OBSTACLE = (
    "The store can only be read: its file or folder is on a read-only file system, or this user has no right to write "
    "there. Nothing can be stored until it can be written and the server is started again."
)
NO_ROOM = (
    "The disk that holds the store is full, so it can only be read. Nothing can be stored until some space is free and "
    "the server is started again."
)
_COPIED = ("", "-wal")
_SHARED_BYTES = 32_768
"""Least size of the shared memory beside an open file: SQLite allocates it in units of this."""

_LEAST_ROOM = 4 * _SHARED_BYTES
"""Free bytes below which a file is not opened: the log of the first write takes some, too."""


def is_read_only(path: Path) -> bool:
    """Return whether there is a file at the path, and this process cannot write it or its folder."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def has_no_room(path: Path) -> bool:
    """Return whether the disk lacks room for what SQLite keeps beside the file; the file need not exist yet."""
    try:
        return shutil.disk_usage(path.parent).free < _LEAST_ROOM
    except OSError:
        return False


def find_obstacle(path: Path) -> str | None:
    """Return why this process can only read a copy of the file at the path; `None` if it need not, or there is none."""
    if is_read_only(path):
        return OBSTACLE
    return NO_ROOM if path.is_file() and not _is_shared(path) and has_no_room(path) else None


def _is_shared(path: Path) -> bool:
    """Return whether the memory shared by the processes that have the file open is there, in full."""
    try:
        return os.stat(f"{path}-shm").st_size >= _SHARED_BYTES
    except OSError:
        return False


def is_empty(path: Path) -> bool:
    """Return whether there is no file at the path, or nothing in it."""
    return not path.exists() or path.stat().st_size == 0


@contextmanager
def copied(path: Path) -> Generator[Path]:
    """Yield the path of a copy of the file and its log, which exists for as long as the block lasts.

    Raises:
        StoreError: It cannot be read, or there is no room for it.
    """
    with TemporaryDirectory(prefix="refdesk-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / path.name
        with translated():
            for suffix in _COPIED:
                part = Path(f"{path}{suffix}")
                if part.exists():
                    copy_file(part, Path(f"{copy}{suffix}"))
        yield copy


@contextmanager
def reading(path: Path) -> Generator[Connection]:
    """Yield a connection that reads a file with its log, wherever it is and whoever is using it.

    Raises:
        StoreError: It cannot be copied to a place where it can be read.
    """
    if not is_read_only(path):
        with open_reading(path) as connection:
            yield connection
    elif is_empty(Path(f"{path}-wal")):
        with open_snapshot(path) as connection:
            yield connection
    else:
        with copied(path) as copy, open_reading(copy) as connection:
            yield connection


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ReadOnlyStore:
    """A store that refuses to write; the file that it was copied from is not written either."""

    store: Store
    obstacle: str = OBSTACLE

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Yield a transaction that reads one snapshot, and refuses to write."""
        async with self.store.transaction() as transaction:
            yield cast("Transaction", _ReadOnlyTransaction(transaction, self.obstacle))

    @property
    def moves(self) -> ReadOnlyMoves:
        """What it does to be moved: a store that was moved before still leads to where it is."""
        return ReadOnlyMoves(self.obstacle)

    def loading(self) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)

    async def scrub(self) -> bool:
        """Refuse."""
        raise StoreError(self.obstacle)

    async def check(self) -> None:
        """Return if the store can be read."""
        await self.store.get_change_mark()


@dataclass(frozen=True, slots=True)
class ReadOnlyMoves:
    """Refuses to begin, end or give up a move: only the copy would know of it. See `Moves`."""

    obstacle: str

    async def begin(self, move: Move) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)

    async def read_changes(self, limit: int) -> list[Change]:
        """Return none, for nobody changes anything."""
        del limit
        return []

    async def forget(self, changes: Sequence[Change]) -> None:
        """Do nothing, for there is none."""

    async def cancel(self) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)

    def stand_still(self) -> NoReturn:
        """Refuse."""
        raise StoreError(self.obstacle)


@dataclass(frozen=True, slots=True)
class _ReadOnlyTransaction:
    transaction: Transaction
    obstacle: str

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transaction has
        return getattr(self.transaction, name) if hasattr(Reader, name) else self._refuse

    async def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise StoreError(self.obstacle)
