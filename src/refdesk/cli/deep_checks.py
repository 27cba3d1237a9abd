"""The additional checks of `refdesk doctor --deep`: everything that is stored is read and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk import errors
from refdesk.core.descriptors import Check

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from refdesk.app import Desk
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

MOST_FAULTS = 5
RESTORE = "Stop every process that uses the store, and put back a backup: refdesk restore FILE."
ADVICE = {
    "index": "It is derived: stop every process that uses the store, remove the folder ending in -index, start again.",
    "audit log": "The record was changed or cut: keep the store, and compare it with an export (refdesk audit export).",
}


async def look_deep(desk: Desk) -> list[Check]:
    """Return what is found in the files, and by reading everything through the stores if they open."""
    checks = await _check_files(desk.settings)
    try:
        base = await desk.get_base()
    except errors.RefdeskError:
        return checks
    return checks + [check async for check in _examine(base)]


async def _check_files(settings: Settings) -> list[Check]:
    """Return what is found in the files of file-based stores, page by page and row by row."""
    import anyio.to_thread

    from refdesk.factories.backups import list_faults

    try:
        found = await anyio.to_thread.run_sync(list_faults, settings)
    except errors.ConfigurationError:
        return []  # a database server keeps the data, and has checks of its own
    checks: list[Check] = []
    for toolset, faults in found.items():
        name = f"{toolset} file".strip()
        checks += [Check(name, "fail", fault, RESTORE) for fault in faults]
        if not faults:
            checks.append(Check(name, "ok", "pages, indexes, rows and the audit log are as they were written"))
    return checks


async def _examine(base: Base) -> AsyncIterator[Check]:
    """Yield what is found by reading everything through the stores."""
    from refdesk.core.keeping.examining import examine

    for toolset, each in (("", base), *base.apart.items()):
        async for findings in examine(each.knowledge_base.store):
            name = f"{toolset} {findings.area}".strip()
            for fault in findings.faults[:MOST_FAULTS]:
                yield Check(name, "fail", fault, ADVICE.get(findings.area, RESTORE))
            if len(findings.faults) > MOST_FAULTS:
                yield Check(name, "fail", f"and {len(findings.faults) - MOST_FAULTS} more", "")
            if not findings.faults:
                yield Check(name, "ok", f"{findings.count} read, nothing is wrong")
