"""`refdesk knowledge`: stores, reads and supersedes knowledge entries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation, views_of_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "knowledge"


@click.group()
def knowledge() -> None:
    """Write down, read and supersede what agents know. To find it: refdesk search --toolset knowledge."""


@knowledge.command()
@click.option("--title", required=True, help="What it is about, in one line.")
@click.option("--body", metavar="TEXT", help="What was learned; - reads it from standard input.")
@click.option("--body-file", type=click.Path(path_type=Path, dir_okay=False), help="What was learned, as a UTF-8 file.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; say it once for each.")
@click.option("--confidence", type=click.IntRange(0, 100), help="How sure you are, in percent. Default: 80.")
@click.option("--expires-at", metavar="INSTANT", help="From when on it no longer holds, ISO 8601.")
@click.option("--task", metavar="ID", help="A task of yours that it belongs to.")
@click.option("--task-kind", type=click.Choice(["produced", "references"]), default="produced", show_default=True)
@click.option("--client-token", metavar="UUID", help="Repeating the call with it within 60 s stores nothing twice.")
@invocation.caller_options
@invocation.json_option
def store(
    title: str,
    body: str | None,
    body_file: Path | None,
    tags: tuple[str, ...],
    confidence: int | None,
    expires_at: str | None,
    task: str | None,
    task_kind: str,
    client_token: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Write down an entry."""
    given: dict[str, Any] = {
        "title": title,
        "body": read_body(body, body_file),
        "tags": list(tags) or None,
        "confidence": confidence,
        "expiresAt": expires_at,
        "taskRef": {"taskId": task, "kind": task_kind} if task is not None else None,
        "clientToken": client_token,
    }
    arguments = {name: value for name, value in given.items() if value is not None}
    answer = invocation.ask(TOOLSET, "store_knowledge", arguments, org, agent)
    _show(answer, as_json, views_of_entries.tell_stored(answer))


@knowledge.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def get(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Print the entry with this ID whole, with its chain and its tasks."""
    answer = invocation.ask(TOOLSET, "get_knowledge", {"id": id}, org, agent)
    _show(answer, as_json, views_of_entries.render_entry(answer))


@knowledge.command()
@click.argument("old")
@click.argument("new")
@invocation.caller_options
@invocation.json_option
def supersede(old: str, new: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Let the entry NEW take the place of the entry OLD; you must have written one of them."""
    answer = invocation.ask(TOOLSET, "supersede_knowledge", {"oldId": old, "newId": new}, org, agent)
    _show(answer, as_json, f"{answer['oldId']} no longer holds; what holds now is {answer['headId']}.")


@knowledge.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def withdraw(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Take the entry with this ID out of sight; restore brings it back. To erase for good: refdesk erase."""
    answer = invocation.ask(TOOLSET, "withdraw_knowledge", {"id": id}, org, agent)
    told = f"{answer['id']} is withdrawn; refdesk knowledge restore {answer['id']} brings it back."
    _show(answer, as_json, "\n".join([told, *([answer["note"]] if "note" in answer else [])]))


@knowledge.command()
@click.argument("id")
@invocation.caller_options
@invocation.json_option
def restore(id: str, org: str | None, agent: str | None, as_json: bool) -> None:
    """Bring the withdrawn entry with this ID back, or let it hold again though it was superseded."""
    answer = invocation.ask(TOOLSET, "restore_knowledge", {"id": id}, org, agent)
    _show(answer, as_json, f"{answer['id']} is {answer['state']}; what holds now is {answer['headId']}.")


@knowledge.command("list")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only entries with it; several must all be there.")
@click.option("--author", metavar="AGENT", help="Only entries of this agent.")
@click.option("--since", metavar="TIME", help="Written on this day or instant, UTC, or later: 2026-03-31.")
@click.option("--until", metavar="TIME", help="Written by the end of this day, or by this instant.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@invocation.caller_options
@invocation.json_option
def list_entries(
    tags: tuple[str, ...],
    author: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    offset: int,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """List entries without a query, newest first, and how many there are."""
    narrowed = {name: value for name, value in {"author": author, "since": since, "until": until}.items() if value}
    arguments = {"tags": list(tags), "limit": limit, "offset": offset, **narrowed}
    answer = invocation.ask(TOOLSET, "list_knowledge", arguments, org, agent)
    _show(answer, as_json, views_of_entries.render_list(answer))


@knowledge.command("tags")
@invocation.caller_options
@invocation.json_option
def list_tags(org: str | None, agent: str | None, as_json: bool) -> None:
    """List the tags that entries carry, most frequent first."""
    answer = invocation.ask(TOOLSET, "list_tags", {"limit": 1000}, org, agent)
    _show(answer, as_json, views_of_entries.render_tags(answer))


@knowledge.command("authors")
@invocation.caller_options
@invocation.json_option
def list_authors(org: str | None, agent: str | None, as_json: bool) -> None:
    """List the agents that wrote entries, those with the most first."""
    answer = invocation.ask(TOOLSET, "list_authors", {"limit": 1000}, org, agent)
    _show(answer, as_json, views_of_entries.render_authors(answer))


def read_body(body: str | None, path: Path | None) -> str:
    """Return an entry's text from where the caller says it is.

    Raises:
        InvalidInputError: It is given twice or not at all, or is not UTF-8 text.
    """
    if (body is None) == (path is None):
        raise errors.InvalidInputError("Give the text once: with --body TEXT, --body - or --body-file FILE.")
    try:
        if path is not None:
            return path.read_bytes().decode()
        return sys.stdin.buffer.read().decode() if body == "-" else body or ""
    except UnicodeDecodeError:
        raise errors.InvalidInputError("The text is not UTF-8.") from None
    except OSError as error:
        raise errors.InvalidInputError(f"The file cannot be read: {error.strerror}.") from None


def _show(answer: Mapping[str, Any], as_json: bool, text: str) -> None:
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(text)
