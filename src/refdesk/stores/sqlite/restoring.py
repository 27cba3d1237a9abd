"""Restoring a backup in place of a store's file: completely or not at all, without what was erased since.

All work is done on a copy beside the file (`.restoring`), which is renamed at the end. A kill leaves either the old
file as it was, or one that says what is missing; restoring again completes it. The replaced file stays beside the new
one under a dated name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
import apsw

from refdesk.core import keys
from refdesk.core.keeping.carrying import Aftermath, Restored, carry_over
from refdesk.core.keeping.unfinished import name_store
from refdesk.errors import ConfigurationError, InvalidInputError, RefdeskError, StoreError
from refdesk.stores.sqlite import archive, reads
from refdesk.stores.sqlite.backups import extract, flush_folder, list_enclosed
from refdesk.stores.sqlite.checking import list_faults
from refdesk.stores.sqlite.connections import make_folder
from refdesk.stores.sqlite.copying import copy_file
from refdesk.stores.sqlite.driver import Connection, open_snapshot
from refdesk.stores.sqlite.erasures import RESTORING, Erasures, find_erasures, read_list, remove_left, write_list
from refdesk.stores.sqlite.failures import DamageError, translated
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX, Seal, claim_as_new, judge_log, read_marks
from refdesk.stores.sqlite.migrations import get_missing, load_migrations
from refdesk.stores.sqlite.moving import find_new_place, forget_move, read_mark, remove_mark

if TYPE_CHECKING:
    from refdesk.core.writing.audit import Actor
    from refdesk.model import AuditEntry, Metadata
    from refdesk.protocols import Clock
    from refdesk.stores.sqlite.lineage import Marks

T = TypeVar("T")

_LOG_HEADER = 32
_PAGE = 1000
_IN_USE = (
    "A process has the store open. Stop every server and worker that uses it, and the desk that clients share (refdesk "
    "stop), and restore again."
)
_DAMAGED_BACKUP = (
    "The backup is damaged, cut off or none that refdesk backup made. Nothing was changed; take another one."
)
_DAMAGED_FILE = "This file is damaged, so it is not accepted as it is. Nothing was changed; take a backup."
_MOVED = (
    "What is to be replaced was moved to {}, and goes on there: with a backup in the old place there would be two "
    "stores, and what was erased in that one would be back in this one. Name that store in REFDESK_STORE; a file is "
    "restored there. If it is gone for good, move the old file away first."
)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy that is to replace `target`, and the number of the store that it is of."""

    name: str
    path: Path
    target: Path
    store: int
    has_left_log: bool = False
    was_moved: bool = False


async def restore(
    source: Path,
    targets: Mapping[str, Path],
    clock: Clock,
    actor: Actor,
    *,
    as_is: bool = False,
    revokes_unchecked: bool = False,
) -> list[Restored]:
    """Restore a backup in place of the store's files and return what became of each.

    Args:
        source: The backup; with `as_is` any file of a store, even the one in place, with its log if that belongs to it.
        targets: Where each of its files goes, by toolset; the store's own file under the empty name.
        clock: Says when this happens.
        actor: Who does it, for the record.
        as_is: Whether to accept a file that was in use or lost what was in its log; a damaged one is never accepted.
        revokes_unchecked: Whether to revoke the API keys of which nobody knows whether they were revoked since.

    Raises:
        InvalidInputError: There is no such file, or it is not one that can be restored; nothing was changed.
        ConfigurationError: It was written by a newer refdesk or another program; the same holds.
        DamageError: It is damaged; the same holds.
        ConfigurationError: The store of a file was moved to another one; the same holds.
        StoreError: A process has the store open, or it could not be written.
    """
    with translated():
        _check_source(source, targets[""], as_is=as_is)
        with _claiming(targets.values()) as seals, _clearing(targets.values()):
            for target in targets.values():
                _require_not_moved(target)
            copies = await anyio.to_thread.run_sync(_prepare, source, targets, as_is)
            followed = [await _follow(copy, clock, actor, revokes_unchecked) for copy in copies]
            stamp = f"{clock.now():%Y%m%dT%H%M%SZ}"
            kept = [_put_in_place(copy, seals[copy.target], stamp) for copy in copies]
        return [replace(each, kept=path) for each, path in zip(followed, kept, strict=True)]


