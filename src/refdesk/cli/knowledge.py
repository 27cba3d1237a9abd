"""`refdesk knowledge`: stores, reads, edits and supersedes knowledge entries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from refdesk import errors
from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.cli.search import make_search
from refdesk.kit import times

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "knowledge"


expiry_option = click.option(
    "--expires-at",
    metavar="WHEN",
    help="When it ceases to hold: a date (2027-01-31), an instant, or from now on: 12h, 30d, 8w.",
)


@click.group(cls=Group)
def knowledge() -> None:
    """Write down, read, edit and supersede what agents know. refdesk search asks other toolsets, too."""


knowledge.add_command(make_search(TOOLSET, "Search entries for QUERY, in any wording."))


@knowledge.command()
@click.option("--title", required=True, help="What it is about, in one line.")
@click.option("--body", metavar="TEXT", help="What was learned; - reads it from standard input.")
@click.option(
    "--body-file", type=invocation.PathType(path_type=Path, dir_okay=False), help="What was learned, as a UTF-8 file."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; say it once for each.")
@click.option("--confidence", type=click.IntRange(0, 100), help="How sure you are, in percent. Default: 80.")
@expiry_option
@click.option("--task", metavar="ID", help="A task of yours that it belongs to.")
@click.option(
    "--task-kind",
    type=click.Choice(["produced", "references"]),
    default="produced",
    show_default=True,
    help="Whether the task produced the entry or refers to it.",
)
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
        "expiresAt": _read_expiry(expires_at),
        "taskRef": {"taskId": task, "kind": task_kind} if task is not None else None,
        "clientToken": client_token,
    }
    answer = invocation.ask(TOOLSET, "store_knowledge", given, org, agent)
    _show(answer, as_json, views_of_entries.tell_stored(answer))


@knowledge.command()
@click.argument("id")
@click.option("--title", help="What it is about, in one line.")
@click.option("--body", metavar="TEXT", help="What was learned; - reads it from standard input.")
@click.option(
    "--body-file", type=invocation.PathType(path_type=Path, dir_okay=False), help="What was learned, as a UTF-8 file."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="All its tags from now on; say it once for each.")
@click.option("--no-tags", is_flag=True, help="Take its tags away.")
@click.option("--confidence", type=click.IntRange(0, 100), help="How sure you are, in percent.")
@expiry_option
@click.option("--never-expires", is_flag=True, help="Take its expiry away.")
@click.option("--client-token", metavar="UUID", help="Repeating the call with it within 60 s edits nothing twice.")
@invocation.caller_options
@invocation.json_option
def edit(
    id: str,
    title: str | None,
    body: str | None,
    body_file: Path | None,
    tags: tuple[str, ...],
    no_tags: bool,
    confidence: int | None,
    expires_at: str | None,
    never_expires: bool,
    client_token: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Store a new version of the entry with this ID, which supersedes it; what is left out stays as it is.

    Without an option that changes something, title and body open in your editor (VISUAL, EDITOR).
    """
    given: dict[str, Any] = {
        "title": title,
        "body": read_body(body, body_file) if body is not None or body_file is not None else None,
        "tags": [] if no_tags else list(tags) or None,
        "confidence": confidence,
        "expiresAt": _read_expiry(expires_at),
        "neverExpires": never_expires or None,
    }
    changes = invocation.drop_unset(given) or _edit_by_hand(id, org, agent)
    token = {"clientToken": client_token} if client_token is not None else {}
    answer = invocation.ask(TOOLSET, "edit_knowledge", {"id": id, **changes, **token}, org, agent)
    kept = f"{answer['oldId']}, which is kept; refdesk knowledge restore {answer['oldId']} undoes the edit."
    _show(answer, as_json, f"{answer['id']} holds now instead of {kept}")


def _edit_by_hand(id: str, org: str | None, agent: str | None) -> dict[str, str]:
    """Return the title and body as edited in the user's editor.

    Raises:
        InvalidInputError: No editor can be used, or nothing was changed.
    """
    if not sys.stdin.isatty():
        raise errors.InvalidInputError("Say what changes: --title, --body, --tag, --confidence or --expires-at.")
    entry = invocation.ask(TOOLSET, "get_knowledge", {"id": id}, org, agent)
    edited = click.edit(f"{entry['title']}\n\n{entry['body']}\n", extension=".md")
    title, _, body = (edited or "").partition("\n")
    changed = {"title": title.strip(), "body": body.strip("\n")}
    if edited is None or changed == {"title": entry["title"], "body": entry["body"].strip("\n")}:
        raise errors.InvalidInputError("Nothing was changed.")
    return changed


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
    """Bring the withdrawn entry with this ID back, or let it hold again though it was superseded or edited."""
    answer = invocation.ask(TOOLSET, "restore_knowledge", {"id": id}, org, agent)
    _show(answer, as_json, views_of_entries.tell_restored(answer))


@knowledge.command("list")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only entries with it; several must all be there.")
@click.option("--author", metavar="AGENT", help="Only entries of this agent.")
@click.option("--since", metavar="TIME", help="Written on this day or instant, UTC, or later: 2026-03-31, 90d.")
@click.option(
    "--until", metavar="TIME", help="Written by the end of this day, or by this instant, or so long ago: 90d."
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="At most this many.")
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out this many first.")
@invocation.cursor_option
@invocation.caller_options
@invocation.json_option
def list_entries(
    tags: tuple[str, ...],
    author: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    offset: int,
    cursor: str | None,
    org: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """List entries without a query, newest first, and how many there are."""
    now = times.get_now()
    spans = {
        name: times.spell_past(value, now, is_day=False)
        for name, value in (("since", since), ("until", until))
        if value
    }
    arguments = {
        "tags": list(tags),
        "limit": limit,
        "offset": offset,
        "cursor": cursor,
        "author": author or None,
        **spans,
    }
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
    """Return an entry's text from where the caller gives it.

    Raises:
        InvalidInputError: It is given twice or not at all, or is not UTF-8 text.
    """
    if (body is None) == (path is None):
        raise errors.InvalidInputError("Give the text once: with --body TEXT, --body - or --body-file FILE.")
    try:
        if path is not None:
            return path.read_bytes().decode("utf-8-sig")
        return sys.stdin.buffer.read().decode("utf-8-sig") if body == "-" else body or ""
    except UnicodeDecodeError:
        raise errors.InvalidInputError("The text is not UTF-8.") from None
    except OSError as error:
        raise errors.InvalidInputError(f"The file cannot be read: {error.strerror}.") from None


def _read_expiry(text: str | None) -> str | None:
    return None if text is None else times.parse_future(text, times.get_now(), "--expires-at").isoformat()


def _show(answer: Mapping[str, Any], as_json: bool, text: str) -> None:
    if as_json:
        invocation.print_json(answer)
    else:
        click.echo(text)
