"""`refdesk watch` and `refdesk watches`: follow what is new, and choose what to follow."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.app import Desk

LOOK_SECONDS = 0.5
"""Interval at which news is asked for."""

MOST_NEWS = 200

_TOLD = {
    "new": "new",
    "changed": "changed",
    "dated": "other days",
    "superseded": "superseded by {other}",
    "withdrawn": "withdrawn",
    "restored": "restored",
    "expired": "expired",
    "impacted": "announcement {other} changes what it relies on",
    "contradicted": "contradicted by {other}",
    "merged": "merged into {other}",
    "outcome": "an outcome was reported",
}


@click.command()
@click.option("--since", metavar="TIME", help="Begin with this day or instant, or so long ago: 12h. Default: now.")
@click.option("--watch", "id", metavar="ID", help="Only what the watch with this id tells.")
@click.option("--once", is_flag=True, help="Print what there is and end, instead of following.")
@invocation.caller_options
@invocation.json_option
def watch(since: str | None, id: str | None, once: bool, org: str | None, agent: str | None, as_json: bool) -> None:
    """Follow what is new of what you watch, until interrupted; with --json, a line of JSON for each."""
    from refdesk.kit import times

    since = times.spell_past(since, times.get_now(), is_day=False) if since is not None else None
    asked: dict[str, object] = {"limit": MOST_NEWS}
    if id is not None:
        asked["watch"] = id
    with suppress(KeyboardInterrupt):
        # Without `--since`, the first answer is needed only to learn where to begin.
        is_shown = since is not None or once
        answer = _ask({**asked, "since": since} if is_shown else {"limit": 1}, org, agent)
        if is_shown:
            _print(answer, as_json=as_json)
        while answer["hasMore"] or not once:
            if not answer["hasMore"]:
                time.sleep(LOOK_SECONDS)
            answer = _go_on({**asked, "after": answer["cursor"]}, answer, org, agent)
            _print(answer, as_json=as_json)


def _go_on(
    asked: Mapping[str, object], before: Mapping[str, Any], org: str | None, agent: str | None
) -> Mapping[str, Any]:
    """Return what comes next; nothing if the desk has just ended, since another will answer."""
    try:
        return _ask(asked, org, agent)
    except errors.WorldError:
        return {**before, "news": [], "hasMore": False}


def _ask(asked: Mapping[str, object], org: str | None, agent: str | None) -> dict[str, Any]:
    return invocation.ask(None, "list_news", asked, org, agent, prepare=_look)


async def _look(desk: Desk) -> None:
    """Produce the news that no desk has produced yet."""
    from refdesk.factories.watching import choose_watcher

    await choose_watcher(await desk.get_base()).run_once()


def _print(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if answer.get("missed"):
        click.echo(f"{answer['missed']} older ones are kept no more.", err=True)
    for each in answer["news"]:
        if as_json:
            invocation.print_json(each)
        else:
            click.echo(views_of_entries.printable(_describe(each)))


def _describe(news: Mapping[str, Any]) -> str:
    told = _TOLD[news["what"]].format(other=news.get("other", ""))
    if news["what"] == "dated":
        told = f"{told}: {', '.join(news['daysNow']) or 'none'} instead of {', '.join(news['daysBefore']) or 'none'}"
    label = f"  [{news['label']}]" if "label" in news else ""
    return f"{news['at'][:19]}  {news.get('title', '(no title)')}: {told}  ({news['toolset']} {news['id']}){label}"


@click.group(cls=Group, invoke_without_command=True)
@invocation.caller_options
@invocation.json_option
@click.pass_context
def watches(context: click.Context, org: str | None, agent: str | None, as_json: bool) -> None:
    """List your watches; its commands make one and delete one."""
    if context.invoked_subcommand is not None:
        return
    answer = invocation.ask(None, "list_watches", {"limit": 200}, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        lines = [_describe_watch(each) for each in answer["watches"]]
        click.echo(views_of_entries.printable("\n".join(lines) or "You watch nothing: refdesk watches create."))


@watches.command()
@click.argument("kind", type=click.Choice(["search", "product", "entry", "skill"]))
@click.argument("subject")
@click.option("--label", metavar="TEXT", help="What you call it.")
@click.option("--toolset", "toolsets", multiple=True, metavar="NAME", help="Only in this toolset; may be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only what has this tag; may be repeated.")
@click.option(
    "--match",
    type=click.Choice(["strong", "partial"]),
    default="strong",
    show_default=True,
    help="How well something must match a search.",
)
@click.option("--webhook", metavar="URL", help="Send the news there, too, signed as Standard Webhooks has it.")
@invocation.caller_options
@invocation.json_option
def create(
    kind: str,
    subject: str,
    label: str | None,
    webhook: str | None,
    toolsets: Sequence[str],
    tags: Sequence[str],
    match: str,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Be told of what matches a search, what is announced of a product, or what becomes of an entry or skill."""
    asked: dict[str, object] = {"kind": kind, "subject": subject, "match": match}
    asked |= {"toolsets": list(toolsets), "tags": list(tags)}
    asked |= {"label": label, "webhook": webhook}
    answer = invocation.ask(None, "create_watch", asked, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        said = "Watching" if answer["created"] else "You watch that already"
        click.echo(views_of_entries.printable(f"{said}: {_describe_watch(answer)}"))
        if "secret" in answer:
            click.echo(f"Messages are signed with {answer['secret']}, which is shown this once.")


@watches.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def delete(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Be told no more by a watch; its news stay readable."""
    answer = invocation.ask(None, "delete_watch", {"id": id}, org, agent)
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(f"Deleted {id}.")


def _describe_watch(watch: Mapping[str, Any]) -> str:
    label = f"  [{watch['label']}]" if "label" in watch else ""
    return f"{watch['id']}  {watch['kind']}: {watch['subject']}{label}"
