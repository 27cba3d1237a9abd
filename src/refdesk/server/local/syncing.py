"""Syncs for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refdesk.server.local import working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.app import Desk
    from refdesk.core.background.sync_log import SyncReport
    from refdesk.core.background.syncing import SyncProgress
    from refdesk.server.local.lines import Lines
    from refdesk.server.local.working import Note


async def answer(desk: Desk, said: Mapping[str, Any], lines: Lines) -> None:
    """Sync the toolset that the request names; see `working.answer`."""

    async def sync(note: Note) -> object:
        def tell(state: SyncProgress) -> None:
            note(state.read, state.total)

        upkeep = desk.get_upkeep(await desk.get_base())
        options = {name: said.get(name) is True for name in ("full", "force")}
        return to_json(await upkeep.sync(str(said.get("toolset")), tell, **options))

    await working.answer(lines, "sync", sync)


def to_json(report: SyncReport) -> dict[str, Any]:
    """Return what a sync did, without the individual changes, which the changelog has."""
    return {
        "outcome": report.outcome,
        "kind": report.kind,
        "startedAt": report.started_at.isoformat(),
        "finishedAt": report.finished_at.isoformat(),
        "added": report.added,
        "changed": report.changed,
        "withdrawn": report.withdrawn,
        "restored": report.restored,
        "unchanged": report.unchanged,
        "quarantined": report.quarantined,
        "withheld": report.withheld,
        "missing": report.missing,
    }