def _check_source(source: Path, target: Path, *, as_is: bool) -> None:
    if not source.is_file():
        raise InvalidInputError("There is no such file: check the name of the backup.")
    is_own = target.exists() and source.samefile(target)
    if is_own and not as_is:
        raise InvalidInputError("This is the store's own file. To accept it as it is, say --as-is.")
    if not is_own and Path(f"{source}{SEAL_SUFFIX}").exists():
        seal = Seal(source)
        try:
            if seal.can_lock and not seal.claim():
                raise InvalidInputError(
                    "This is a store in use. Make a backup of it (refdesk backup), and restore that."
                )
        finally:
            seal.close()


def _require_not_moved(target: Path) -> None:
    """Return if the file's store was not moved elsewhere: else there would be two stores, unaware of each other.

    Raises:
        ConfigurationError: It was moved.
    """
    place = read_mark(target) if target.exists() else None
    if target.exists():
        with suppress(RefdeskError), translated(), _reading(target) as connection:
            place = find_new_place(connection)
    if place is not None:
        raise ConfigurationError(_MOVED.format(name_store(place)))


@contextmanager
def _claiming(targets: Iterable[Path]) -> Generator[dict[Path, Seal]]:
    """Keep every other process from opening the files."""
    seals: dict[Path, Seal] = {}
    try:
        for target in targets:
            make_folder(target)
            seals[target] = Seal(target)
            if seals[target].can_lock and not seals[target].claim():
                raise StoreError(_IN_USE)
        yield seals
    finally:
        for seal in seals.values():
            seal.close()


@contextmanager
def _clearing(targets: Iterable[Path]) -> Generator[None]:
    """Remove what a killed attempt left, which may hold what must go, and afterwards what this one leaves."""
    targets = list(targets)
    for target in targets:
        remove_left(target)
    try:
        yield
    finally:
        for target in targets:
            # What cannot be removed now goes when the store is opened next, and says nothing of how this one ended.
            with suppress(OSError):
                remove_left(target)


@contextmanager
def _blaming(*, as_is: bool) -> Generator[None]:
    """Make errors say that the file to be restored is damaged, rather than the store."""
    try:
        with translated():
            yield
    except DamageError as error:
        if error.__cause__ is None:
            raise  # has a message of its own
        raise DamageError(_DAMAGED_FILE if as_is else _DAMAGED_BACKUP) from error


def _prepare(source: Path, targets: Mapping[str, Path], as_is: bool) -> list[_Copy]:
    with _blaming(as_is=as_is):
        path = _name_copy(targets[""])
        has_left_log = _take(source, path, as_is=as_is)
        copies = [_settle("", path, targets[""])]
        connection = Connection(path, 0)
        try:
            enclosed = list_enclosed(connection)
            if missing := sorted(enclosed.keys() - targets.keys()):
                raise InvalidInputError(
                    f"The backup holds {missing[0]}, kept in a file of their own. Say in the settings where that file "
                    "is, as they did when the backup was made, and restore again."
                )
            for name, digest in enclosed.items():
                extract(connection, name, digest, _name_copy(targets[name]))
                copies.append(_settle(name, _name_copy(targets[name]), targets[name]))
            if enclosed:
                connection.execute("DROP TABLE enclosed; DROP TABLE enclosed_files; VACUUM")
        finally:
            connection.close()
        return [replace(copies[0], has_left_log=has_left_log), *copies[1:]]


def _name_copy(target: Path) -> Path:
    return target.with_name(f"{target.name}{RESTORING}")


