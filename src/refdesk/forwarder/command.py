"""`refdesk serve --stdio`: its options are parsed here, without the library that the other commands use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from refdesk import __version__
from refdesk.forwarder import identity, rendezvous, starting
from refdesk.forwarder.carrying import Carrier
from refdesk.forwarder.config_file import UnreadableError
from refdesk.forwarder.rendezvous import UnusableError
from refdesk.forwarder.snapshot import Snapshot
from refdesk.forwarder.typed import NamedTuple

MOST_CHARACTERS = 64
_OF_ORGS = "abcdefghijklmnopqrstuvwxyz0123456789-"
_VALUES = {"--toolset": "names", "--tools": "tools", "--org": "org", "--agent": "agent"}


class Options(NamedTuple):
    """The options of the command, as `refdesk serve --help` describes them."""

    names: tuple[str, ...] = ()
    tools: str | None = None
    org: str | None = None
    agent: str | None = None


def read_options(arguments: Sequence[str]) -> Options | None:
    """Return the options of `serve --stdio` for a shared desk, or `None` for every other command line."""
    if arguments[:1] != ["serve"] or "--stdio" not in arguments:
        return None
    names, chosen = list[str](), dict[str, str]()
    rest = [argument for argument in arguments[1:] if argument != "--stdio"]
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option not in _VALUES or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if not _is_plain(option, value):
            return None  # the parser of all other command lines says what is wrong
        if option == "--toolset":
            names.append(value)
        else:
            chosen[_VALUES[option]] = value
    return Options(tuple(names), **chosen)


def _is_plain(option: str, value: str) -> bool:
    """Return whether a value is certainly valid; the rules are no laxer than those for names in `refdesk.model`."""
    if option == "--org":
        return 0 < len(value) <= MOST_CHARACTERS and not value.strip(_OF_ORGS)
    return option != "--agent" or (0 < len(value) <= MOST_CHARACTERS and value.isprintable() and value.strip() != "")


def make_client(options: Options) -> starting.Client:
    """Return the client that reaches the desk for this process's settings.

    Raises:
        UnusableError: No desk can be reached from here.
    """
    settings = identity.read_settings()
    if identity.is_in_memory():
        raise UnusableError("REFDESK_STORE keeps everything in the memory of one process")
    found = identity.read(options.names)
    asked: dict[str, object] = {
        "ask": "serve",
        "version": __version__,
        "pid": os.getpid(),
        "org": options.org or settings.get("ORG"),
        "agent": options.agent or settings.get("AGENT"),
        "tools": options.tools or settings.get("TOOLS"),
        "era": settings.get("STDIO_ERA"),
    }
    on_loopback = settings.get("DESK_SOCKET", "").lower() == "loopback"
    return starting.Client(found, rendezvous.open_place(found), options.names, asked, on_loopback)


def forward(options: Options) -> str:
    """Carry the messages of this process's client to the desk, and end the process when the client leaves.

    Returns:
        Why no desk can be reached from here, if so; nothing has been read from stdin then.
    """
    try:
        client = make_client(options)
        snapshot = Snapshot(client.place.path(".snapshot"), (__version__, client.asked["tools"], client.asked["era"]))
        # If a place has a snapshot, it has had a desk: clients can be answered from it while another desk starts.
        wire = client.find() if snapshot.is_kept else client.reach()
    except (UnusableError, UnreadableError) as error:
        return str(error)
    return Carrier(client, snapshot, wire).run()
