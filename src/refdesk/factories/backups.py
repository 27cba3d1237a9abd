"""The files in which the settings keep stores: backing them up, restoring backups, checking them.

A store that was moved while it served is where it was moved to, even if the settings still name the old place: the new
file is backed up and checked.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from refdesk import errors
from refdesk.factories.stores import choose_store, find_file
from refdesk.factories.toolsets import choose_own_stores, list_names

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.background.backups import BackupStatus, Made, Schedule
    from refdesk.core.keeping.carrying import Restored
    from refdesk.core.writing.audit import Actor
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_ELSEWHERE = (
    "{variable} names a store that is not a file: its server's own tools back it up. docs/how-to/back-up.md says how "
    "for PostgreSQL and Neo4j."
)
_MOVED = (
    "{variable} names a file whose store was moved to {place}, so no backup is made: the file is out of date, and "
    "that store's server has tools of its own (docs/how-to/back-up.md). Name that store in {variable}."
)
_CIRCLE = "{variable} names a file whose store was moved in a circle: name the one that is meant."
_MOST_MOVES = 16


def list_files(settings: Settings) -> dict[str, Path]:
    """Return the file of the store under the empty name, and those of toolsets kept apart under the toolset's name.

    Raises:
        ConfigurationError: One of the stores is not in a file, but on a server or in memory.
    """
    return {name: file for name, (file, _) in _list_named(settings).items()}


def follow_files(settings: Settings) -> dict[str, Path]:
    """Return the same for where the stores are now: moved ones are in other files. Blocks; opens the files.

    Raises:
        ConfigurationError: As in `list_files`, or a store was moved to a server.
    """
    return {name: _follow(file, variable) for name, (file, variable) in _list_named(settings).items()}


def _list_named(settings: Settings) -> dict[str, tuple[Path, str]]:
    """Return the files, each with the setting that names it."""
    urls = {"": (settings.store_url, "REFDESK_STORE"), **choose_own_stores(settings, list_names())}
    files: dict[str, tuple[Path, str]] = {}
    for name, (url, variable) in urls.items():
        file = find_file(url)
        if file is None:
            raise errors.ConfigurationError(_ELSEWHERE.format(variable=variable))
        files[name] = file, variable
    return files


def _follow(file: Path, variable: str) -> Path:
    from refdesk.core.keeping.unfinished import name_store
    from refdesk.stores.sqlite.moving import read_new_place

    for _ in range(_MOST_MOVES):
        url = read_new_place(file)
        if url is None:
            return file
        following = find_file(url)
        if following is None:
            raise errors.ConfigurationError(_MOVED.format(variable=variable, place=name_store(url)))
        file = following
    raise errors.ConfigurationError(_CIRCLE.format(variable=variable))


def make_backup(settings: Settings, target: Path, *, replaces: bool = False) -> Made:
    """Make a backup of all files; blocks. Errors as in `follow_files` and `refdesk.stores.sqlite.backups.make_backup`.

    Each call looks up anew where the stores are.
    """
    from refdesk.core.background.backups import Made
    from refdesk.stores.sqlite import backups

    files = follow_files(settings)
    # A toolset that was never used has no file yet.
    apart = {name: file for name, file in files.items() if name and file.is_file()}
    made = backups.make_backup(files[""], target, apart, replaces=replaces)
    return Made(made.bytes, made.counts["documents"], made.enclosed)


def is_own(settings: Settings, path: Path) -> bool:
    """Return whether a backup is of the store backed up now, or a leftover of one belongs to no running process.

    Backups from before a move or a restore are of another store. Blocks; errors as in `follow_files`.
    """
    from refdesk.stores.sqlite import backups

    return backups.is_left(path) if backups.PARTIAL in path.name else backups.is_of(path, follow_files(settings)[""])


async def back_up(settings: Settings, target: Path, actor: Actor, replaces: bool) -> Made:
    """Make a backup and, if the store can be written, put on record that it was made; errors as in `make_backup`.

    Raises:
        ConfigurationError: There is no store yet.
    """
    from refdesk.core.background.backups import note_made
    from refdesk.core.clock import SystemClock
    from refdesk.core.keeping.following import follow
    from refdesk.stores.sqlite import open_store
    from refdesk.stores.sqlite.backups import check_target

    files = await anyio.to_thread.run_sync(follow_files, settings)
    there = [path for path in files.values() if await anyio.Path(path).is_file()]
    if files[""] not in there:
        raise errors.ConfigurationError("There is no store yet, so there is nothing to back up.")
    # The file that a store was moved out of says where it went, and must not be overwritten with a store.
    check_target(target, [*files.values(), *list_files(settings).values()], replaces=replaces)
    async with AsyncExitStack() as stack:
        # Opening a file checks whether it is intact.
        # A store that is moved meanwhile has the backup on record where it is then.
        opened = [follow(open_store(path), lambda url: choose_store(url)()) for path in there]
        stores = [await stack.enter_async_context(each) for each in opened]
        made = await anyio.to_thread.run_sync(lambda: make_backup(settings, target, replaces=replaces))
        if stores[0].obstacle is not None:
            return replace(made, obstacle=stores[0].obstacle)
        await note_made(stores[0], SystemClock(), actor, target.name, made)
    return made


async def restore_backup(
    settings: Settings, source: Path, actor: Actor, as_is: bool, revokes_unchecked: bool
) -> list[Restored]:
    """Restore a backup in place of all files; errors as in `list_files` and `refdesk.stores.sqlite.restoring`."""
    from refdesk.core.clock import SystemClock
    from refdesk.stores.sqlite import restoring

    return await restoring.restore(
        source, list_files(settings), SystemClock(), actor, as_is=as_is, revokes_unchecked=revokes_unchecked
    )


def follow_history(source: str, target: str) -> None:
    """Let backups of the store at `source` count as earlier ones of that at `target`, if both are files; blocks."""
    from refdesk.stores.sqlite import erasures

    old, new = find_file(source), find_file(target)
    if old is not None and new is not None:
        erasures.follow_history(old, new)


def list_faults(settings: Settings) -> dict[str, list[str]]:
    """Return what is wrong with each of the files that exist, whether or not they open as stores; blocks.

    Errors as in `follow_files`.
    """
    from refdesk.stores.sqlite.checking import list_faults_of_file

    return {name: list_faults_of_file(path) for name, path in follow_files(settings).items() if path.is_file()}


def require_sound(settings: Settings) -> None:
    """Check that the files are sound, if the stores are in files; blocks.

    Raises:
        StoreError: One is damaged, so that reading it may not give everything.
    """
    try:
        faults = list_faults(settings)
    except errors.ConfigurationError:
        return
    if any(faults.values()):
        raise errors.StoreError(
            "The store's file is damaged, so nothing was written: it would not be whole. Run refdesk doctor --deep, "
            "and put back a backup (refdesk restore)."
        )


def choose_schedule(settings: Settings) -> Schedule | None:
    """Return the schedule of backups, or `None` if the settings ask for none."""
    if settings.backup_every is None:
        return None
    from refdesk.core.background.backups import Schedule

    every = int(settings.backup_every[:-1]) * _UNITS[settings.backup_every[-1]]
    return Schedule(every, settings.backup_keep, settings.backup_to or settings.home / "backups")


async def keep_backups(settings: Settings, base: Base) -> None:
    """Make backups whenever one is due, until cancelled; return at once if there is no file to back up."""
    from refdesk.core.background.backups import BackupKeeper

    schedule = choose_schedule(settings)
    try:
        list_files(settings)
    except errors.ConfigurationError as error:
        logger.warning("no backups", extra={"reason": error.message})
        return
    if schedule is not None:
        store, clock = base.knowledge_base.store, base.knowledge_base.clock
        await BackupKeeper(store, clock, schedule, partial(make_backup, settings), partial(is_own, settings)).run()


async def look_at_backups(settings: Settings, base: Base, since: datetime) -> tuple[BackupStatus, str | None]:
    """Return what is known about the backups of a desk, and what is wrong with those that the settings ask for.

    Args:
        since: When this process began to look after them.

    Raises:
        StoreError: The store failed.
    """
    from refdesk.core.background.backups import find_problem, read_status

    status, schedule = await read_status(base.knowledge_base.store), choose_schedule(settings)
    if schedule is None:
        return status, None
    try:
        await anyio.to_thread.run_sync(follow_files, settings)
    except errors.ConfigurationError as error:
        return status, error.message
    return status, find_problem(status, schedule, base.knowledge_base.clock.now(), since)
