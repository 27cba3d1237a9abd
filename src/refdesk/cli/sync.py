"""`refdesk sync`: syncs a toolset with its source now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, progress
from refdesk.cli.serve import complete_toolset
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.cli.progress import Show
    from refdesk.core.background.syncing import SyncProgress
    from refdesk.settings import Settings


@click.command()
@click.argument("name", metavar="TOOLSET", shell_complete=complete_toolset)
@click.option("--full", is_flag=True, help="Compare everything, not only what changed.")
@click.option("--force", is_flag=True, help="Withdraw what is gone from the source even when it is suspiciously much.")
@invocation.json_option
def sync(name: str, full: bool, force: bool, as_json: bool) -> None:
    """Bring TOOLSET, such as azure-updates, up to date with its source.

    A further feed that the settings add has a name of its own, such as azure-updates:m365.

    The desk or server that runs does it, where one does.
    """
    from refdesk.cli import through_desk

    with progress.show_progress("Reading the feed") as show:
        done = through_desk.sync(name, full=full, force=force, show=show)
        if done is None:
            done = _sync_alone(invocation.load(), name, full, force, show)
    if as_json:
        invocation.print_json(done)
    else:
        click.echo(describe(name, done))


def _sync_alone(settings: Settings, name: str, full: bool, force: bool, show: Show | None) -> dict[str, Any]:
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.toolsets import get_toolset, load_toolsets
    from refdesk.server.local.syncing import to_json

    def note(state: SyncProgress) -> None:
        if show is not None:
            show(state.read, state.total)

    async def run() -> dict[str, Any]:
        async with open_desk(settings, load_toolsets([get_toolset(name)], settings), in_background=False) as desk:
            upkeep = desk.get_upkeep(await desk.get_base())
            return to_json(await upkeep.sync(name, note, full=full, force=force))

    return anyio.run(run)


def describe(name: str, report: Mapping[str, Any]) -> str:
    """Return what a sync did, in one or two sentences."""
    if report["outcome"] == "busy":
        return f"{name} is being synced already; nothing was done."
    counts = [
        f"{count} {word}"
        for word in ("added", "changed", "withdrawn", "restored", "unchanged")
        if (count := report[word])
    ]
    took = datetime.fromisoformat(report["finishedAt"]) - datetime.fromisoformat(report["startedAt"])
    done = ", ".join(counts) or "nothing to do"
    text = f"{name} is current ({report['kind']} sync, {took.total_seconds():.1f} s): {done}."
    if report["quarantined"]:
        set_aside = say_count(report["quarantined"], "record was", "records were")
        text += f" {set_aside} unreadable and set aside; refdesk doctor says why."
    if report["missing"]:
        text += f" The source says that it holds {report['missing']} more than it gave."
    if report["withheld"]:
        why = "while it gives less than it says" if report["missing"] else "suspiciously many"
        text += f" Gone from the source, {why}, and kept: {report['withheld']}; --force withdraws them."
    return text
