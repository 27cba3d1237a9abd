"""`refdesk keys`: creates, lists and revokes API keys with their scopes."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from refdesk.cli import invocation, views_of_entries
from refdesk.cli.groups import Group
from refdesk.discovery import list_scopes
from refdesk.errors import ConfigurationError, InvalidInputError, RefdeskError
from refdesk.kit import times

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable
    from datetime import datetime

    from refdesk.core.keys import ApiKey, KeyRing
    from refdesk.settings import Settings

    Answer = TypeVar("Answer")

KEYS_FILE = "REFDESK_KEYS_FILE"


@click.group(cls=Group)
def keys() -> None:
    """Make, list and revoke the API keys that callers over HTTP need."""


_org_option = click.option(
    "--org",
    metavar="ORG",
    type=invocation.ORG,
    help="The org its holder belongs to. Default: REFDESK_ORG, else local.",
)
_agent_option = click.option(
    "--agent", required=True, metavar="AGENT", type=invocation.AGENT, help="Who its holder is; entries carry this name."
)
_scope_option = click.option(
    "--scope", "scopes", multiple=True, required=True, metavar="SCOPE", help="What it allows; say it once for each."
)


class _TellsScopes(click.Command):
    """Lists the scopes below its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Scopes"):
            formatter.write_dl(list(list_scopes().items()))


@keys.command(cls=_TellsScopes)
@_org_option
@_agent_option
@_scope_option
@click.option("--expires", metavar="WHEN", help="A date (2027-01-31), an instant, or from now on: 12h, 30d, 8w.")
@click.argument("more_scopes", nargs=-1, metavar="[SCOPE]...")
@invocation.json_option
def create(
    org: str | None,
    agent: str,
    scopes: tuple[str, ...],
    expires: str | None,
    more_scopes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    _require_output()
    settings = invocation.load()
    wanted = _split_scopes((*scopes, *more_scopes))

    async def make(ring: KeyRing) -> tuple[ApiKey, str]:
        expires_at = times.parse_future(expires, ring.clock.now(), "--expires") if expires else None
        return await ring.create(org=org or settings.org, agent=agent, scopes=wanted, expires_at=expires_at)

    key, secret = _run(settings, make)
    with _revoked_unless_shown(settings, key):
        if as_json:
            invocation.print_json({"key": secret, **_to_json(key)})
            return
        click.echo(secret)
    until = f" until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    click.echo(
        f"Key {key.id} of {key.agent} in {key.org} opens {', '.join(key.scopes)}{until}. It is shown this once. "
        "Keep it where your client keeps secrets, and send it as: Authorization: Bearer KEY",
        err=True,
    )


@keys.command(cls=_TellsScopes)
@_org_option
@_agent_option
@_scope_option
@click.option("--expires", metavar="WHEN", help="As for keys create.")
@click.option(
    "--append",
    "file",
    metavar="FILE",
    type=invocation.PathType(path_type=Path, dir_okay=False),
    help="Add the line to this file, and print the key alone.",
)
@invocation.json_option
def make(
    org: str | None, agent: str, scopes: tuple[str, ...], expires: str | None, file: Path | None, as_json: bool
) -> None:
    """Make a key without the store: print it, and the line for REFDESK_KEYS_FILE that lets it open the server.

    The line holds the key's hash, never the key. No store is opened, so this works on any machine.
    """
    from refdesk.core.clock import SystemClock
    from refdesk.core.key_files import append_line, write_line
    from refdesk.core.keys import check_key, hash_secret, make_key

    _require_output()
    wanted, now, its_org = _split_scopes(scopes), SystemClock().now(), org or invocation.load().org
    check_key(its_org, agent, wanted, list_scopes())
    key, secret = make_key(
        its_org, agent, wanted, now, times.parse_future(expires, now, "--expires") if expires else None
    )
    line = write_line(hash_secret(secret), key)
    if file is not None:
        append_line(file, line)
    if as_json:
        invocation.print_json({"key": secret, "line": line, **_to_json(key)})
        return
    click.echo(secret)
    if file is None:
        click.echo(line)
        told = (
            f"First the key of {key.agent} in {key.org}, shown this once; then its line, for the server's {KEYS_FILE}."
        )
    else:
        told = f"The key of {key.agent} in {key.org}, shown this once; its line is in {file}, for {KEYS_FILE}."
    click.echo(f"{told} It opens while the server's file has the line, and nothing once the line is gone.", err=True)


