"""The process of a desk. It takes its place and listens before it imports anything heavy, so clients find it at once.

The arguments are the desk's key and the names of the toolsets; the settings come from the environment.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time

from refdesk import __version__
from refdesk.forwarder import hello, identity, rendezvous
from refdesk.forwarder.locking import FileLock
from refdesk.forwarder.rendezvous import Found, Place, UnusableError
from refdesk.server.local import listening, log_file

TAKEOVER_SECONDS = 60.0
"""How long the previous desk may take to finish its requests."""

REFUSE_SECONDS = 2.0


def main() -> None:
    """Serve until nobody has needed the desk for long enough; end at once if a desk is already running."""
    key, *names = sys.argv[1:]
    place = rendezvous.open_known_place(identity.find_home(), key)
    log_file.open_log(place.path(".log"))
    lock = place.get_life_lock()
    if not lock.take(TAKEOVER_SECONDS):
        return
    try:
        listener, address = listening.listen(place, on_loopback=is_on_loopback())
    except UnusableError as error:
        _say(f"no socket: {error}")
        return
    place.announce(Found(os.getpid(), __version__, address, "desk", place.key, time.time()))
    try:
        _serve(place, lock, listener, names)
    finally:
        place.withdraw()


def _serve(place: Place, lock: FileLock, listener: socket.socket, names: list[str]) -> None:
    gc.disable()  # imported objects stay: scanning them repeatedly takes a tenth of the start
    from refdesk import errors

    try:
        from refdesk.server.local.process import serve

        serve(place, lock, listener, names)
    except errors.RefdeskError as error:
        _say(error.message)
        place.withdraw()
        refuse(listener, place, error.message)


def is_on_loopback() -> bool:
    """Return whether the settings ask for a socket on loopback, as systems without Unix sockets need."""
    return identity.read_settings().get("DESK_SOCKET", "").lower() == "loopback"


def refuse(listener: socket.socket, place: Place, message: str) -> None:
    """Tell clients that are already waiting why nobody is served."""
    listener.setblocking(True)
    listener.settimeout(REFUSE_SECONDS)
    try:
        while True:
            connection, _ = listener.accept()
            wire = hello.Wire(connection)
            hello.prove_desk(wire, place)
            wire.read_line()
            wire.send(hello.pack({"error": message}))
            wire.close()
            listener.settimeout(0.1)
    except OSError:
        listener.close()


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    main()
