"""`refdesk search`: ask from a terminal what an agent would ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import asking
from refdesk.cli.serve import toolset_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.app import Desk
    from refdesk.core.operations import Operation, Toolset
    from refdesk.settings import Settings


@click.command()
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@toolset_option
@asking.filter_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@click.option("--semantic", is_flag=True, help="Search by meaning too, not only by words.")
@asking.json_option
def search(
    words: tuple[str, ...],
    names: tuple[str, ...],
    filters: tuple[str, ...],
    limit: int,
    offset: int,
    semantic: bool,
    as_json: bool,
) -> None:
    """Search for QUERY; without one, list the newest, where a toolset can.

    Without --toolset every toolset is asked, and each has a section of its own.
    """
    import anyio

    from refdesk.choices.toolsets import load_toolsets

    query = " ".join(words)
    settings = asking.load()
    toolsets = load_toolsets(names, settings)
    arguments = {"query": query or None, "limit": limit, "offset": offset or None, "semantic": semantic or None}
    answers = anyio.run(_search, settings, toolsets, arguments, filters)
    if as_json:
        asking.print_json(next(iter(answers.values())) if len(toolsets) == 1 else answers)
    else:
        from refdesk.cli import views

        views.show(answers, query)


async def _search(
    settings: Settings, toolsets: tuple[Toolset, ...], arguments: Mapping[str, object], filters: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    from refdesk.app import open_desk

    async with open_desk(settings, toolsets, in_background=False) as desk:
        asked = asking.fit_searches(desk.toolsets, arguments, filters)
        if not asked:
            raise errors.InvalidInputError("None of the toolsets can be searched like that; give a query.")
        if arguments["semantic"] or any(asking.is_always_semantic(operation) for operation, _ in asked.values()):
            await (await desk.get_base()).semantics.wanted.load()
        if len(toolsets) == 1:
            return {name: await asking.run(desk, operation, fitted) for name, (operation, fitted) in asked.items()}
        return {name: await _try(desk, operation, fitted) for name, (operation, fitted) in asked.items()}


async def _try(desk: Desk, operation: Operation, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return one toolset's answer among several, or why there is none: the others' answers count all the same."""
    try:
        return await asking.run(desk, operation, arguments)
    except (errors.WorldError, errors.OperatorError) as error:
        return {"results": [], "notes": [f"It could not be asked: {error.message}"]}
