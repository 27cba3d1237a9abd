"""What the streams of a session sent last, so that a client whose connection broke gets the rest (Last-Event-ID).

Kept in memory, for as long as the session is open, within bounds; a session is its caller's alone. Only answers that
are streams are kept: what is answered in one body is asked again.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from mcp.server.streamable_http import GET_STREAM_KEY, EventMessage, EventStore
from mcp_types import JSONRPCError, JSONRPCResponse

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventCallback
    from mcp_types import JSONRPCMessage

MOST_BYTES = 128 * 1024
"""Of one session: what is older goes. The largest answer over MCP has about a third of it."""

MOST_STREAMS = 64
"""Of one session; as many requests of an agent may be in hand."""

_EVENT = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


@dataclass(slots=True, eq=False)
class _Stream:
    """One answer, or what is sent unasked.

    Attributes:
        id: As the SDK has it.
        number: Of the stream in its session, which its events' ids begin with.
        events: What is kept of it: each event's number in the session, the message, and its size.
        is_over: Whether the answer itself was sent: nothing follows.
    """

    id: str
    number: int
    events: deque[tuple[int, JSONRPCMessage, int]] = field(default_factory=deque["tuple[int, JSONRPCMessage, int]"])
    is_over: bool = False


@dataclass(slots=True)
class Replays(EventStore):
    """Of one session."""

    most_bytes: int = MOST_BYTES
    most_streams: int = MOST_STREAMS
    _streams: OrderedDict[int, _Stream] = field(default_factory=OrderedDict[int, _Stream])
    _current: dict[str, _Stream] = field(default_factory=dict[str, _Stream])
    _order: deque[_Stream] = field(default_factory=deque[_Stream])
    _bytes: int = 0
    _count: int = 0
    _is_closed: bool = False
    _ring: anyio.Event = field(default_factory=anyio.Event)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep what a stream sends, and return the event's id; `None` begins a stream."""
        self._count += 1
        stream = self._current.get(stream_id)
        if message is None or (stream is None and stream_id == GET_STREAM_KEY):
            stream = stream if stream is not None and not stream.is_over else self._begin(stream_id)
        if stream is None:
            return f"0-{self._count}"  # it is answered in one body, where nobody sees this
        if message is not None:
            self._keep(stream, message)
        return f"{stream.number}-{self._count}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what followed an event, and what follows yet, until the stream is over.

        It does not return before, so that nothing falls between what is kept and what is sent live, which the SDK would
        attach only afterwards.
        """
        found = self._find(last_event_id)
        if found is None:
            return None
        stream, after = found
        while True:
            for number, message, _ in [*stream.events]:
                if number > after:
                    after = number
                    await send_callback(EventMessage(message, f"{stream.number}-{number}"))
            if stream.events and stream.events[-1][0] > after:
                continue  # came while others were sent
            if stream.is_over or self._is_closed:
                return None
            await self._ring.wait()

    def can_resume(self, last_event_id: str) -> bool:
        """Return whether anything follows an event, or may yet."""
        found = self._find(last_event_id)
        if found is None:
            return False
        stream, after = found
        return not stream.is_over or any(number > after for number, _, _ in stream.events)

    def close(self) -> None:
        """End every replay: the session is over."""
        self._is_closed = True
        self._wake()

    def _find(self, event_id: str) -> tuple[_Stream, int] | None:
        match = _EVENT.fullmatch(event_id)
        stream = self._streams.get(int(match[1])) if match is not None else None
        return (stream, int(match[2])) if stream is not None and match is not None else None

    def _begin(self, stream_id: str) -> _Stream:
        stream = _Stream(stream_id, self._count)
        self._streams[stream.number] = self._current[stream_id] = stream
        while len(self._streams) > self.most_streams:
            self._forget(next(iter(self._streams.values())))
        return stream

    def _keep(self, stream: _Stream, message: JSONRPCMessage) -> None:
        size = len(message.model_dump_json(by_alias=True, exclude_unset=True))
        stream.events.append((self._count, message, size))
        self._order.append(stream)
        self._bytes += size
        if isinstance(message, JSONRPCResponse | JSONRPCError) and stream.id != GET_STREAM_KEY:
            stream.is_over = True
            self._current.pop(stream.id, None)
        while self._bytes > self.most_bytes and self._order:
            self._drop_oldest()
        self._wake()

    def _drop_oldest(self) -> None:
        stream = self._order.popleft()
        self._bytes -= stream.events.popleft()[2]
        if stream.is_over and not stream.events:
            self._streams.pop(stream.number, None)

    def _forget(self, stream: _Stream) -> None:
        del self._streams[stream.number]
        if self._current.get(stream.id) is stream:
            del self._current[stream.id]
        stream.is_over = True

    def _wake(self) -> None:
        ring, self._ring = self._ring, anyio.Event()
        ring.set()
