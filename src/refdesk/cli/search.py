"""`refdesk search`: searches from the terminal exactly as an agent would."""

from __future__ import annotations

from typing import Any

import click

from refdesk.cli import invocation
from refdesk.cli.serve import toolset_option

DEADLINE_MS = 10_000
"""Longer than for agents: a command starts cold, and a person waits longer than an agent."""


@click.command()
@click.argument("words", nargs=-1, metavar="[QUERY]...")
@toolset_option
@invocation.filter_option
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first; of one toolset.")
@click.option(
    "--semantic/--keyword",
    default=None,
    help="Hybrid search, by keyword and by meaning, or by keyword alone. Default: hybrid.",
)
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
    semantic: bool | None,
    deadline_ms: int | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Search for QUERY in all toolsets at once, as search_everything does, or in those that --toolset names.

    Several give one ranked list; their filters are tags, since and until, and toolsets that did not answer are listed
    below. One alone is searched by its own search, with its own filters; without QUERY it lists the newest, if it can.

    Where no desk runs, a few documents without vectors get them first.
    """
    query = " ".join(words)
    given = {"query": query, "limit": limit, "offset": offset, "semantic": semantic, "deadlineMs": deadline_ms}
    asked = {**given, "filters": list(filters), "patienceMs": DEADLINE_MS}
    answer = invocation.search(names, asked, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        from refdesk.cli import views

        views.show(answer, query)


def make_search(toolset: str, text: str) -> click.Command:
    """Return the command that searches one toolset, for the group of that toolset's commands."""
    params = [each for each in search.params if each.name not in ("names", "deadline_ms")]

    def search_one(**given: Any) -> None:  # noqa: ANN401 - as click parsed them
        assert search.callback is not None
        search.callback(names=(toolset,), deadline_ms=None, **given)

    return click.Command("search", callback=search_one, params=params, help=text)
