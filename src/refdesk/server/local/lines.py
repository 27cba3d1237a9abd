"""Reads and writes the lines of a connection, and tracks which requests are not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio

from refdesk.forwarder import hello
from refdesk.forwarder.journal import ANSWER, LISTEN, key_of

if TYPE_CHECKING:
    import socket

MOST_AHEAD = 131_072
"""Bytes that are read ahead; more if a single line needs more."""


class Lines(asyncio.Protocol):
    """Reads lines from a connection for one task, and writes whole lines to it for any.

    The event loop itself delivers data that arrives, and data that is written is sent at once: a stream that waits, for
    each line, until it can read or write costs as much per line as storing a note.
    """

    def __init__(self, most_bytes: int) -> None:
        self.read = 0
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._is_cut = False
        self._has_ended = False
        self._is_gone = False
        self._is_let_go = False
        self._transport: asyncio.Transport | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    async def next(self) -> bytes | None:
        """Return the next line without its newline, or `None` if there are no more.

        For a line that is longer than a message may be, an empty line is returned, which is not a message.
        """
        while not self._is_let_go:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched, was_cut, self._is_cut = 0, self._is_cut, False
                if not was_cut:
                    self.read += 1
                    return line
            elif len(self._buffer) > self._most_bytes:
                self._buffer.clear()
                self._searched = 0
                if not self._is_cut:
                    self._is_cut, self.read = True, self.read + 1
                    return b""
            elif self._has_ended:
                return None
            else:
                self._searched = len(self._buffer)
                await self._wait()
        return None

    def let_go(self) -> None:
        """Stop reading."""
        self._is_let_go = True
        self._wake()

    async def write(self, line: bytes) -> None:
        """Write a line that includes its newline; return once the system has it. It is written whole even if the task
        is cancelled.

        If the connection is gone, the line is dropped.
        """
        if self._transport is not None and not self._is_gone:
            self._transport.write(line)
        if not self._room.is_set():
            await self._room.wait()

    def close(self) -> None:
        """Close the connection, once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)  # writers wait for a client that does not read

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer += data
        if len(self._buffer) > MOST_AHEAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`; earlier requests are still answered."""
        self._has_ended = True
        self._wake()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._has_ended = self._is_gone = True
        self._room.set()
        self._wake()

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._room.clear()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._room.set()

    async def _wait(self) -> None:
        """Return when more data has arrived, or none will."""
        assert self._transport is not None
        if not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()
        self._arrival = asyncio.get_running_loop().create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


@asynccontextmanager
async def open_lines(connection: socket.socket, most_bytes: int) -> AsyncGenerator[Lines]:
    """Yield the lines of an accepted connection; on exit, close it once everything is written. Raises OSError."""
    try:
        _, lines = await asyncio.get_running_loop().connect_accepted_socket(lambda: Lines(most_bytes), connection)
    except BaseException:
        connection.close()
        raise
    try:
        yield lines
    finally:
        lines.close()


class Session:
    """The lines of one client as texts, until it leaves or the desk lets go of it.

    A desk that lets go reads nothing more, but answers what it has read. Then it says how many lines it has read, so
    that the client's forwarder knows what to send to the next desk.
    """

    def __init__(self, lines: Lines, most_seconds: float) -> None:
        self.open_calls: set[str] = set()
        self._lines = lines
        self._most_seconds = most_seconds
        self._is_let_go = False
        self._settled: anyio.Event | None = None

    async def __aiter__(self) -> AsyncGenerator[str]:
        while (line := await self._lines.next()) is not None:
            yield _decode(line)
        if self._is_let_go:
            await self._settle()

    def let_go(self) -> None:
        """Stop reading from the client."""
        self._is_let_go = True
        self._lines.let_go()

    def note(self, value: object) -> None:
        """Note a message from the client."""
        message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        method, params = message.get("method"), message.get("params")
        if method == "notifications/cancelled" and isinstance(params, dict):
            self._close(key_of(cast("dict[str, Any]", params).get("requestId")))
        elif method is not None and method != LISTEN and "id" in message:
            self.open_calls.add(key_of(message["id"]))

    async def write(self, line: bytes) -> None:
        """Write a message to the client."""
        answer = ANSWER.match(line)
        await self._lines.write(line)
        if answer is not None:
            self._close(answer[1].decode())

    def _close(self, key: str) -> None:
        self.open_calls.discard(key)
        if not self.open_calls and self._settled is not None:
            self._settled.set()

    async def _settle(self) -> None:
        with anyio.move_on_after(self._most_seconds):
            while self.open_calls:
                self._settled = anyio.Event()
                await self._settled.wait()
        await self._lines.write(hello.pack({"read": self._lines.read}))


def _decode(line: bytes) -> str:
    """Return a line as text; an empty text, which is not a message, if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return ""
