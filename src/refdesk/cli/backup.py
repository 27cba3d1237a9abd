"""`refdesk backup` and `refdesk restore`: one file that holds everything, and everything from one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from refdesk.cli import invocation
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.keeping.carrying import Restored
    from refdesk.core.writing.audit import Actor
    from refdesk.settings import Settings

MOST_SHOWN = 20
UNKNOWN = (
    "What was erased after the backup was made is not known, for the file that was replaced cannot be read and there "
    "is no list beside it: erase it again (refdesk erase)."
)

UNKNOWN_ACTS = (
    "What was put on record after the backup was made cannot be read any more, not all of it: the audit log goes on "
    "from where it could be read to. Keep the file that was replaced."
)
NEW_PLACE = (
    "There was no store in this place, so nothing is known of the time after the backup was made: what was erased "
    "since is back (erase it again: refdesk erase), and what was put on record since is not there."
)
UNCHECKED = (
    "Keys that open as they did when the backup was made, for nothing here says whether they were revoked since: {}. "
    "Revoke those that are to open nothing (refdesk keys revoke ID); restore --revoke-unknown does so with all of them."
)
LEFT_ACTS = (
    "Entries of the audit log that do not follow on from the backup's: {}. They are only in the file that was "
    "replaced: keep it."
)
MOVED = (
    "This is a copy of a store that had been moved to another one: nothing is in it that was written there since. A "
    "later backup, of that store, has it."
)


@click.command()
@click.argument("file", type=invocation.PathType(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a file that is there, once the new one is whole.")
@invocation.json_option
def backup(file: Path, force: bool, as_json: bool) -> None:
    """Write everything that is kept to FILE, while servers go on: whole and read back, or not at all.

    A store that is copied by other means while it is in use loses what was written last.
    """
    import anyio

    from refdesk.factories.backups import back_up

    settings = invocation.load()
    made = anyio.run(back_up, settings, file, _make_actor(settings), force)
    if as_json:
        told = {"file": str(file), "bytes": made.bytes, "documents": made.documents, "isOnRecord": not made.obstacle}
        invocation.print_json(told)
        return
    more = f", with the file of {' and '.join(made.enclosed)}" if made.enclosed else ""
    click.echo(f"Backed up {_count(made.documents)}{more}: {made.bytes:,} bytes, read back and sound.")
    if made.obstacle:
        click.echo("Warning: The audit log does not say so, for the store can only be read. Note it elsewhere.")


@click.command()
@click.argument("file", type=invocation.PathType(path_type=Path))
@click.option(
    "--as-is",
    is_flag=True,
    help="Accept a file that lost what was written last, such as one copied while in use; the store's own, too.",
)
@click.option(
    "--revoke-unknown",
    is_flag=True,
    help="Revoke the API keys of which nothing here says whether they were revoked since the backup was made.",
)
@invocation.json_option
def restore(file: Path, as_is: bool, revoke_unknown: bool, as_json: bool) -> None:
    """Put the backup FILE in the place of what is kept. Stop all servers first.

    What was erased since stays erased, the audit log goes on, and keys that were revoked stay revoked. The file that
    was there is kept beside the new one, under a dated name.
    """
    import anyio

    from refdesk.factories.backups import restore_backup

    settings = invocation.load()
    results = anyio.run(restore_backup, settings, file, _make_actor(settings), as_is, revoke_unknown)
    if as_json:
        invocation.print_json({"restored": [_to_json(each) for each in results]})
        return
    for line in _tell(results):
        click.echo(line)


def _make_actor(settings: Settings) -> Actor:
    from refdesk.core.writing.audit import Actor
    from refdesk.model import SHARED_ORG

    return Actor(SHARED_ORG, settings.agent or "cli", "cli")


def _count(documents: int) -> str:
    return say_count(documents, "document")


def _tell(results: Sequence[Restored]) -> list[str]:
    lines: list[str] = []
    for each in results:
        carried = each.carried
        lines.append(f"Restored {_count(each.documents)}{f' of {each.name}' if each.name else ''}.")
        facts = {"erased again": carried.erased, "acts kept on record": carried.acts, "keys revoked": carried.keys}
        if told := [f"{word}: {count}" for word, count in facts.items() if count]:
            lines.append(f"Since the backup was made: {', '.join(told)}.")
        if each.has_left_log:
            lines.append("The log beside the file is of another file or time, and was left out.")
        if each.was_moved:
            lines.append(MOVED)
        if each.kept is not None:
            is_all_known = each.knows_erasures and each.knows_acts and not each.carried.left_acts
            until = " Remove it when all is well." if is_all_known else ""
            lines.append(f"What was there is kept: {each.kept.name}, in the same folder.{until}")
        lines += _warn(each)
    return lines


def _warn(each: Restored) -> list[str]:
    """Return what could not be carried over, and what to do about it."""
    lines: list[str] = []
    if each.kept is None and not each.knows_erasures:
        lines.append(NEW_PLACE)
    else:
        lines += [UNKNOWN] * (not each.knows_erasures) + [UNKNOWN_ACTS] * (not each.knows_acts)
    if each.carried.left_acts:
        lines.append(LEFT_ACTS.format(each.carried.left_acts))
    if unchecked := each.carried.unchecked:
        more = f" and {len(unchecked) - MOST_SHOWN} more" if len(unchecked) > MOST_SHOWN else ""
        named = ", ".join(f"{key.id} ({key.agent} in {key.org})" for key in unchecked[:MOST_SHOWN])
        lines.append(UNCHECKED.format(f"{named}{more}"))
    return [f"Warning: {line}" for line in lines]


def _to_json(each: Restored) -> dict[str, object]:
    return {
        "toolset": each.name or None,
        "documents": each.documents,
        "erasedAgain": each.carried.erased,
        "actsKept": each.carried.acts,
        "keysRevoked": each.carried.keys,
        "kept": None if each.kept is None else str(each.kept),
        "knowsErasures": each.knows_erasures,
        "knowsActs": each.knows_acts,
        "actsLeft": each.carried.left_acts,
        "keysUnchecked": [key.id for key in each.carried.unchecked],
        "wasMoved": each.was_moved,
    }