def _take(source: Path, copy: Path, *, as_is: bool) -> bool:
    """Copy a file with its log, if any; return whether a log was left out because it is not the file's."""
    log, marks = Path(f"{source}-wal"), _read_alone(source)
    has_log = log.exists() and log.stat().st_size > _LOG_HEADER
    if not as_is and (has_log or (marks is not None and marks.in_use)):
        raise InvalidInputError(
            "This is no backup: it was in use when it was copied, so what was stored last may be missing. Take one "
            "that refdesk backup made; to accept this one as it is, say --as-is."
        )
    copy_file(source, copy)
    if not has_log:
        return False
    copy_file(log, Path(f"{copy}-wal"))
    connection = Connection(copy, 0)
    is_its_own = False
    try:
        with suppress(StoreError):
            judge_log(marks, read_marks(connection))
            is_its_own = True
    finally:
        connection.set_checkpoint_on_close(is_on=False)
        connection.close()
    if not is_its_own:
        clear_log(copy)
        copy_file(source, copy)
    return not is_its_own


def _read_alone(source: Path) -> Marks | None:
    """Return what a file says about itself without its log; `None` also if it cannot be read without the log."""
    try:
        with open_snapshot(source) as connection:
            return read_marks(connection)
    except (apsw.CorruptError, apsw.FormatError):
        return None


def clear_log(path: Path) -> None:
    """Remove the log beside a copy."""
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _settle(name: str, copy: Path, target: Path) -> _Copy:
    """Examine a copy and make it a store of its own."""
    connection = Connection(copy, 0)
    try:
        if connection.get_row("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'") is None:
            raise InvalidInputError("This file holds no store: take one that refdesk backup made.")
        get_missing(connection, load_migrations())
        if faults := list_faults(connection, 1):
            raise DamageError(f"This file is damaged: {faults[0]}. Nothing was changed; take another backup.")
        connection.set_pragma("journal_mode", "delete")
        marks, place = read_marks(connection), find_new_place(connection)
        connection.execute("BEGIN")
        forget_move(connection)
        connection.execute("COMMIT")
        claim_as_new(connection)
        return _Copy(name, copy, target, marks.store if marks is not None else 0, was_moved=place is not None)
    finally:
        connection.close()


async def _follow(copy: _Copy, clock: Clock, actor: Actor, revokes_unchecked: bool) -> Restored:
    """Bring into a copy what it must keep of the store that it replaces."""
    from refdesk.stores.sqlite.store import open_store

    aftermath, erasures, knows_erasures = await anyio.to_thread.run_sync(_recall, copy)
    async with open_store(copy.path, clock=clock) as store:
        carried = await carry_over(aftermath, store, clock, actor, revokes_unchecked=revokes_unchecked)
        documents = sum(sum(each.documents.values()) for each in await store.get_statistics())
    if knows_erasures or not copy.target.exists():
        await anyio.to_thread.run_sync(write_list, copy.target, erasures)
    return Restored(
        copy.name,
        documents,
        carried,
        kept=None,
        knows_erasures=knows_erasures,
        has_left_log=copy.has_left_log,
        was_moved=copy.was_moved,
        knows_acts=aftermath.has_all_acts,
    )


def _recall(copy: _Copy) -> tuple[Aftermath, Erasures, bool]:
    """Return what is known of the time since the backup, what was erased, and whether that list is complete."""
    listed = read_list(copy.target)
    left = _Left()
    if copy.target.exists():
        with suppress(RefdeskError), translated(), _reading(copy.target) as connection:
            left = _read_left(connection)
    known = (listed or Erasures()).add(left.erasures or Erasures())
    wide = sorted(((each.org, each.number, each.agent) for each in known.wide), key=str)
    aftermath = Aftermath(
        sorted(known.tombstones), wide, left.acts, left.keys, left.has_all_acts, copy.store in known.stores
    )
    erasures = known.add(Erasures(stores=frozenset({copy.store})))
    return aftermath, erasures, listed is not None or left.erasures is not None


