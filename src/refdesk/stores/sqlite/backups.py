"""Backups: copies of a file in use, complete or absent, and read back before they get their name.

The copy is made by VACUUM INTO from a snapshot of the file, while others go on reading and writing. It is kept beside
the target as `.partial` until it is marked as not in use, examined and on the disk; renaming makes it the backup. The
files of toolsets that are kept apart are enclosed in it, so that one rename puts all of them in place.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from refdesk.errors import InvalidInputError, RefdeskError, StoreError
from refdesk.stores.sqlite.checking import list_faults
from refdesk.stores.sqlite.driver import Connection, open_snapshot
from refdesk.stores.sqlite.failures import DamageError, translated
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX, note_use, read_marks
from refdesk.stores.sqlite.moving import find_new_place, forget_move
from refdesk.stores.sqlite.read_only import reading

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

if TYPE_CHECKING:
    from refdesk.stores.sqlite.lineage import Marks

PARTIAL = ".partial"
PIECE = 1024 * 1024
"""Bytes of an enclosed file per row."""

PATIENCE_MILLISECONDS = 30_000
_BESIDE = ("", "-wal", "-shm", SEAL_SUFFIX)
_TABLES = ("collections", "documents", "revisions", "vectors", "links", "records", "audit")
_ONLY_GROW = ("documents", "audit")
"""Tables whose rows are never removed: a copy made between two counts holds no fewer than the first, no more than the
second."""

_ENCLOSED = """
    CREATE TABLE enclosed (name TEXT NOT NULL, number INTEGER NOT NULL, piece BLOB NOT NULL, PRIMARY KEY (name, number))
    STRICT, WITHOUT ROWID;
    CREATE TABLE enclosed_files (name TEXT PRIMARY KEY, digest TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
_FULL = "The disk that takes the backup is full. No backup was made; free some space there, or name another folder."


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds.

    Attributes:
        counts: Rows by table, in all its files together.
        enclosed: The toolsets whose own files are in it.
    """

    bytes: int
    counts: Mapping[str, int]
    enclosed: tuple[str, ...] = ()


def make_backup(
    source: Path, target: Path, enclosed: Mapping[str, Path] | None = None, *, replaces: bool = False
) -> BackedUp:
    """Make a backup and return what it holds; blocks the calling thread, while others may read and write.

    Args:
        source: The store's file; a process that has it open has judged that it is complete.
        target: Where the backup goes.
        enclosed: Further files to enclose, by their toolsets.
        replaces: Whether to replace an existing file, once the new one is complete.

    Raises:
        InvalidInputError: The target exists, its folder does not, or it is one of the files themselves.
        DamageError: A file is damaged; no backup was made, and an existing target is as it was.
        StoreError: The backup could not be written; the same holds.
    """
    files = {"": source, **(enclosed or {})}
    check_target(target, files.values(), replaces=replaces)
    partial = target.with_name(f"{target.name}{PARTIAL}")
    with translated(), _holding(partial) as handle:
        counts = _copy(source, partial)
        for name, file in (enclosed or {}).items():
            counts = _add(counts, _enclose(name, file, partial))
        _require_sound(partial)
        os.fsync(handle)
        _name(partial, target, replaces=replaces)
        flush_folder(target.parent)
        return BackedUp(target.stat().st_size, counts, tuple(enclosed or ()))


def check_target(target: Path, files: Iterable[Path], *, replaces: bool) -> None:
    """Return if a backup may be made there; errors as in `make_backup`."""
    taken = {f"{os.path.realpath(file)}{suffix}" for file in files for suffix in _BESIDE}
    if os.path.realpath(target) in taken:
        raise InvalidInputError("This is the store's own file, or belongs to it: name another one for the backup.")
    if not target.parent.is_dir():
        raise InvalidInputError("The folder of the backup does not exist: make it, or name another one.")
    if target.is_dir():
        raise InvalidInputError("A backup is one file, and this is a folder: name a file in it.")
    if target.exists() and not target.is_file():
        raise InvalidInputError("This is no file but a device, a pipe or a socket: name a file for the backup.")
    if target.exists() and not replaces:
        raise InvalidInputError("There is a file of this name already: name another one, or say --force to replace it.")


def is_of(backup: Path, source: Path) -> bool:
    """Return whether a backup was made of the store in a file; `False` also if either cannot be read. Blocks."""
    with suppress(RefdeskError), translated(), open_snapshot(backup) as copy, reading(source) as connection:
        made, own = read_marks(copy), read_marks(connection)
        return made is not None and own is not None and made.store == own.store
    return False


def is_left(part: Path) -> bool:
    """Return whether nobody is making the backup that a file with `.partial` in its name belongs to."""
    name, suffix, _ = part.name.rpartition(PARTIAL)
    for path in (part.with_name(f"{name}{suffix}"), part):
        try:
            os.close(_lock(os.open(path, os.O_RDWR)))
        except FileNotFoundError:
            continue
        except (StoreError, OSError):
            return False
    return True


def list_enclosed(connection: Connection) -> dict[str, str]:
    """Return the digests of the files that a backup encloses, by their toolsets."""
    if connection.get_row("SELECT 1 FROM sqlite_schema WHERE name = 'enclosed_files'") is None:
        return {}
    return dict(connection.execute("SELECT name, digest FROM enclosed_files"))


def extract(connection: Connection, name: str, digest: str, target: Path) -> None:
    """Write an enclosed file to `target`.

    Raises:
        DamageError: It is not as it was enclosed.
    """
    found = hashlib.sha256()
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        for (piece,) in connection.stream("SELECT piece FROM enclosed WHERE name = ? ORDER BY number", (name,)):
            found.update(piece)
            file.write(piece)
    if found.hexdigest() != digest:
        raise DamageError("The backup is damaged: take an earlier one. Nothing was changed.")


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, on systems where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _holding(partial: Path) -> Generator[int]:
    """Yield a handle of the file that becomes the backup: empty, locked by this process, and removed at the end.

    SQLite opens the file for itself, so the handle must outlive its connections: closing it would drop their locks.
    """
    if partial.exists():
        # Left by a killed process. It may be a second name (hard link) of a complete backup, so it is not written to.
        os.close(_lock(os.open(partial, os.O_RDWR)))
        partial.unlink()
    _get_journal(partial).unlink(missing_ok=True)
    handle = _lock(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        try:
            yield handle
        except apsw.FullError as error:
            raise StoreError(_FULL) from error
        finally:
            partial.unlink(missing_ok=True)
            _get_journal(partial).unlink(missing_ok=True)
    finally:
        os.close(handle)


def _get_journal(partial: Path) -> Path:
    """Return the journal that an aborted copy leaves beside it; the next copy would take it for its own."""
    return partial.with_name(f"{partial.name}-journal")


def _lock(handle: int) -> int:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError("Another process is making this backup at the moment. Wait for it to end.") from None
    return handle


def _copy(source: Path, target: Path) -> dict[str, int]:
    """Copy a file in use to an empty one and mark that as not in use; return its rows by table."""
    with reading(source) as connection:
        connection.set_busy_timeout(PATIENCE_MILLISECONDS)
        connection.set_pragma("query_only", 0)  # it would also keep the copy from being written
        connection.set_pragma("mmap_size", 0)
        marks, before = read_marks(connection), _count(connection)
        connection.execute("VACUUM INTO ?", (str(target),))
        after = _count(connection)
    counts = _settle(target, marks)
    if any(not before[name] <= counts[name] <= after[name] for name in _ONLY_GROW):
        raise DamageError("The store's file is damaged: its copy does not hold all of it. No backup was made.")
    return counts


def _settle(target: Path, marks: Marks | None) -> dict[str, int]:
    """Mark a copy as not in use, and remove what is only useful beside the original file."""
    connection = Connection(target, 0)
    try:
        connection.set_pragma("journal_mode", "memory")
        connection.execute("BEGIN")
        found = read_marks(connection)
        if marks is not None and (found is None or found.store != marks.store or found.commits < marks.commits):
            raise DamageError("The store's file is damaged: its copy is of an earlier time. No backup was made.")
        if find_new_place(connection) is not None:
            # From now on everything is written elsewhere, so this would pass for a backup of today and be none.
            raise StoreError("The store was moved to another one while its backup was made. Make the backup again.")
        forget_move(connection)
        note_use(connection, is_used=False)
        connection.execute("DELETE FROM index_parts")
        connection.execute("COMMIT")
        return _count(connection)
    finally:
        connection.close()


def _enclose(name: str, file: Path, target: Path) -> dict[str, int]:
    part = target.with_name(f"{target.name}-{name}")
    with _holding(part):
        counts = _copy(file, part)
        _require_sound(part)
        connection, digest = Connection(target, 0), hashlib.sha256()
        try:
            connection.set_pragma("journal_mode", "memory")
            connection.execute("BEGIN")
            if not list_enclosed(connection):
                connection.execute(_ENCLOSED)
            with part.open("rb") as content:
                for number, piece in enumerate(iter(lambda: content.read(PIECE), b"")):
                    digest.update(piece)
                    connection.execute("INSERT INTO enclosed VALUES (?, ?, ?)", (name, number, piece))
            connection.execute("INSERT INTO enclosed_files VALUES (?, ?)", (name, digest.hexdigest()))
            connection.execute("COMMIT")
        finally:
            connection.close()
    return counts


def _require_sound(copy: Path) -> None:
    with open_snapshot(copy) as connection:
        if faults := list_faults(connection, 1):
            raise DamageError(
                f"The store's file is damaged, so there is no backup of it: {faults[0]}. Run refdesk doctor --deep, "
                "and put back an earlier backup (refdesk restore)."
            )


def _name(partial: Path, target: Path, *, replaces: bool) -> None:
    if replaces:
        partial.replace(target)
        return
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise InvalidInputError("There is a file of this name since: name another one, or say --force.") from None
    except OSError:
        # A file system without hard links.
        partial.rename(target)


def _count(connection: Connection) -> dict[str, int]:
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in _TABLES)  # noqa: S608
    return dict(connection.execute(counts))


def _add(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: count + others[name] for name, count in some.items()}
