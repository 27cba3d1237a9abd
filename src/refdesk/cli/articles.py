"""`refdesk articles`: read the help desk's published articles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.cli.search import make_search

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "salesforce-knowledge"


@click.group(cls=Group)
def articles() -> None:
    """Search and read the help desk's published articles."""


articles.add_command(make_search(TOOLSET, "Search published articles for QUERY, live."))


@articles.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def show(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Print the published article with this ID whole, as plain text."""
    answer = invocation.ask(TOOLSET, "get_article_by_id", {"article_id": id}, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(_render(answer["article"]))


def _render(article: Mapping[str, Any]) -> str:
    facts = [str(article[name]) for name in ("id", "article_type", "last_published") if article.get(name)]
    parts = [article["title"], " · ".join(facts), article.get("summary") or "", article["body"]]
    return views_of_entries.printable("\n\n".join(part for part in parts if part))
