"""The contents and condition of a data folder, as `refdesk status` shows them: sizes, freshness, jobs, failures."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refdesk.app import Desk
    from refdesk.core.background.upkeep import SyncState
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

MOST_ORGS = 5


async def report(desk: Desk) -> dict[str, Any]:
    """Return a report on a desk and its data, as JSON values; problems with the store do not make it raise."""
    found: dict[str, Any] = {"sizes": measure_files(desk.settings), "health": (await desk.get_health()).to_json()}
    with suppress(errors.RefdeskError):
        base = await desk.get_base()
        upkeep = desk.get_upkeep(base)
        found["syncs"] = [_describe(each) for each in await upkeep.list_syncs()]
        embedding = await upkeep.get_embedding()
        found["embedding"] = embedding.to_json()
        found |= await _count(base)
    return found


async def _count(base: Base) -> dict[str, Any]:
    from refdesk.core.background.sync_log import DEAD_LETTER
    from refdesk.core.writing import sizes

    store = base.knowledge_base.store
    orgs = sorted((await sizes.read_sizes(store)).items(), key=lambda pair: (-pair[1], pair[0]))
    queue = base.queue
    return {
        "orgs": dict(orgs[:MOST_ORGS]),
        "setAside": len(await store.list_metadata(DEAD_LETTER)),
        "queue": {"isShared": queue is not None and queue.is_shared, "trouble": queue.trouble if queue else None},
    }


def _describe(state: SyncState) -> dict[str, Any]:
    status, progress = state.status, state.progress
    return {
        "toolset": state.toolset,
        "isDue": state.is_due,
        "isRunning": state.is_running,
        "read": progress.read if progress is not None else None,
        "total": progress.total if progress is not None else None,
        "lastSuccess": status.last_success.isoformat() if status.last_success else None,
        "lastError": status.last_error,
        "lastErrorAt": status.last_error_at.isoformat() if status.last_error_at else None,
    }


def measure_files(settings: Settings) -> dict[str, int]:
    """Return the bytes of the store's file with those that belong to it, and of the whole data folder; 0 if there is
    none."""
    from refdesk.factories.stores import find_file

    file = find_file(settings.store_url)
    own = [file.with_name(f"{file.name}{end}") for end in ("", "-wal", "-shm")] if file is not None else []
    return {"store": sum(map(_measure, own)), "home": sum(map(_measure, _list_files(settings.home)))}


def _list_files(folder: Path) -> Iterator[Path]:
    for name, _, files in os.walk(folder):
        yield from (Path(name) / each for each in files)


def _measure(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512 if hasattr(path.lstat(), "st_blocks") else path.lstat().st_size
    except OSError:
        return 0
