"""The greeting before a connection carries messages: one line of JSON each way; on loopback, after a proof each way."""

from __future__ import annotations

import _socket as socket  # without the enumerations of all constants, which would take a tenth of a forwarder's memory
import json
import os
from collections.abc import Mapping
from contextlib import suppress

from refdesk.forwarder import rendezvous
from refdesk.forwarder.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from refdesk.forwarder.rendezvous import Place

MARK = "refdesk"
"""The only field of every line that is refdesk's own rather than a protocol message."""

PIECE_BYTES = 65536


class RefusedError(Exception):
    """The desk refused to serve this client; the message is its reason."""


def pack(said: Mapping[str, object]) -> bytes:
    """Return a line of refdesk's own."""
    return json.dumps({MARK: said}, separators=(",", ":")).encode() + b"\n"


def unpack(line: bytes) -> dict[str, Any] | None:
    """Return the contents of a line of refdesk's own, or `None` for any other line."""
    if not line.startswith(b'{"refdesk":'):
        return None
    try:
        said = json.loads(line)[MARK]
    except (ValueError, KeyError):
        return None
    return cast("dict[str, Any]", said) if isinstance(said, dict) else None


class Wire:
    """A connection that is read line by line."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = bytearray()
        self._searched = 0

    def send(self, data: bytes) -> None:
        """Send all of the data; raise OSError if the other end is gone."""
        self.connection.sendall(data)

    def read_line(self) -> bytes:
        """Return the next line with its newline, or empty bytes if there are no more."""
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            try:
                piece = self.connection.recv(PIECE_BYTES)
            except OSError:
                piece = b""
            if not piece:
                return b""
            self._buffer += piece
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def end_sending(self) -> None:
        """Tell the other end that nothing more comes; what it still sends can be read."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection, and wake any thread that reads from it."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def prove_client(wire: Wire, place: Place) -> None:
    """On loopback, prove to the desk and have it prove that both know the secret; on a Unix socket the system vouches.

    Raises:
        OSError: The connection ended, or the process that listens there does not know the secret.
    """
    if wire.connection.family != socket.AF_INET:
        return
    nonce = os.urandom(16).hex()
    wire.send(pack({"nonce": nonce}))
    said = unpack(wire.read_line()) or {}
    if said.get("proof") != place.prove("desk", nonce):
        raise PermissionError("who listens there is no desk of this folder")
    wire.send(pack({"proof": place.prove("client", str(said.get("nonce")))}))


def greet(wire: Wire, place: Place, asked: Mapping[str, object]) -> dict[str, Any]:
    """Send what is asked for, and return the desk's answer.

    Raises:
        OSError: The desk ended first.
        RefusedError: The desk serves nobody like this.
    """
    prove_client(wire, place)
    wire.send(pack(asked))
    said = unpack(wire.read_line())
    if said is None:
        raise ConnectionResetError("the desk ended")
    if "error" in said:
        raise RefusedError(str(said["error"]))
    return said


def prove_desk(wire: Wire, place: Place) -> None:
    """Do the desk's part of the proof.

    Raises:
        OSError: The connection ended, or the client does not know the secret.
    """
    if wire.connection.family != socket.AF_INET:
        rendezvous.require_own(wire.connection)
        return
    nonce = os.urandom(16).hex()
    said = unpack(wire.read_line()) or {}
    wire.send(pack({"proof": place.prove("desk", str(said.get("nonce"))), "nonce": nonce}))
    answer = unpack(wire.read_line()) or {}
    if answer.get("proof") != place.prove("client", nonce):
        raise PermissionError("that client does not know the folder's secret")