@dataclass(frozen=True, slots=True)
class _Left:
    """What could be read of a file that is to be replaced; each item is read on its own, as any of them may be damaged.

    Attributes:
        erasures: `None` if not all of them could be read.
    """

    erasures: Erasures | None = None
    keys: Sequence[Metadata] = ()
    acts: Sequence[Sequence[AuditEntry]] = ()
    has_all_acts: bool = False


def _read_left(connection: Connection) -> _Left:
    erasures = _try(lambda: find_erasures(connection))
    records = _try(lambda: reads.list_metadata(connection, keys.KIND, None, None, keys.MOST_KEYS))
    orgs = _try(lambda: archive.list_audited_orgs(connection))
    logs = [_read_acts(connection, org) for org in orgs or ()]
    is_whole = orgs is not None and all(is_read for _, is_read in logs)
    return _Left(erasures, records or (), [acts for acts, _ in logs], is_whole)


def _try(read: Callable[[], T]) -> T | None:
    with suppress(RefdeskError), translated():
        return read()
    return None


def _read_acts(connection: Connection, org: str) -> tuple[list[AuditEntry], bool]:
    """Return the log of an org as far as it can be read, and whether that is all of it."""
    acts: list[AuditEntry] = []
    while page := _try(partial(reads.get_audit, connection, org, acts[-1].number if acts else 0, _PAGE)):
        acts += page
    return acts, page is not None


@contextmanager
def _reading(path: Path) -> Generator[Connection]:
    """Yield a connection to the file to be replaced, with its log if that belongs to it; both stay as they are."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size > _LOG_HEADER:
        marks, connection = _read_alone(path), Connection(path, 0)
        try:
            connection.set_checkpoint_on_close(is_on=False)
            with suppress(StoreError):
                judge_log(marks, read_marks(connection))
                yield connection
                return
        finally:
            connection.close()
    with open_snapshot(path) as connection:
        yield connection


def _put_in_place(copy: _Copy, seal: Seal, stamp: str) -> Path | None:
    """Rename the copy to the file that it replaces; return where the replaced file is now."""
    target = copy.target
    with open_snapshot(copy.path) as connection:
        marks = read_marks(connection)
    _flush(copy.path)
    with _keeping(target, stamp) as kept:
        clear_log(target)
        copy.path.replace(target)
    remove_mark(target)
    flush_folder(target.parent)
    if marks is not None:
        seal.write(marks.store, marks.commits)
    seal.note_closed()
    return kept


@contextmanager
def _keeping(target: Path, stamp: str) -> Generator[Path | None]:
    """Keep the file that the block replaces under another name; if the block fails, it is in place again as it was."""
    if not target.exists():
        yield None
        return
    kept = _find_free(target.with_name(f"{target.name}.replaced-{stamp}"))
    try:
        _keep(target, kept)
        yield kept
    except BaseException:
        _return(target, kept)
        raise


def _keep(target: Path, kept: Path) -> None:
    """Give the replaced file another name, and its log; until the copy takes its place it keeps its own, too."""
    log = Path(f"{target}-wal")
    try:
        kept.hardlink_to(target)
    except OSError:
        # A file system without hard links: a kill now leaves no file in place, which is noticed.
        target.replace(kept)
    if log.exists() and log.stat().st_size > _LOG_HEADER:
        log.replace(f"{kept}-wal")


def _return(target: Path, kept: Path) -> None:
    """Undo what `_keep` did, as far as the disk lets."""
    log = Path(f"{kept}-wal")
    with suppress(OSError):
        if log.exists():
            log.replace(f"{target}-wal")
        if target.exists():
            kept.unlink(missing_ok=True)
        else:
            kept.replace(target)


def _find_free(path: Path) -> Path:
    names = (path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1000)))
    return next(name for name in names if not name.exists())


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
