"""`refdesk search`: ask from a terminal what an agent would ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import asking
from refdesk.cli.serve import toolset_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.core.operations import Toolset
    from refdesk.settings import Settings


@click.command()
@click.argument("query", default="")
@toolset_option
@asking.filter_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@click.option("--semantic", is_flag=True, help="Search by meaning too, not only by words.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as an MCP client gets it.")
def search(
    query: str, names: tuple[str, ...], filters: tuple[str, ...], limit: int, offset: int, semantic: bool, as_json: bool
) -> None:
    """Search for QUERY; without one, list the newest."""
    import anyio

    from refdesk.app import load_toolsets
    from refdesk.settings import load_settings

    settings = load_settings()
    asking.configure_logging(settings.log_level)
    arguments = {"query": query or None, "limit": limit, "offset": offset or None, "semantic": semantic or None}
    answers = anyio.run(_search, settings, load_toolsets(names), arguments, filters)
    if as_json:
        _print_json(answers)
    else:
        from refdesk.cli import views

        views.show(answers, query)


async def _search(
    settings: Settings, toolsets: tuple[Toolset, ...], arguments: Mapping[str, object], filters: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    from refdesk.app import open_desk

    asked = asking.fit_searches(toolsets, arguments, filters)
    if not asked:
        raise errors.InvalidInputError("None of these toolsets can be searched like that.")
    async with open_desk(settings, toolsets, in_background=False) as desk:
        if arguments["semantic"]:
            await (await desk.get_base()).semantics.wanted.load()
        return {name: await asking.run(desk, operation, fitted) for name, (operation, fitted) in asked.items()}


def _print_json(answers: Mapping[str, Mapping[str, Any]]) -> None:
    from refdesk.server.answers import to_text

    click.echo(to_text(next(iter(answers.values())) if len(answers) == 1 else answers))
