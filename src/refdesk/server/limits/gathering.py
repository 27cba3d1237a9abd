"""Sends the head of an answer together with the beginning of its body, if that is available.

uvicorn writes the two separately. The head alone would wake the client, which on a busy machine would take the
processor from the server just before it has written the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class GatheringTransport:
    """A transport that holds data back until more is written, or until the next turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, b""

    def write(self, data: bytes) -> None:
        """Send the data together with what was held back; hold it back if nothing was."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        elif data:
            self._held = data
            self._loop.call_soon(self._flush)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are still to be sent."""
        return len(self._held) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send what was held back, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._held = b""
        self._transport.abort()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else the transport has
        return getattr(self._transport, name)