@keys.command()
@click.argument("id")
@click.option("--overlap", metavar="SPAN", default="24h", show_default=True, help="How long both open: 12h, 7d, 0h.")
@click.option("--expires", metavar="WHEN", help="When the new key expires, as for keys create. Default: never.")
@invocation.json_option
def rotate(id: str, overlap: str, expires: str | None, as_json: bool) -> None:
    """Replace the key named ID by a new one for the same agent and scopes, and print it, this once.

    The old key stays valid for the overlap, so that clients can switch without a gap.
    """

    async def replace(ring: KeyRing) -> tuple[ApiKey, str, ApiKey]:
        expires_at = times.parse_future(expires, ring.clock.now(), "--expires") if expires else None
        return await ring.rotate(id, overlap=times.parse_span(overlap, "--overlap"), expires_at=expires_at)

    _require_output()
    settings = invocation.load()
    key, secret, old = _run(settings, replace)
    with _revoked_unless_shown(settings, key):
        if as_json:
            invocation.print_json({"key": secret, **_to_json(key), "replaced": _to_json(old)})
            return
        click.echo(secret)
    until = f"expires on {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else "does not expire"
    click.echo(
        f"Key {key.id} takes the place of {old.id}, which opens nothing from {old.expires_at:%Y-%m-%d %H:%M} UTC on. "
        f"It {until}, and is shown this once.",
        err=True,
    )


@keys.command("list")
@click.option("--org", metavar="ORG", type=invocation.ORG, help="Only this org's.")
@invocation.json_option
def list_keys(org: str | None, as_json: bool) -> None:
    """List every key, oldest first; never the keys themselves."""

    async def read(ring: KeyRing) -> tuple[list[ApiKey], datetime]:
        return await ring.list(org), ring.clock.now()

    found, now = _run(invocation.load(), read)
    if as_json:
        invocation.print_json({"keys": [_to_json(key) for key in found]})
        return
    for line in _lay_out([("ID", "ORG", "AGENT", "STATE", "SCOPES"), *(_cells(key, now) for key in found)]):
        click.echo(line)


@keys.command()
@click.argument("id")
@invocation.json_option
def revoke(id: str, as_json: bool) -> None:
    """Let the key named ID open nothing from now on."""

    async def take_back(ring: KeyRing) -> ApiKey:
        return await ring.revoke(id)

    key = _run(invocation.load(), take_back)
    if as_json:
        invocation.print_json(_to_json(key))
    else:
        click.echo(f"Key {key.id} of {key.agent} in {key.org} opens nothing any more.")


def _require_output() -> None:
    # What is printed where a shell has closed the output (`>&-`) goes nowhere, and no error says so.
    if sys.stdout is None:
        raise InvalidInputError("No key was made: it is printed once, and the standard output is closed.")


@contextmanager
def _revoked_unless_shown(settings: Settings, key: ApiKey) -> Generator[None]:
    """Run the block that prints a key; where it cannot, revoke the key, which nobody knows.

    Raises:
        ConfigurationError: It could not be printed.
    """
    try:
        yield
    except OSError as error:
        told = f"Key {key.id} could not be printed ({error.strerror}), so nobody knows it"
        try:
            _run(settings, lambda ring: ring.revoke(key.id))
        except RefdeskError as failure:
            raise ConfigurationError(f"{told}. Revoke it: refdesk keys revoke {key.id}") from failure
        raise ConfigurationError(f"{told}: it was revoked. Make another where the output is read.") from error


def _split_scopes(texts: Iterable[str]) -> list[str]:
    return [scope for text in texts for scope in re.split(r"[\s,]+", text) if scope]


def _run(settings: Settings, work: Callable[[KeyRing], Awaitable[Answer]]) -> Answer:
    import anyio

    from refdesk.app import open_desk
    from refdesk.core.writing.audit import Actor

    async def run() -> Answer:
        async with open_desk(settings, (), in_background=False) as desk:
            ring = (await desk.get_base()).keys
            return await work(replace(ring, actor=Actor(settings.org, settings.agent or "cli", "cli")))

    return anyio.run(run)


def _to_json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "org": key.org,
        "agent": key.agent,
        "scopes": list(key.scopes),
        "createdAt": key.created_at.isoformat(),
        "expiresAt": key.expires_at.isoformat() if key.expires_at else None,
        "revokedAt": key.revoked_at.isoformat() if key.revoked_at else None,
    }


def _cells(key: ApiKey, now: datetime) -> tuple[str, ...]:
    if key.revoked_at is not None:
        state = f"revoked {key.revoked_at:%Y-%m-%d}"
    elif key.expires_at is None:
        state = "valid"
    else:
        state = f"{'valid until' if key.is_valid(now) else 'expired'} {key.expires_at:%Y-%m-%d %H:%M}"
    return key.id, key.org, key.agent, state, ", ".join(key.scopes)


def _lay_out(rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        views_of_entries.printable(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
        for line in lines
    ]
