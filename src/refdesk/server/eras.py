"""Protocol eras on a stream: a probe does not decide which one a connection speaks.

The SDK lets a connection's first request choose between the handshake era and the later one. Clients in the field ask
`server/discover` first and open with `initialize` all the same; the SDK alone would refuse them. Here probes are
answered on the side until a request really opens the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from refdesk.settings import StdioEra

Item: TypeAlias = "SessionMessage | Exception"
Answer: TypeAlias = Callable[[SessionMessage], Awaitable[types.JSONRPCMessage | None]]

PARSE_ERROR = -32700
UNSUPPORTED_VERSION = -32022
DISCOVER = "server/discover"


async def run(
    server: Server[Any],
    read: ReadStream[Item],
    write: WriteStream[SessionMessage],
    era: StdioEra,
    caller: object = None,
) -> None:
    """Serve one connection over a pair of streams, with the era as the settings have it.

    `caller` is what handlers find as `context.request`, where the stream says nothing of it.
    """
    send, receive = anyio.create_memory_object_stream[Item](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_relay, read, send, write, _gatekeeper(server, era), caller)
        await server.run(receive, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _relay(
    read: ReadStream[Item],
    send: MemoryObjectSendStream[Item],
    write: WriteStream[SessionMessage],
    answer: Answer,
    caller: object,
) -> None:
    """Pass the client's messages on, except those that are answered here."""
    is_open = False
    async with read, send:
        async for item in read:
            if caller is not None and isinstance(item, SessionMessage):
                item.metadata = ServerMessageMetadata(request_context=caller)
            reply = _parse_error() if isinstance(item, Exception) else None if is_open else await answer(item)
            if reply is not None:
                await write.send(SessionMessage(reply))
                continue
            is_open = is_open or (isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCRequest))
            await send.send(item)


def _gatekeeper(server: Server[Any], era: StdioEra) -> Answer:
    """Return what answers requests that come before the connection is open; `None` lets one open it."""

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
    """Return the server's answer to a probe, given on a connection of its own, so that it decides nothing."""
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
    return _error(None, PARSE_ERROR, "Parse error: send one JSON-RPC message per line, as strict JSON in UTF-8.", None)


def _error(id: types.RequestId | None, code: int, message: str, data: object) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message, data=data))
