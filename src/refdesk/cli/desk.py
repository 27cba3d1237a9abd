"""`refdesk status` and `refdesk stop`: the desks of this data folder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from refdesk import __version__, errors
from refdesk.cli import invocation, through_desk
from refdesk.forwarder import identity, rendezvous

if TYPE_CHECKING:
    from collections.abc import Mapping

STOP_SECONDS = 60.0


@click.command()
@invocation.json_option
def status(as_json: bool) -> None:
    """Show the desks that serve this data folder: since when, whom, and what they are doing."""
    desks = [said for place, found in list_desks() if (said := through_desk.exchange(place, found, _ask("status")))]
    if as_json:
        invocation.print_json({"home": identity.find_home(), "desks": desks})
    elif not desks:
        click.echo(f"No desk runs for {identity.find_home()}. The next client that needs one starts it.")
    for desk in [] if as_json else desks:
        click.echo("\n".join(_describe(desk, time.time())))


@click.command()
def stop() -> None:
    """End the desks of this data folder, once they have answered what they have read.

    The next client that needs one starts it again.
    """
    running = list(list_desks())
    for place, found in running:
        end(place, found)
    if not running:
        click.echo(f"No desk runs for {identity.find_home()}.")


def end(place: rendezvous.Place, found: rendezvous.Found) -> bool:
    """End a desk, unless it serves over HTTP too; return whether it has ended."""
    said = through_desk.exchange(place, found, _ask("stop"))
    if said and said.get("kind") == "http":
        click.echo(f"Process {found.pid} serves over HTTP too: end it where it was started.", err=True)
        return False
    if said is not None:
        _wait(place)
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


def _describe(desk: Mapping[str, Any], now: float) -> list[str]:
    memory = f", {desk['memory'] / 1e6:.0f} MB" if desk["memory"] else ""
    also = ", also over HTTP" if desk["kind"] == "http" else ""
    work = ", ".join(desk["work"]) or "nothing"
    head = f"Desk {desk['pid']}, refdesk {desk['version']}, for {_tell_time(now - desk['started'])}{memory}{also}"
    clients = desk["clients"]
    lines = [head, f"  serves {', '.join(desk['toolsets'])}; in the background: {work}"]
    lines += [f"  {said}" for said in describe_embedding(desk.get("embedding"))]
    for client in clients:
        name = client["client"] or "a client"
        calls = f", {client['calls']} calls in hand" if client["calls"] else ""
        since = _tell_time(now - client["since"])
        lines.append(f"  {name} as {client['agent']} of {client['org']}, process {client['pid']}, for {since}{calls}")
    if not clients and desk["idle_seconds"]:
        lines.append(f"  no client; it ends {_tell_time(desk['idle_seconds'])} after the last one left")
    return lines


def describe_embedding(state: Mapping[str, Any] | None) -> list[str]:
    """Return how far embedding is, in a sentence; nothing where all is embedded."""
    if not state or not (state["waiting"] or state["model"] != state["searchedBy"]):
        return []
    counts = f"{state['embedded']:,} of {state['documents']:,} documents"
    if state["model"] == state["searchedBy"]:
        return [f"{counts} have their vectors"]
    return [f"{counts} are embedded anew by {state['model']}; {state['searchedBy']} is searched meanwhile"]


def _tell_time(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length * (1 if unit != "days" else 2):
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
