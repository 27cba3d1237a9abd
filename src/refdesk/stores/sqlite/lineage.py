"""Whether a file holds all that was acknowledged: its log must not be missing, or of another time or another file.

SQLite keeps recent commits in a log beside the file (`-wal`). A file that was copied without its log, or a log that was
lost, truncated or left over from another file, looks sound to SQLite: it opens them, and data is silently missing. So
the file counts its commits and says whether it is in use, and a small record beside it (`-seal`) says how many commits
were acknowledged:

- A file in use always has a log. One that says it is in use but has no log was copied beside a running server, or lost
  its log.
- A log continues from its file: it belongs to the same period of use and counts at least as many commits.
- There are never fewer commits than were acknowledged. The record is written after the commit is on the disk, so it is
  never ahead; after a power failure it may be behind, and then it proves nothing.
- A record that was created with the file and is still blank says that nothing was acknowledged: the process that
  created the file was killed right after its first commit, and the log may have been moved into the file since.

The record also carries the lock by which a process knows that it is alone. Only then may it judge, because others would
change the file and its log meanwhile. Where there are no such locks (Windows), nothing is judged.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from refdesk.errors import StoreError
from refdesk.stores.sqlite.driver import open_snapshot

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection

SEAL_SUFFIX = "-seal"

_LOG_HEADER = 32
_RECORD = struct.Struct("<8sqqI")
_OUTSIDE = struct.Struct("<8sqqqqI")
_OUTSIDE_OFFSET = 64
"""Where the seal's second record begins, after that of commits: the closed file's size, times and inode number."""

_MAGIC = b"refdesk1"
_GET_MARKS = "SELECT name, value FROM counters WHERE name IN ('store', 'epoch', 'began', 'in_use', 'commits')"
_COUNT_COMMIT = """
    UPDATE counters SET value = value + 1 WHERE name = 'commits'
    RETURNING (SELECT value FROM counters WHERE name = 'store'), value
