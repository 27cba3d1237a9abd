"""`refdesk updates`: lists and reads Azure's announcements without a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.cli.search import make_search

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "azure-updates"
SEARCH = "search_azure_updates"
FACETS = ("tags", "status", "products", "productCategories", "availabilityRing")


@click.group(cls=Group)
def updates() -> None:
    """Search, list and read Azure's announcements."""


updates.add_command(make_search(TOOLSET, "Search announcements for QUERY; without it, list the newest."))


@updates.command("list")
@invocation.filter_option
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
def list_updates(
    filters: tuple[str, ...],
    limit: int,
    offset: int,
    cursor: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """List announcements without a query, newest first, and how many there are."""
    from refdesk.cli import views

    given = {"filters": list(filters), "limit": limit, "offset": offset, "detail": "concise", "cursor": cursor}
    answer = invocation.search((TOOLSET,), given, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        views.show(answer, "")
        for line in views_of_entries.tell_more(answer):
            click.echo(line)


@updates.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def show(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Print the announcement with this ID whole."""
    answer = invocation.ask(TOOLSET, SEARCH, {"id": id}, org, agent)
    if not answer["results"]:
        raise errors.NotFoundError(f"There is no update {id}; refdesk updates list shows the ids.")
    if as_json:
        invocation.print_json(answer["results"][0])
    else:
        click.echo(_render(answer["results"][0]))


@updates.command()
@click.option("--of", "facet", type=click.Choice(FACETS), default="tags", show_default=True, help="Which values.")
@invocation.caller_options
@invocation.json_option
def tags(facet: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """List the tags that announcements carry, or the values of another filter, with how many carry each."""
    answer = invocation.ask(TOOLSET, SEARCH, {"facets": [facet], "limit": 1}, org, agent)
    found = answer["facets"][facet]
    if as_json:
        invocation.print_json({"facet": facet, "values": found})
    else:
        lines = [views_of_entries.printable(f"{each['count']:>7}  {each['value']}") for each in found]
        click.echo("\n".join(lines) or "No announcement has any.")


def _render(update: Mapping[str, Any]) -> str:
    stages = [f"{each['ring']} {(each.get('date') or '')[:7]}".strip() for each in update["availabilities"]]
    facts = {
        "id": update["id"],
        "status": update.get("status"),
        "modified": update["modified"][:10],
        "stages": ", ".join(stages),
        "products": ", ".join(update["products"]),
        "tags": ", ".join(update["tags"]),
        "page": update.get("url"),
    }
    lines = [f"{name:<10}{value}" for name, value in facts.items() if value]
    return views_of_entries.printable("\n".join([update["title"], "", *lines, "", update.get("description") or ""]))
