"""The files that the settings keep stores in: backing them up, putting backups back, looking through them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.factories.stores import find_file
from refdesk.factories.toolsets import choose_own_stores, list_names

if TYPE_CHECKING:
    from refdesk.core.background.backups import Made, Schedule
    from refdesk.core.keeping.carrying import Restored
    from refdesk.core.writing.audit import Actor
    from refdesk.settings import Settings

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_ELSEWHERE = (
    "{variable} names a store that is not a file: its server's own tools back it up. docs/how-to/back-up.md says how "
    "for PostgreSQL and Neo4j."
)


def list_files(settings: Settings) -> dict[str, Path]:
    """Return the file of the store under the empty name, and those of toolsets that are kept apart under theirs.

    Raises:
        ConfigurationError: One of them is on a server, or nowhere.
    """
    urls = {"": (settings.store_url, "REFDESK_STORE"), **choose_own_stores(settings, list_names())}
    files: dict[str, Path] = {}
    for name, (url, variable) in urls.items():
        file = find_file(url)
        if file is None:
            raise errors.ConfigurationError(_ELSEWHERE.format(variable=variable))
        files[name] = file
    return files


def make_backup(settings: Settings, target: Path, *, replaces: bool = False) -> Made:
    """Make a backup of all files; blocks. Errors as in `list_files` and `refdesk.stores.sqlite.backups.make_backup`."""
    from refdesk.core.background.backups import Made
    from refdesk.stores.sqlite import backups

    files = list_files(settings)
    # A toolset that was never used has no file yet.
    apart = {name: file for name, file in files.items() if name and file.is_file()}
    made = backups.make_backup(files[""], target, apart, replaces=replaces)
    return Made(made.bytes, made.counts["documents"], made.enclosed)


async def back_up(settings: Settings, target: Path, actor: Actor, replaces: bool) -> Made:
    """Make a backup and put on record that it was made; errors as in `make_backup`.

    Raises:
        ConfigurationError: There is no store yet.
    """
    import anyio.to_thread

    from refdesk.core.background.backups import note_made
    from refdesk.core.clock import SystemClock
    from refdesk.stores.sqlite import open_store
    from refdesk.stores.sqlite.backups import check_target

    files = list_files(settings)
    there = [path for path in files.values() if await anyio.Path(path).is_file()]
    if files[""] not in there:
        raise errors.ConfigurationError("There is no store yet, so there is nothing to back up.")
    check_target(target, files.values(), replaces=replaces)
    async with AsyncExitStack() as stack:
        # Whoever opens a file judges whether it is whole.
        stores = [await stack.enter_async_context(open_store(path)) for path in there]
        made = await anyio.to_thread.run_sync(lambda: make_backup(settings, target, replaces=replaces))
        await note_made(stores[0], SystemClock(), actor, target.name, made)
    return made


async def restore_backup(settings: Settings, source: Path, actor: Actor, as_is: bool) -> list[Restored]:
    """Put a backup in the place of all files; errors as in `list_files` and `refdesk.stores.sqlite.restoring`."""
    from refdesk.core.clock import SystemClock
    from refdesk.stores.sqlite import restoring

    return await restoring.restore(source, list_files(settings), SystemClock(), actor, as_is=as_is)


def list_faults(settings: Settings) -> dict[str, list[str]]:
    """Return what is wrong with each of the files that are there, whether or not they open as stores; blocks."""
    from refdesk.stores.sqlite.checking import list_faults_of_file

    return {name: list_faults_of_file(path) for name, path in list_files(settings).items() if path.is_file()}


def require_sound(settings: Settings) -> None:
    """Return when the files are sound, or the stores not in files; blocks.

    Raises:
        StoreError: One is damaged: what is read of it may not be all of it.
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
    """Return when backups are to be made, or `None` when the settings ask for none."""
    if settings.backup_every is None:
        return None
    from refdesk.core.background.backups import Schedule

    every = int(settings.backup_every[:-1]) * _UNITS[settings.backup_every[-1]]
    return Schedule(every, settings.backup_keep, settings.backup_to or settings.home / "backups")
