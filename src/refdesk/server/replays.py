"""The latest events of a session's streams, so that a client whose connection broke gets the rest (Last-Event-ID).

They are kept in memory, within bounds, for as long as the session is open; a session belongs to one caller. Only
answers that are streams are kept: a client repeats a request whose answer is one body.
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
"""Most bytes kept for one session; older events are dropped. The largest answer over MCP takes about a third of it."""

MOST_STREAMS = 64
"""Most streams of one session; an agent may have as many requests in progress."""

_EVENT = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


@dataclass(slots=True, eq=False)
class _Stream:
    """The stream of one answer, or the stream of messages that no request asked for.

    Attributes:
        id: The SDK's id of the stream.
        number: The stream's number in its session; the ids of its events begin with it.
        events: The events that are kept: each one's number in the session, its message, and its size.
        is_over: Whether the answer itself was sent, so that nothing follows.
    """

    id: str
    number: int
    events: deque[tuple[int, JSONRPCMessage, int]] = field(default_factory=deque["tuple[int, JSONRPCMessage, int]"])
    is_over: bool = False


@dataclass(slots=True)
class Replays(EventStore):
    """The events kept for one session."""

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
        """Keep an event of a stream, and return its id; the message `None` begins a stream."""
        self._count += 1
        stream = self._current.get(stream_id)
        if message is None or (stream is None and stream_id == GET_STREAM_KEY):
            stream = stream if stream is not None and not stream.is_over else self._begin(stream_id)
        if stream is None:
            return f"0-{self._count}"  # the answer is one body, in which nobody sees this id
        if message is not None:
            self._keep(stream, message)
        return f"{stream.number}-{self._count}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what followed an event, and what is still to come, until the stream is over.

        It does not return earlier: the SDK would attach the live stream only afterwards, and events in between would be
        lost.
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
                continue  # more came while those were sent
            if stream.is_over or self._is_closed:
                return None
            await self._ring.wait()

    def can_resume(self, last_event_id: str) -> bool:
        """Return whether anything follows an event, or may still follow."""
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
