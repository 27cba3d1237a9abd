"""`refdesk search`: searches from the terminal exactly as an agent would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation
from refdesk.cli.serve import toolset_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.operations import Operation, Toolset
    from refdesk.settings import Settings

DEADLINE_MS = 10_000
"""A command starts cold, and a person waits longer than an agent."""


@click.command()
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@toolset_option
@invocation.filter_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first; of one toolset.")
@click.option("--semantic", is_flag=True, help="Hybrid search, by meaning too; the default for several toolsets.")
@click.option(
    "--deadline-ms", type=int, metavar="MS", help=f"How long one of several may take, in milliseconds [{DEADLINE_MS}]."
)
@invocation.caller_options
@invocation.json_option
def search(
    words: tuple[str, ...],
    names: tuple[str, ...],
    filters: tuple[str, ...],
    limit: int,
    offset: int,
    semantic: bool,
    deadline_ms: int | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Search for QUERY in all toolsets at once, as search_everything does, or in those that --toolset names.

    Several give one ranked list; their filters are tags, since and until, and toolsets that did not answer are listed
    below. One alone is searched by its own search, with its own filters; without QUERY it lists the newest, if it can.
    """
    from refdesk.factories.toolsets import load_toolsets

    query = " ".join(words)
    settings = invocation.load(org, agent)
    toolsets = load_toolsets(names, settings)
    if len(toolsets) == 1:
        _refuse(deadline_ms, "--deadline-ms is for a search over several toolsets.")
        arguments = {"query": query or None, "limit": limit, "offset": offset or None, "semantic": semantic or None}
    else:
        _refuse(offset, "--offset pages through one toolset: name it with --toolset.")
        _refuse(not query, "Say what to search for, or name one --toolset to list its newest.")
        chosen = [toolset.name for toolset in toolsets] if names else None
        arguments = {"query": query, "limit": limit, "toolsets": chosen, "deadlineMs": deadline_ms or DEADLINE_MS}
    answer = _search(settings, toolsets, arguments, filters, names, (org, agent))
    if as_json:
        invocation.print_json(answer)
    else:
        from refdesk.cli import views

        views.show(answer, query)


def _refuse(option: object, reason: str) -> None:
    if option:
        raise errors.InvalidInputError(reason)


def _search(
    settings: Settings,
    toolsets: tuple[Toolset, ...],
    arguments: Mapping[str, object],
    filters: tuple[str, ...],
    names: tuple[str, ...],
    caller: tuple[str | None, str | None],
) -> dict[str, Any]:
    """Return the answer of the desk that runs, or of one that is opened for it."""
    import anyio

    from refdesk.factories.toolsets import join_toolsets

    operation = _find_widest(join_toolsets(toolsets, None))
    if operation is None:
        raise errors.InvalidInputError(f"{toolsets[-1].name} cannot be searched.")
    asked = invocation.fit_search(operation, arguments, filters)
    loads_model = bool(len(toolsets) > 1 or arguments.get("semantic") or invocation.is_always_semantic(operation))
    answer = invocation.ask_desk(
        operation.name, asked, org=caller[0], agent=caller[1], names=names, loads_model=loads_model
    )
    if answer is None:
        answer = anyio.run(_search_alone, settings, toolsets, asked, loads_model)
    return answer


def _find_widest(toolsets: Sequence[Toolset]) -> Operation | None:
    """Return the search over all toolsets, which comes after theirs, or that of the only one."""
    return next(filter(None, map(invocation.find_search, reversed(toolsets))), None)


async def _search_alone(
    settings: Settings, toolsets: tuple[Toolset, ...], asked: Mapping[str, object], loads_model: bool
) -> dict[str, Any]:
    from refdesk.app import open_desk

    async with open_desk(settings, toolsets, in_background=False) as desk:
        operation = _find_widest(desk.toolsets)
        assert operation is not None
        if loads_model:
            await (await desk.get_base()).semantics.wanted.load()
        return await invocation.run(desk, operation, asked)
