"""`refdesk export`: a toolset's documents as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click

from refdesk import errors
from refdesk.cli import asking, progress, views_of_entries

if TYPE_CHECKING:
    from refdesk.settings import Settings
    from refdesk.toolsets.azure_updates.export import Format
    from refdesk.toolsets.azure_updates.models import SearchInput, Update
    from refdesk.toolsets.knowledge.transfer.reports import ExportFormat, ExportReport, Progress

FORMATS = {"azure-updates": ("json", "csv", "md"), "knowledge": ("jsonl", "markdown")}


@click.command()
@click.argument("name", metavar="TOOLSET", type=click.Choice(list(FORMATS)))
@click.option(
    "--format",
    "form",
    type=click.Choice([form for forms in FORMATS.values() for form in forms]),
    help="azure-updates: json (default), csv, md. knowledge: jsonl (default), or markdown, which makes a folder.",
)
@click.option("--query", help="Only what this finds, best first; without it, everything. Of azure-updates.")
@asking.filter_option
@click.option("--output", type=click.Path(path_type=Path), help="The file or folder; standard output without.")
@click.option("--org", metavar="ORG", help="Whose knowledge. Default: REFDESK_ORG, else local.")
def export(
    name: str, form: str | None, query: str | None, filters: tuple[str, ...], output: Path | None, org: str | None
) -> None:
    """Write everything that TOOLSET holds: azure-updates, or an org's knowledge, which refdesk import reads again."""
    form = form or FORMATS[name][0]
    if form not in FORMATS[name]:
        raise errors.InvalidInputError(f"{name} is exported as {' or '.join(FORMATS[name])}, not as {form}.")
    settings = asking.load(org)
    if name == "azure-updates":
        _export_updates(settings, cast("Format", form), query or "", filters, output)
    elif query is not None or filters:
        raise errors.InvalidInputError("knowledge is exported whole: leave out --query and --filter.")
    else:
        _export_knowledge(settings, cast("ExportFormat", form), output)


def _export_updates(
    settings: Settings, form: Format, query: str, filters: tuple[str, ...], output: Path | None
) -> None:
    import anyio

    from refdesk.toolsets.azure_updates.export import render

    found = anyio.run(_collect, settings, query, filters)
    if output is None:
        for piece in render(found, form):
            click.echo(piece, nl=False)
    else:
        write_atomically(output, render(found, form))
        click.echo(f"{len(found)} updates written to {output}.", err=True)


async def _collect(settings: Settings, query: str, filters: tuple[str, ...]) -> list[Update]:
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server import calls
    from refdesk.server.principals import local_principal
    from refdesk.toolsets.azure_updates.export import list_matching

    [toolset] = load_toolsets(["azure-updates"])
    operation = asking.find_search(toolset)
    assert operation is not None
    arguments = asking.fit_search(operation, {"query": query}, filters)
    request = cast("SearchInput", calls.validate(operation, arguments))
    async with open_desk(settings, [toolset], in_background=False) as desk:
        context = await desk.get_context(local_principal(settings, [toolset], "cli"), toolset.name)
        return [update async for update in list_matching(context, request)]


def _export_knowledge(settings: Settings, form: ExportFormat, output: Path | None) -> None:
    import anyio

    with progress.show_progress("Exporting") as show, _open_target(output) as target:
        report = anyio.run(_export, settings, target, form, show)
    click.echo(views_of_entries.tell_exported(report, str(output or "standard output")), err=True)
    sys.exit(bool(report.problems))


@contextmanager
def _open_target(output: Path | None) -> Generator[Path | TextIO]:
    """Yield where to write: without a path, standard output, in UTF-8 and with line ends as they are."""
    if output is not None:
        yield output
        return
    stream = TextIOWrapper(sys.stdout.buffer, "utf-8", newline="")
    try:
        yield stream
    finally:
        stream.flush()
        stream.detach()


async def _export(settings: Settings, target: Path | TextIO, form: ExportFormat, show: Progress | None) -> ExportReport:
    from refdesk.app import open_desk
    from refdesk.toolsets.knowledge.transfer.files import export_entries

    async with open_desk(settings, (), in_background=False) as desk:
        return await export_entries((await desk.get_base()).knowledge_base, settings.org, target, form, show)


def write_atomically(path: Path, pieces: Iterable[str]) -> None:
    """Put the whole text at `path`, or leave what was there as it was.

    Raises:
        ConfigurationError: The folder cannot be written to.
    """
    try:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with temporary.open("x", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise errors.ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
