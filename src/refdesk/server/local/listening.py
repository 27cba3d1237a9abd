"""Where a desk listens: on a Unix socket beside its other files, or on a loopback port if the system has no such
sockets."""

from __future__ import annotations

import os
import socket

from refdesk.forwarder import identity, rendezvous
from refdesk.forwarder.rendezvous import Place, UnusableError

BACKLOG = 512


def listen(place: Place, *, on_loopback: bool) -> tuple[socket.socket, str | int]:
    """Return a listening socket and its address; the caller must hold the life lock.

    Raises:
        UnusableError: The system does not support the socket, or refuses it.
    """
    try:
        if on_loopback or not hasattr(socket, "AF_UNIX"):
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind((rendezvous.LOOPBACK, 0))
            address: str | int = listener.getsockname()[1]
        else:
            path = _choose_socket_path(place)
            _clear(place, path)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with rendezvous.shorten(path) as short:
                listener.bind(short)
            address = path
        listener.listen(BACKLOG)
    except OSError as error:
        raise UnusableError(error.strerror or str(error)) from None
    return listener, address


def _choose_socket_path(place: Place) -> str:
    """Return a path that is short enough for a socket: beside the desk's other files, or in a folder of this user."""
    name = f"{place.key}-{os.getpid()}.sock"
    path = os.path.join(place.folder, name)
    if len(os.fsencode(path)) <= rendezvous.MOST_SOCKET_PATH or os.path.isdir(rendezvous.DESCRIPTORS):
        return path
    for base in identity.list_runtime_folders():
        folder = os.path.join(base, f"refdesk-{os.getuid()}")
        path = os.path.join(folder, name)
        if len(os.fsencode(path)) > rendezvous.MOST_SOCKET_PATH:
            continue
        try:
            rendezvous.make_private(folder)
        except (OSError, UnusableError):
            continue
        return path
    raise UnusableError("no folder's path is short enough for a socket")


def _clear(place: Place, path: str) -> None:
    """Remove the sockets that earlier desks of this place left behind when they were killed."""
    folder = os.path.dirname(path)
    for name in os.listdir(folder):
        if name.startswith(f"{place.key}-") and name.endswith(".sock"):
            rendezvous.remove(os.path.join(folder, name))
