"""`refdesk export`: everything a search finds, as a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from refdesk import errors
from refdesk.cli import asking

if TYPE_CHECKING:
    from refdesk.settings import Settings
    from refdesk.toolsets.azure_updates.export import Format
    from refdesk.toolsets.azure_updates.models import SearchInput, Update


@click.command()
@click.argument("name", metavar="TOOLSET", type=click.Choice(["azure-updates"]))
@click.option("--format", "form", type=click.Choice(["json", "csv", "md"]), default="json", show_default=True)
@click.option("--query", default="", help="Only what this finds, best first; without it, everything, newest first.")
@asking.filter_option
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="The file; standard output without.")
def export(name: str, form: Format, query: str, filters: tuple[str, ...], output: Path | None) -> None:
    """Write everything a search of TOOLSET finds: azure-updates."""
    import anyio

    from refdesk.settings import load_settings
    from refdesk.toolsets.azure_updates.export import render

    settings = load_settings()
    asking.configure_logging(settings.log_level)
    found = anyio.run(_collect, settings, name, query, filters)
    if output is None:
        for piece in render(found, form):
            click.echo(piece, nl=False)
    else:
        write_atomically(output, render(found, form))
        click.echo(f"{len(found)} updates written to {output}.", err=True)


async def _collect(settings: Settings, name: str, query: str, filters: tuple[str, ...]) -> list[Update]:
    from refdesk.app import load_toolsets, open_desk
    from refdesk.server import calls
    from refdesk.server.principals import local_principal
    from refdesk.toolsets.azure_updates.export import list_matching

    [toolset] = load_toolsets([name])
    [(operation, arguments)] = asking.fit_searches([toolset], {"query": query}, filters).values()
    request = cast("SearchInput", calls.validate(operation, arguments))
    async with open_desk(settings, [toolset], in_background=False) as desk:
        context = await desk.get_context(local_principal(settings, [toolset], "cli"))
        return [update async for update in list_matching(context, request)]


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
