"""`refdesk import`: imports knowledge from files in refdesk's own formats or those of other memory servers."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from refdesk.cli import invocation, progress, views_of_entries

if TYPE_CHECKING:
    from refdesk.settings import Settings
    from refdesk.toolsets.knowledge.transfer.reports import ImportFormat, ImportReport, Progress

FORMATS = ["jsonl", "markdown", "mcp-memory", "mem0", "basic-memory"]


@click.command("import")
@click.argument("name", metavar="TOOLSET", type=click.Choice(["knowledge"]))
@click.argument("path", metavar="PATH", type=invocation.PathType(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(FORMATS), required=True, help="What it is; a folder for the Markdown ones."
)
@click.option("--dry-run", is_flag=True, help="Change nothing, only say what would be done.")
@invocation.caller_options
@invocation.json_option
def import_(
    name: str, path: Path, form: ImportFormat, dry_run: bool, org: str | None, agent: str | None, as_json: bool
) -> None:
    """Add to TOOLSET, which is knowledge, the entries at PATH.

    Nothing that is stored is changed, and importing twice adds nothing. Exit status 1 if something was not taken over.
    """
    import anyio

    del name
    settings = invocation.load(org, agent)
    with progress.show_progress("Importing") as show:
        report = anyio.run(_import, settings, path, form, dry_run, show)
    if as_json:
        invocation.print_json(asdict(report))
    else:
        click.echo(views_of_entries.tell_imported(report))
    sys.exit(bool(report.conflicts or report.invalid or report.over_quota))


async def _import(
    settings: Settings, path: Path, form: ImportFormat, dry_run: bool, show: Progress | None
) -> ImportReport:
    from refdesk.app import open_desk
    from refdesk.core.writing import audit
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server.principals import local_principal
    from refdesk.toolsets.knowledge.transfer.files import import_entries

    toolsets = load_toolsets(["knowledge"])
    author = local_principal(settings, toolsets, "cli").agent
    async with open_desk(settings, toolsets, in_background=False) as desk:
        base = (await desk.get_base()).knowledge_base
        watched = audit.watch(base.store, base.clock, audit.Actor(settings.org, author, "cli"), "import")
        base = replace(base, store=watched)
        return await import_entries(base, settings.org, author, path, form, dry_run, show)
