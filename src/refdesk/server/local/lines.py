"""A connection as the lines that come over it, and what of them is not answered yet."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

import anyio

from refdesk.forwarder import hello
from refdesk.forwarder.journal import ANSWER, LISTEN, key_of

if TYPE_CHECKING:
    from anyio.abc import ByteStream

PIECE_BYTES = 65536


class Lines:
    """Reads lines from a stream, and writes whole lines to it, each side by one task at a time or in turns."""

    def __init__(self, stream: ByteStream, most_bytes: int) -> None:
        self.stream = stream
        self.read = 0
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._is_cut = False
        self._turn = anyio.Lock()

    async def next(self) -> bytes | None:
        """Return the next line without its end, or `None` when there is none any more.

        Of a line that is longer than a message may be, its beginning is returned, which is none.
        """
        while True:
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
                if not self._is_cut:
                    self._is_cut, self.read = True, self.read + 1
                    return b""
            elif not await self._fill():
                return None

    async def write(self, text: str) -> int:
        """Write text that ends a line; return its length, as files do. What nobody reads any more is dropped."""
        try:
            async with self._turn:
                await self.stream.send(text.encode())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        return len(text)

    async def _fill(self) -> bool:
        self._searched = len(self._buffer)
        try:
            self._buffer += await self.stream.receive(PIECE_BYTES)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True


class Session:
    """The lines of one client as texts, until it leaves or the desk lets go of it.

    A desk that lets go reads nothing more, but answers what it has read; then it says how far that was, so that the
    client's forwarder knows what the next desk has to be asked.
    """

    def __init__(self, lines: Lines, most_seconds: float) -> None:
        self.open_calls: set[str] = set()
        self._lines = lines
        self._most_seconds = most_seconds
        self._is_let_go = False
        self._reading = anyio.CancelScope()
        self._settled = anyio.Event()

    async def __aiter__(self) -> AsyncGenerator[str]:
        while (line := await self._next()) is not None:
            yield _decode(line)
        if self._is_let_go:
            await self._settle()

    def let_go(self) -> None:
        """Read nothing more from the client."""
        self._is_let_go = True
        self._reading.cancel()

    def note(self, value: object) -> None:
        """Take down a message of the client's."""
        message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        method, params = message.get("method"), message.get("params")
        if method == "notifications/cancelled" and isinstance(params, dict):
            self._close(key_of(cast("dict[str, Any]", params).get("requestId")))
        elif method is not None and method != LISTEN and "id" in message:
            self.open_calls.add(key_of(message["id"]))

    async def write(self, text: str) -> int:
        """Write a message to the client."""
        length = await self._lines.write(text)
        answer = ANSWER.match(text.encode())
        if answer is not None:
            self._close(answer[1].decode())
        return length

    def _close(self, key: str) -> None:
        self.open_calls.discard(key)
        if not self.open_calls:
            self._settled.set()
            self._settled = anyio.Event()

    async def _next(self) -> bytes | None:
        """Return the next line; `None` when the client left, or is let go of."""
        if self._is_let_go:
            return None
        with anyio.CancelScope() as self._reading:
            return await self._lines.next()
        return None

    async def _settle(self) -> None:
        with anyio.move_on_after(self._most_seconds):
            while self.open_calls:
                await self._settled.wait()
        await self._lines.write(hello.pack({"read": self._lines.read}).decode())


def _decode(line: bytes) -> str:
    """Return a line as text, or an empty one, which is no message, when it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return ""
