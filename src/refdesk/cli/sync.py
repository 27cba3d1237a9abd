"""`refdesk sync`: syncs a toolset with its source now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, progress

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.background.sync_log import SyncReport
    from refdesk.core.background.syncing import SyncProgress
    from refdesk.settings import Settings


@click.command()
@click.argument("name", metavar="TOOLSET")
@click.option("--full", is_flag=True, help="Compare everything, not only what changed.")
@click.option("--force", is_flag=True, help="Withdraw what is gone from the source even when it is suspiciously much.")
@invocation.json_option
def sync(name: str, full: bool, force: bool, as_json: bool) -> None:
    """Bring TOOLSET, such as azure-updates, up to date with its source."""
    import anyio

    settings = invocation.load()
    with progress.show_progress("Reading the feed") as show:
        report = anyio.run(_sync, settings, name, full, force, show)
    if as_json:
        invocation.print_json(to_json(report))
    else:
        click.echo(describe(name, report))


async def _sync(settings: Settings, name: str, full: bool, force: bool, show: Show | None) -> SyncReport:
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import choose_syncer, load_toolsets

    def on_progress(state: SyncProgress) -> None:
        if show is not None:
            show(state.read, state.total)

    toolsets = load_toolsets([name])
    async with open_desk(settings, toolsets, in_background=False) as desk:
        syncer = choose_syncer(settings, name, (await desk.get_base()).knowledge_base.store)
        return await syncer.sync(full=full, force=force, on_progress=on_progress)


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


def describe(name: str, report: SyncReport) -> str:
    """Return what a sync did, in one or two sentences."""
    if report.outcome == "busy":
        return f"Another process is syncing {name} at this moment; nothing was done."
    counts = [
        f"{count} {word}"
        for word in ("added", "changed", "withdrawn", "restored", "unchanged")
        if (count := getattr(report, word))
    ]
    seconds = (report.finished_at - report.started_at).total_seconds()
    text = f"{name} is current ({report.kind} sync, {seconds:.1f} s): {', '.join(counts) or 'nothing to do'}."
    if report.quarantined:
        text += f" {report.quarantined} records could not be read and were set aside; refdesk doctor says why."
    if report.missing:
        text += f" The source says that it holds {report.missing} more than it gave."
    if report.withheld:
        why = "while it gives less than it says" if report.missing else "suspiciously many"
        text += f" Gone from the source, {why}, and kept: {report.withheld}; --force withdraws them."
    return text