"""
_SET = "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_HELP = (
    "Put back the file that is meant, with its `-wal`, or a backup (refdesk restore FILE). Only if what is there is "
    "what you want: refdesk restore --as-is FILE, with the name of the store's own file."
)


@dataclass(frozen=True, slots=True)
class Marks:
    """What a file says about itself.

    Attributes:
        store: Chosen once for each store.
        epoch: Chosen anew whenever the file comes into use.
        began: How many commits there were at that time.
        in_use: Whether somebody uses the file, or did when the power failed.
    """

    store: int
    epoch: int
    began: int
    in_use: bool
    commits: int


def read_marks(connection: Connection) -> Marks | None:
    """Return the marks, or `None` if the file has none yet."""
    if connection.get_row("SELECT 1 FROM sqlite_schema WHERE name = 'counters'") is None:
        return None
    found = dict(connection.execute(_GET_MARKS))
    if len(found) < len(fields(Marks)):
        return None
    return Marks(found["store"], found["epoch"], found["began"], bool(found["in_use"]), found["commits"])


def note_use(connection: Connection, *, is_used: bool) -> bool:
    """Mark the file, within a transaction, as in use or as no longer in use; return whether that is a change."""
    marks = read_marks(connection)
    if marks is None or marks.in_use == is_used:
        return False
    values = {"in_use": int(is_used)}
    if is_used:
        values |= {"epoch": secrets.randbits(62), "began": marks.commits}
    connection.execute_many(_SET, list(values.items()))
    return True


def count_commit(connection: Connection) -> tuple[int, int] | None:
    """Count one more commit, within its transaction; return the store and the count, `None` if there are no marks."""
    row = connection.get_row(_COUNT_COMMIT)
    return None if row is None else (row[0], row[1])


def claim_as_new(connection: Connection) -> None:
    """Make a copy a store of its own, not in use: no record or log of the original store belongs to it."""
    marks = read_marks(connection)
    if marks is not None:
        values = {"store": secrets.randbits(62), "epoch": 0, "began": marks.commits, "in_use": 0}
        connection.execute("BEGIN")
        connection.execute_many(_SET, list(values.items()))
        connection.execute("COMMIT")


class Seal:
    """The record beside the file, and the lock on it. If it cannot be created, nothing is recorded."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        self._path = path
        if fcntl is None:
            return
        name = f"{path}{SEAL_SUFFIX}"
        is_first = not os.path.exists(name)
        with suppress(OSError):
            self._handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            if is_first and _measure(str(path)) > 0:
                os.pwrite(self._handle, b"\0", 0)  # not blank: nobody knows what was acknowledged of this file

    def claim(self) -> bool:
        """Keep other processes from opening the file until `share`; return `False` if one has it open already."""
        return self._lock("LOCK_EX")

    def share(self) -> bool:
        """Let others open the file too; return whether that was possible (not while one of them is alone with it)."""
        return self._lock("LOCK_SH")

    @property
    def can_lock(self) -> bool:
        """Whether locks are available at all."""
        return fcntl is not None and self._handle is not None

    @property
    def is_blank(self) -> bool:
        """Whether it was created with the file, and nothing has been acknowledged since."""
        return self._handle is not None and os.fstat(self._handle).st_size == 0

    def read(self) -> tuple[int, int] | None:
        """Return the store and how many of its commits were acknowledged, or `None` if that is not known."""
        data = os.pread(self._handle, _RECORD.size, 0) if self._handle is not None else b""
        if len(data) < _RECORD.size:
            return None
        magic, store, commits, check = _RECORD.unpack(data)
        return (store, commits) if magic == _MAGIC and check == zlib.crc32(data[:-4]) else None

    def write(self, store: int, commits: int) -> None:
        """Record an acknowledged commit, unless a later one is recorded."""
        known = self.read()
        if self._handle is None or (known is not None and known[0] == store and known[1] >= commits):
            return
        data = _RECORD.pack(_MAGIC, store, commits, 0)[:-4]
        # A record that could not be written understates what was acknowledged, which does no harm.
        with suppress(OSError):
            os.pwrite(self._handle, data + struct.pack("<I", zlib.crc32(data)), 0)

    def note_closed(self) -> None:
        """Record what the file looks like from outside, now that nobody has it open and its log is in it."""
        status = _look_from_outside(self._path) if _measure(f"{self._path}-wal") == 0 else None
        if self._handle is not None and status is not None:
            data = _OUTSIDE.pack(_MAGIC, *status, 0)[:-4]
            with suppress(OSError):
                os.pwrite(self._handle, data + struct.pack("<I", zlib.crc32(data)), _OUTSIDE_OFFSET)

    def is_untouched(self) -> bool:
        """Return whether the file looks as it did when it was closed."""
        data = os.pread(self._handle, _OUTSIDE.size, _OUTSIDE_OFFSET) if self._handle is not None else b""
        if len(data) < _OUTSIDE.size:
            return False
        magic, *status, check = _OUTSIDE.unpack(data)
        is_sound = magic == _MAGIC and check == zlib.crc32(data[:-4])
        return is_sound and tuple(status) == _look_from_outside(self._path)

    def close(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _lock(self, kind: str) -> bool:
        if fcntl is None or self._handle is None:
            return False
        try:
            fcntl.flock(self._handle, getattr(fcntl, kind) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Before:
    """What was in the folder before the file was opened.

    Attributes:
        marks: What the file alone says, without its log.
        has_log: Whether there was a log with content beside it.
        is_new: Whether there was no file.
        is_untouched: Whether nobody wrote to it since refdesk closed it, as far as the file system tells.
        is_unacknowledged: Whether nothing in it was ever acknowledged.
    """

    marks: Marks | None
    has_log: bool
    is_new: bool = False
    is_untouched: bool = False
    is_unacknowledged: bool = False


def look(path: Path, seal: Seal) -> Before:
    """Return what is there, without touching anything.

    Raises:
        StoreError: There is a log, but no file that it belongs to.
    """
    has_log = _measure(f"{path}-wal") > _LOG_HEADER
    if _measure(str(path)) == 0:
        if has_log:
            raise StoreError(f"The store's file is gone, and only its log (`-wal`) is left. {_HELP}")
        return Before(None, has_log, is_new=True, is_untouched=True)
    try:
        with open_snapshot(path) as connection:
            return Before(read_marks(connection), has_log, False, seal.is_untouched(), seal.is_blank)
    except (apsw.CorruptError, apsw.FormatError):
        # A process was killed while it moved the log into the file: the file is complete only together with its log.
        if not has_log:
            raise
        return Before(None, has_log)


def judge(before: Before, now: Marks | None, seal: tuple[int, int] | None) -> bool:
    """Return whether the last user of the file ended without closing it.

    Args:
        before: What was there before it was opened.
        now: What the file says together with its log.
        seal: What was acknowledged.

    Raises:
        StoreError: Commits are missing; the message says how that came about, and what to do.
    """
    is_of_store = now is not None and seal is not None and seal[0] == now.store
    missing = seal[1] - now.commits if is_of_store and now is not None and seal is not None else 0
    is_known = is_of_store or (before.is_unacknowledged and now is not None and now.commits <= 1)
    if before.has_log:
        judge_log(before.marks, now)
    elif now is not None and now.in_use and (missing > 0 or not is_known):
        raise StoreError(
            "The store's file was in use when it was copied, or its log (the file ending in `-wal`) was lost since: "
            f"what was stored last is missing. {_HELP}"
        )
    if missing > 0:
        raise StoreError(
            f"The store's file is older than what was acknowledged here: {missing} commits are missing, for its log "
            f"was damaged or the file was replaced by an earlier one. {_HELP}"
        )
    if before.is_new and seal is not None:
        raise StoreError(
            "The store's file was here and is gone. Put it back, or a backup in its place (refdesk restore FILE); to "
            "begin with an empty one, remove the file beside it whose name ends in `-seal`."
        )
    return now is not None and (now.in_use or before.has_log)


def judge_log(file: Marks | None, now: Marks | None) -> None:
    """Return if a log belongs to its file.

    Args:
        file: What the file alone says; `None` if it cannot be read without its log, or has no marks.
        now: What it says together with its log.

    Raises:
        StoreError: The log is of another file or of another time.
    """
    if file is None:
        return
    is_of_file = now is not None and now.store == file.store
    if is_of_file and now is not None and now.epoch == file.epoch:
        is_of_file = now.commits >= file.commits
    elif is_of_file and now is not None:
        is_of_file = not file.in_use and now.began == file.commits
    if not is_of_file:
        raise StoreError(
            "The log beside the store's file (ending in `-wal`) is of another file or of an earlier time: together "
            f"they would be damaged. Nothing was changed. {_HELP}"
        )


def _look_from_outside(path: Path) -> tuple[int, int, int, int] | None:
    """Return the size, modification time, change time and inode number; programs cannot set the change time."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _measure(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
