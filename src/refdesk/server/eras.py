"""Protocol eras on a stream; a probe does not decide which era a connection speaks.

The SDK lets a connection's first request choose between the handshake era and the later one. Clients in the field ask
`server/discover` first and then open with `initialize` all the same, which the SDK alone would refuse. Here probes are
answered separately until a request really opens the connection.

Since the era is known here, a connection of the handshake era is served by the SDK's loop for that era only: the loop
for both eras passes each message between tasks twice before it is handled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.runner import serve_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from refdesk.core.operations import LARGEST_REQUEST

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mcp.server.lowlevel import Server
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from refdesk.settings import StdioEra

Item: TypeAlias = "SessionMessage | Exception"
Answer: TypeAlias = Callable[[SessionMessage], Awaitable[types.JSONRPCMessage | None]]

PARSE_ERROR = -32700
UNSUPPORTED_VERSION = -32022
DISCOVER = "server/discover"
MOST_AHEAD = 8
"""Most items kept before the request that opens a connection; further ones are dropped, as the SDK does."""


class Stream(ABC):
    """One direction of a connection, in the form that the SDK expects: closed when its block ends."""

    @abstractmethod
    async def aclose(self) -> None:
        """Stop reading or writing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Reading(Stream):
    """What a client sends, read item by item in the task that wants the next one, with no task in between."""

    @abstractmethod
    async def receive(self) -> Item:
        """Return the next item.

        Raises:
            EndOfStream: There are no more items.
        """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


async def run(
    server: Server[Any],
    read: ReadStream[Item],
    write: WriteStream[SessionMessage],
    era: StdioEra,
    caller: object = None,
) -> None:
    """Serve one connection over a pair of streams, in the era that the settings allow.

    `caller` is what handlers find as `context.request`, if the stream does not say who calls.
    """
    passed_on = _PassedOn(read, write, _gatekeeper(server, era), caller)
    options = server.create_initialization_options()
    async with write, passed_on:
        if not await passed_on.opens_with_handshake():
            await server.run(passed_on, write, options)
            return
        async with server.lifespan(server) as state:
            await serve_loop(server, passed_on, write, lifespan_state=state, init_options=options)


class _PassedOn(Reading):
    """The client's messages, without those that are answered here."""

    def __init__(
        self, read: ReadStream[Item], write: WriteStream[SessionMessage], answer: Answer, caller: object
    ) -> None:
        self._read, self._write = read, write
        self._answer, self._caller = answer, caller
        self._ahead: deque[Item] = deque()
        self._is_open = self._has_handshake = False

    async def opens_with_handshake(self) -> bool:
        """Wait for the request that opens the connection; return whether its era is that of the handshake."""
        ahead = list[Item]()
        while not self._is_open:
            try:
                item = await self.receive()
            except anyio.EndOfStream:
                break
            if self._is_open or len(ahead) < MOST_AHEAD:
                ahead.append(item)
        self._ahead.extend(ahead)
        return self._has_handshake

    async def receive(self) -> Item:
        if self._ahead:
            return self._ahead.popleft()
        while True:
            item = await self._read.receive()
            if isinstance(item, Exception):
                reply = _parse_error()
            else:
                if self._caller is not None:
                    item.metadata = ServerMessageMetadata(request_context=self._caller)
                reply = _find_mixed_up(item) if self._has_handshake else await self._open(item)
            if reply is None:
                return item
            await self._write.send(SessionMessage(reply))

    async def aclose(self) -> None:
        await self._read.aclose()

    async def _open(self, item: SessionMessage) -> types.JSONRPCMessage | None:
        """Let a request open the connection, unless the request is answered here or the connection is open."""
        reply = None if self._is_open else await self._answer(item)
        if reply is None and not self._is_open and isinstance(item.message, types.JSONRPCRequest):
            self._is_open, self._has_handshake = True, not _is_of_later_era(item.message)
        return reply


def _is_of_later_era(request: types.JSONRPCRequest) -> bool:
    """Return whether a request carries its protocol version, as requests without a handshake do."""
    meta = (request.params or {}).get("_meta") if request.method != "initialize" else None
    return isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta


def _find_mixed_up(item: SessionMessage) -> types.JSONRPCMessage | None:
    """Return the answer to a request of the later era on a connection that has shaken hands; `None` for any other
    message."""
    request = item.message
    if not isinstance(request, types.JSONRPCRequest) or not _is_of_later_era(request):
        return None
    words = "This connection has shaken hands: send requests without a protocol version of their own."
    return _error(request.id, types.INVALID_REQUEST, words, None)


def _gatekeeper(server: Server[Any], era: StdioEra) -> Answer:
    """Return a function that answers requests before the connection is open; where it returns `None`, a request may
    open it."""

    async def answer(item: SessionMessage) -> types.JSONRPCMessage | None:
        request = item.message
        if not isinstance(request, types.JSONRPCRequest):
            return None
        if request.method == DISCOVER and era == "legacy":
            return _error(request.id, types.METHOD_NOT_FOUND, "Method not found", DISCOVER)
        if request.method == DISCOVER and era == "auto":
            return await _discover(server, item)
        if request.method == "initialize" and era == "modern":
            supported = {"supported": list(MODERN_PROTOCOL_VERSIONS)}
            return _error(request.id, UNSUPPORTED_VERSION, "This server speaks no handshake era.", supported)
        return None

    return answer


async def _discover(server: Server[Any], item: SessionMessage) -> types.JSONRPCMessage | None:
    """Return the server's answer to a probe, given on a separate connection so that it does not decide the era."""
    ask, asked = anyio.create_memory_object_stream[Item](1)
    told, tell = anyio.create_memory_object_stream[SessionMessage](1)
    async with ask, tell, anyio.create_task_group() as group:
        group.start_soon(server.run, asked, told, server.create_initialization_options())
        await ask.send(item)
        reply = await tell.receive()
        await ask.aclose()
        return reply.message
    return None


def _parse_error() -> types.JSONRPCError:
    megabytes = LARGEST_REQUEST // 2**20
    words = f"Parse error: send one JSON-RPC message per line, as strict JSON in UTF-8 of at most {megabytes} MB."
    return _error(None, PARSE_ERROR, words, None)


def _error(id: types.RequestId | None, code: int, message: str, data: object) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message, data=data))
