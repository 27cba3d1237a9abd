"""`refdesk embeddings`: lists documents that could not be embedded, with the reason, and retries them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(cls=Group)
def embeddings() -> None:
    """See what could not be embedded, and let it be tried again."""


@embeddings.command("list")
@invocation.json_option
def list_failures(as_json: bool) -> None:
    """List the documents that could not be embedded, with the reason; those set aside last."""

    failures = invocation.work((), "failures", {})
    if as_json:
        invocation.print_json({"failures": failures})
    elif not failures:
        click.echo("Nothing failed.")
    else:
        click.echo("\n".join(_describe(failure) for failure in failures))


@embeddings.command()
@invocation.json_option
def retry(as_json: bool) -> None:
    """Let everything that could not be embedded be tried again at once, by a server or refdesk worker."""

    count = invocation.work((), "retry", {})
    if as_json:
        invocation.print_json({"retried": count})
    elif count:
        due = say_count(count, "document is", "documents are")
        click.echo(f"{due} due again: a running server embeds what is due, or refdesk worker --until-idle.")
    else:
        click.echo("Nothing failed, so there is nothing to try again.")


def _describe(failure: Mapping[str, Any]) -> str:
    at = failure["retryAt"]
    when = f"tried again {datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC" if at else "set aside"
    place = f"{failure['toolset']} {failure['id']} ({failure['org']})"
    return views_of_entries.printable(f"{place}: {failure['reason']} Tried {failure['attempts']} times; {when}.")
