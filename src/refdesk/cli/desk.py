"""`refdesk status` and `refdesk stop`: the desks of this data folder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from refdesk import __version__, errors
from refdesk.cli import invocation, through_desk, views_of_status
from refdesk.forwarder import identity, rendezvous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.settings import Settings

STOP_SECONDS = 60.0


@click.command()
@invocation.json_option
def status(as_json: bool) -> None:
    """Show the desks of this data folder, their clients and what they do; what is kept, how fresh, and what failed.

    Where no desk runs, what is kept is read without one; nothing is made where nothing is.
    """
    home = identity.find_home()
    desks = list_running()
    report = find_report(desks)
    if as_json:
        invocation.print_json({"home": home, "desks": desks, "report": report})
        return
    for desk in desks:
        click.echo(views_of_status.render_desk(desk, time.time()))
    if not desks:
        click.echo(f"No desk runs for {home}. The next client that needs one starts it.")
    if report is not None:
        click.echo(views_of_status.render_report(home, report))
    else:
        click.echo(f"Data folder {home}: nothing is kept yet.")


def list_running() -> list[Mapping[str, Any]]:
    """Return the status that each desk of this data folder gives of itself."""
    return [said for place, found in list_desks() if (said := through_desk.exchange(place, found, _ask("status")))]


def find_report(desks: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the report on what is stored, from one of the desks or else read by this process; `None` if the store is
    in memory or its file does not exist."""
    told = next((each["report"] for each in desks if each.get("report")), None)
    return told if told is not None else _read_report(invocation.load())


def _read_report(settings: Settings) -> dict[str, Any] | None:
    import anyio

    from refdesk.app import open_desk
    from refdesk.factories.stores import find_file
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.server.local.report import report

    file = find_file(settings.store_url)
    if settings.store_url.startswith("memory:") or (file is not None and not file.is_file()):
        return None

    async def read() -> dict[str, Any]:
        async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
            return await report(desk)

    return anyio.run(read)


@click.command()
@invocation.json_option
def stop(as_json: bool) -> None:
    """End the desks of this data folder, once they have answered what they have read.

    The next client that needs one starts it again.
    """
    running = list(list_desks())
    ended = [found.pid for place, found in running if end(place, found, is_quiet=as_json)]
    if as_json:
        invocation.print_json({"home": identity.find_home(), "ended": ended})
    elif not running:
        click.echo(f"No desk runs for {identity.find_home()}.")


def end(place: rendezvous.Place, found: rendezvous.Found, *, is_quiet: bool = False) -> bool:
    """End a desk unless it also serves over HTTP, report that unless `is_quiet`, and return whether it has ended."""
    said = through_desk.exchange(place, found, _ask("stop"))
    if said and said.get("kind") == "http":
        click.echo(f"Process {found.pid} serves over HTTP too: end it where it was started.", err=True)
        return False
    if said is not None:
        _wait(place)
    if said is not None and not is_quiet:
        click.echo(f"The desk {found.pid} has ended.")
    return True


def list_desks() -> list[tuple[rendezvous.Place, rendezvous.Found]]:
    """Return the desks of this data folder."""
    return list(rendezvous.list_places(identity.find_home()))


def _ask(what: str) -> dict[str, object]:
    return {"ask": what, "version": __version__}


def _wait(place: rendezvous.Place) -> None:
    lock = place.get_life_lock()
    if not lock.take(STOP_SECONDS):
        raise errors.WorldError(f"It still answers calls after {STOP_SECONDS:g} seconds; see {place.path('.log')}.")
    lock.release()
