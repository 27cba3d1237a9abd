"""Syncs for the command line: says how far it is, line by line, and stops when nobody listens any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio

from refdesk import errors
from refdesk.forwarder import hello
from refdesk.server.local.calls import describe_failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.app import Desk
    from refdesk.core.background.sync_log import SyncReport
    from refdesk.core.background.syncing import OnProgress, SyncProgress
    from refdesk.server.local.lines import Lines


logger = logging.getLogger(__name__)


async def answer(desk: Desk, said: Mapping[str, Any], lines: Lines) -> None:
    """Sync the toolset that is named; write lines with its `progress`, then one with the `value` or what `failed`."""
    found: dict[str, object] = {}
    put, take = anyio.create_memory_object_stream[dict[str, object]](1)

    def note(state: SyncProgress) -> None:
        try:
            put.send_nowait({"progress": [state.read, state.total]})
        except anyio.WouldBlock:
            return  # the next one says as much

    async def tell() -> None:
        async for step in take:
            await _say(lines, step)

    async def watch() -> None:
        while await lines.next() is not None:
            pass
        logger.info("sync ends early", extra={"reason": "whoever asked for it has gone"})
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with take, anyio.create_task_group() as telling:
            telling.start_soon(tell)
            with put:
                found = await _sync(desk, said, note)
        await _say(lines, found)
        group.cancel_scope.cancel()


async def _sync(desk: Desk, said: Mapping[str, Any], on_progress: OnProgress) -> dict[str, object]:
    try:
        upkeep = desk.get_upkeep(await desk.get_base())
        options = {name: said.get(name) is True for name in ("full", "force")}
        return {"value": to_json(await upkeep.sync(str(said.get("toolset")), on_progress, **options))}
    except errors.RefdeskError as error:
        return describe_failure(error)


async def _say(lines: Lines, value: Mapping[str, object]) -> None:
    await lines.write(hello.pack(value).decode())


def to_json(report: SyncReport) -> dict[str, Any]:
    """Return what a sync did, changes left out: the changelog has them."""
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
