"""How an answer goes out: as it should, or spoiled on the way."""

from __future__ import annotations

import gzip
import socket
import struct
import time
from asyncio import Transport
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import cast

import anyio
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sample_world.azure_updates.faults import FaultKind, FaultRule

JSON_TYPE = "application/json; odata.metadata=minimal; odata.streaming=true; charset=utf-8"
_LINGER_ZERO = struct.pack("ii", 1, 0)
_PADDING = b" " * 65_536


class ConnectionProtocol(H11Protocol):
    """HTTP/1.1 that lets an answer reach its own connection, as `scope["state"]["transport"]`."""

    def connection_made(self, transport: Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Note the transport where the scope of each request is made from."""
        self.app_state = {**self.app_state, "transport": transport}
        super().connection_made(transport)


def deliver(body: bytes, fault: FaultRule | None) -> Response:
    """Return the answer that carries `body` (JSON, status 200), spoiled as the rule says.

    A fault that concerns the content of a page changes nothing here.
    """
    spoil = _SPOILED.get(fault.fault) if fault else None
    return spoil(body, fault) if spoil and fault else Response(body, headers={"Content-Type": JSON_TYPE})


def _html(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase
    text = "The page cannot be shown right now because our front door is being painted. Please come back later."
    body = f"<body><h1>{phrase}</h1><p>{text}</p></body>"
    return f"<!DOCTYPE html><html><head><title>{status} {phrase}</title></head>{body}</html>".encode()


def _fail(_body: bytes, fault: FaultRule) -> Response:
    headers: dict[str, str] = {}
    if fault.retry_after is not None:
        until = formatdate(time.time() + fault.retry_after, usegmt=True)
        headers["Retry-After"] = until if fault.retry_after_form == "date" else f"{fault.retry_after:g}"
    return Response(_html(fault.status), fault.status, headers, media_type="text/html")


def _redirect(_body: bytes, fault: FaultRule) -> Response:
    return RedirectResponse(fault.location, 302)


def _cut_json(body: bytes, _fault: FaultRule) -> Response:
    return Response(body[: len(body) // 2], headers={"Content-Type": JSON_TYPE})


def _wrong_type(_body: bytes, _fault: FaultRule) -> Response:
    return Response(_html(200), media_type="text/html")


def _compress(body: bytes, _fault: FaultRule) -> Response:
    return Response(gzip.compress(body), headers={"Content-Type": JSON_TYPE, "Content-Encoding": "gzip"})


def _inflate(body: bytes, fault: FaultRule) -> Response:
    # JSON allows any run of blanks before the closing brace, so the answer stays valid at every size.
    blocks = -(-fault.size_bytes // len(_PADDING))
    if fault.gzip:
        padded = body[:-1] + _PADDING * blocks + body[-1:]
        return _compress(padded, fault)

    async def chunks() -> AsyncIterator[bytes]:
        yield body[:-1]
        for _ in range(blocks):
            yield _PADDING
        yield body[-1:]

    return StreamingResponse(chunks(), headers={"Content-Type": JSON_TYPE})


def _drip(body: bytes, fault: FaultRule) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), fault.chunk_bytes):
            yield body[start : start + fault.chunk_bytes]
            await anyio.sleep(fault.delay_seconds)

    return StreamingResponse(chunks(), headers={"Content-Type": JSON_TYPE, "Content-Length": str(len(body))})


class _Hanging(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _wait_until_gone(receive)


class _Resetting(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = _transport(scope)
        connection = cast("socket.socket", transport.get_extra_info("socket"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        transport.abort()
        await _wait_until_gone(receive)


class _Truncated(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = self.body[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        _transport(scope).close()
        await _wait_until_gone(receive)


def _transport(scope: Scope) -> Transport:
    return cast("Transport", scope["state"]["transport"])


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _hang(_body: bytes, _fault: FaultRule) -> Response:
    return _Hanging()


def _reset(_body: bytes, _fault: FaultRule) -> Response:
    return _Resetting()


def _truncate(body: bytes, _fault: FaultRule) -> Response:
    return _Truncated(body, headers={"Content-Type": JSON_TYPE})


_SPOILED: Mapping[FaultKind, Callable[[bytes, FaultRule], Response]] = {
    "status": _fail,
    "redirect": _redirect,
    "reset": _reset,
    "truncate": _truncate,
    "hang": _hang,
    "drip": _drip,
    "huge": _inflate,
    "gzip": _compress,
    "invalid_json": _cut_json,
    "wrong_content_type": _wrong_type,
}
