"""Asks the running desk, if there is one: its model is loaded and its index is open."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from refdesk import __version__, errors
from refdesk.core.descriptors import FEED_MARK
from refdesk.forwarder import hello, identity, rendezvous

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.forwarder.rendezvous import Found, Place

LOST = "The desk ended while {} ran: what it was to write may have been written, or not. Look before you call again."


def ask(
    operation: str,
    arguments: Mapping[str, object],
    *,
    org: str | None = None,
    agent: str | None = None,
    names: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Return the answer of the running desk as its `value` and `meta`, or `None` if none can be asked.

    Args:
        operation: The operation's name.
        arguments: Its arguments.
        org: The caller's, if not that of the settings.
        agent: The same for the agent.
        names: The toolsets of a desk that may be asked too, beside that of all toolsets.

    Raises:
        RefdeskError: What the operation raised, or `WorldError` where the desk ended during the call.
    """
    what = {"operation": operation, "arguments": dict(arguments)}
    return _ask_each(names, _introduce("call", org, agent) | what, operation)


def sync(toolset: str, *, full: bool, force: bool, show: Show | None) -> dict[str, Any] | None:
    """Return the report of a sync done by the running desk, or `None` if none can be asked.

    Args:
        toolset: The toolset to sync, or one of its further feeds.
        full: Whether everything is compared.
        force: Whether documents gone from the source are withdrawn even if they are suspiciously many.
        show: Called with the progress.

    Raises:
        RefdeskError: The sync failed, or `WorldError` where the desk ended meanwhile.
    """
    asked = _introduce("sync") | {"toolset": toolset, "full": full, "force": force}

    def note(said: Mapping[str, Any]) -> None:
        if show is not None:
            done, total = said["progress"]
            show(int(done), int(total) if total is not None else None)

    said = _ask_each((toolset.partition(FEED_MARK)[0],), asked, "the sync", note)
    return said["value"] if said is not None else None


def work(
    name: str,
    arguments: Mapping[str, object],
    *,
    org: str | None = None,
    agent: str | None = None,
    names: Sequence[str] = (),
    texts: Sequence[Mapping[str, str]] = (),
    show: Callable[[int], None] = lambda _: None,
) -> tuple[Any] | None:
    """Return the outcome of work (see `server.local.work`) done by the running desk; `None` if none does it.

    Args:
        name: The name of the work.
        arguments: Its arguments.
        org: The caller's, if not that of the settings.
        agent: The same for the agent.
        names: The toolsets of a desk that may be asked too, beside that of all toolsets.
        texts: The texts that the work is done on.
        show: Called with the number of texts that are done.

    Raises:
        RefdeskError: What the work raised, or `WorldError` where the desk ended meanwhile.
    """
    asked = _introduce("work", org, agent) | {"work": name, "arguments": dict(arguments), "texts": len(texts)}
    said = _ask_each(names, asked, f"the work ({name})", lambda said: show(int(said["progress"][0])), texts)
    return (said["value"],) if said is not None else None


def _introduce(ask: str, org: str | None = None, agent: str | None = None) -> dict[str, object]:
    """Return the beginning of a request to a desk: what is asked, and by whom; the settings' caller unless given."""
    settings = identity.read_settings()
    return {
        "ask": ask,
        "version": __version__,
        "pid": os.getpid(),
        "org": org or settings.get("ORG"),
        "agent": agent or settings.get("AGENT"),
    }


def _ask_each(
    names: Sequence[str],
    asked: Mapping[str, object],
    what: str,
    note: Callable[[Mapping[str, Any]], None] = lambda _: None,
    more: Sequence[Mapping[str, object]] = (),
) -> dict[str, Any] | None:
    """Return the answer of the first desk that does what is asked, its `value` and what comes with it; or `None`."""
    for place, found in _list_candidates(names):
        said = exchange(place, found, asked, note, more)
        if said == {}:
            raise errors.WorldError(LOST.format(what))
        if said is not None and "failed" in said:
            raise _to_error(said["failed"])
        if said is not None and "value" in said:
            return said
    return None


def exchange(
    place: Place,
    found: Found,
    asked: Mapping[str, object],
    note: Callable[[Mapping[str, Any]], None] = lambda _: None,
    more: Sequence[Mapping[str, object]] = (),
) -> dict[str, Any] | None:
    """Return what a desk answers: `None` if it cannot be reached, an empty answer if it ended before answering.

    Lines of progress before the answer go to `note`; `more` is sent after the request, one line each.
    """
    try:
        wire = hello.Wire(rendezvous.connect(found))
        hello.prove_client(wire, place)
    except OSError:
        return None
    try:
        for line in (asked, *more):
            wire.send(hello.pack(line))
        while "progress" in (said := hello.unpack(wire.read_line()) or {}):
            note(said)
    except OSError:
        return {}
    else:
        return said
    finally:
        wire.close()


def _list_candidates(names: Sequence[str]) -> list[tuple[Place, Found]]:
    """Return the desks of this version and these settings: that of all toolsets, and that of the named ones."""
    found: list[tuple[Place, Found]] = []
    for chosen in ((), names) if names else ((),):
        place = rendezvous.find_place(identity.read(chosen))
        running = place.find() if place is not None else None
        if place is not None and running is not None and running.version == __version__:
            found.append((place, running))
    return found


def _to_error(failed: Mapping[str, Any]) -> errors.RefdeskError:
    kind = getattr(errors, str(failed["type"]), errors.RefdeskError)
    made = cast("type[errors.RefdeskError]", kind)
    return made(str(failed["message"]), details=failed.get("details"))
