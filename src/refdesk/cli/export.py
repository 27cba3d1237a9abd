"""`refdesk export`: writes a toolset's documents to a file."""

from __future__ import annotations

import stat
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from refdesk import errors
from refdesk.cli import invocation, progress
from refdesk.core.descriptors import Exporter, ExportRequest
from refdesk.discovery import find_descriptors

if TYPE_CHECKING:
    from pydantic import BaseModel

    from refdesk.cli.progress import Show
    from refdesk.core.descriptors import Exported
    from refdesk.core.operations import Toolset
    from refdesk.settings import Settings


def find_exporters() -> Mapping[str, Exporter]:
    """Return the exporter of each toolset whose documents can be exported."""
    return {each.name: each.exporter for each in find_descriptors() if each.exporter is not None}


EXPORTERS = find_exporters()


@click.command()
@click.argument("name", metavar="TOOLSET", type=click.Choice(list(EXPORTERS)))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(dict.fromkeys(form for exporter in EXPORTERS.values() for form in exporter.formats))),
    help=" ".join(f"{name}: {', '.join(each.formats)}." for name, each in EXPORTERS.items())
    + " Default: the first. A format of several files makes a folder.",
)
@click.option(
    "--query",
    help="Only what this finds, best first; without it, everything. Of "
    + ", ".join(name for name, each in EXPORTERS.items() if each.takes_search)
    + ".",
)
@invocation.filter_option
@click.option("--output", type=invocation.PathType(path_type=Path), help="The file or folder; standard output without.")
@click.option("--org", metavar="ORG", type=invocation.ORG, help="Whose documents. Default: REFDESK_ORG, else local.")
def export(
    name: str, form: str | None, query: str | None, filters: tuple[str, ...], output: Path | None, org: str | None
) -> None:
    """Write everything that TOOLSET holds. refdesk import reads an org's knowledge again.

    An export is whole or absent: where something cannot be read, nothing is written and the exit status is 1.
    """
    import anyio

    from refdesk.factories.backups import require_sound

    exporter = EXPORTERS[name]
    form = form or exporter.formats[0]
    if form not in exporter.formats:
        raise errors.InvalidInputError(f"{name} is exported as {' or '.join(exporter.formats)}, not as {form}.")
    if not exporter.takes_search and (query is not None or filters):
        raise errors.InvalidInputError(f"{name} is exported whole: leave out --query and --filter.")
    settings = invocation.load(org)
    require_sound(settings)
    with progress.show_progress("Exporting") as show, _open_target(output) as target:
        exported = anyio.run(_export, settings, name, form, query or "", filters, target, show)
    if exported.told:
        click.echo(exported.told, err=True)
    sys.exit(not exported.is_complete)


@contextmanager
def _open_target(output: Path | None) -> Generator[Path | TextIO]:
    """Yield the target to write to; without a path, standard output in UTF-8 with line breaks left as they are.

    What is no file, such as `/dev/stdout`, is written to and stays what it is; a symbolic link leads to its file still.
    """
    if output is not None and _is_stream(output):
        with output.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    if output is not None:
        yield output.resolve() if output.is_symlink() else output
        return
    stream = TextIOWrapper(sys.stdout.buffer, "utf-8", newline="")
    try:
        yield stream
    finally:
        stream.flush()
        stream.detach()


def _is_stream(path: Path) -> bool:
    """Return whether there is something that is neither a file nor a folder: a device or a pipe."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


async def _export(
    settings: Settings,
    name: str,
    form: str,
    query: str,
    filters: tuple[str, ...],
    target: Path | TextIO,
    show: Show | None,
) -> Exported:
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server.principals import local_principal

    exporter, [toolset] = EXPORTERS[name], load_toolsets([name])
    search = _read_search(toolset, query, filters) if exporter.takes_search else None
    async with open_desk(settings, [toolset], in_background=False) as desk:
        context = await desk.get_context(local_principal(settings, [toolset], "cli"), name)
        return await exporter.export(ExportRequest(context, form, search, target, show))


def _read_search(toolset: Toolset, query: str, filters: tuple[str, ...]) -> BaseModel:
    """Return the arguments of the toolset's search that find what is asked for.

    Raises:
        InvalidInputError: The search does not take them.
    """
    from refdesk.server import calls
    from refdesk.server.local import searching

    operation = searching.find_search(toolset)
    if operation is None:
        raise errors.InvalidInputError(f"{toolset.name} cannot be searched.")
    return calls.validate(operation, searching.fit_search(operation, {"query": query}, filters))
