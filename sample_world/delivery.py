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
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sample_world.faults import FaultRule

_LINGER_ZERO = struct.pack("ii", 1, 0)
_PADDING = b" " * 65_536


class ConnectionProtocol(H11Protocol):
    """HTTP/1.1 that lets an answer reach its own connection, as `scope["state"]["transport"]`."""

    def connection_made(self, transport: Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Note the transport where the scope of each request is made from."""
        self.app_state = {**self.app_state, "transport": transport}
        super().connection_made(transport)


ENDLESS = "Wed, 21 Oct 99999999999999 07:28:00 GMT"


def spoil(response: Response, fault: FaultRule | None) -> Response:
    """Return the answer spoiled as the rule says; a fault of no transport, or none, leaves it as it is."""
    change = _SPOILED.get(fault.fault) if fault else None
    return change(response, fault) if change and fault else response


def is_silent(fault: FaultRule | None) -> bool:
    """Say whether the client gets no status under this fault."""
    return fault is not None and fault.fault in ("reset", "hang")


def _html(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase
    text = "The page cannot be shown right now because our front door is being painted. Please come back later."
    body = f"<body><h1>{phrase}</h1><p>{text}</p></body>"
    return f"<!DOCTYPE html><html><head><title>{status} {phrase}</title></head>{body}</html>".encode()


def _fail(_response: Response, fault: FaultRule) -> Response:
    headers: dict[str, str] = {}
    if fault.retry_after is not None:
        until = formatdate(time.time() + fault.retry_after, usegmt=True)
        forms = {"seconds": f"{fault.retry_after:g}", "date": until, "endless": ENDLESS}
        headers["Retry-After"] = forms[fault.retry_after_form]
    return Response(_html(fault.status), fault.status, headers, media_type="text/html")


def _redirect(_response: Response, fault: FaultRule) -> Response:
    # Starlette's own answer would write the location as an address, which it need not be.
    return Response(status_code=302, headers={"Location": fault.location})


def _cut_json(response: Response, _fault: FaultRule) -> Response:
    body = bytes(response.body)
    return _replace_body(response, body[: len(body) // 2])


def _wrong_type(_response: Response, _fault: FaultRule) -> Response:
    return Response(_html(200), media_type="text/html")


def _compress(response: Response, _fault: FaultRule) -> Response:
    return _replace_body(response, gzip.compress(bytes(response.body)), {"Content-Encoding": "gzip"})


def _replace_body(response: Response, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, response.status_code, {**_kept_headers(response), **(headers or {})})


def _kept_headers(response: Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name != "content-length"}


def _inflate(response: Response, fault: FaultRule) -> Response:
    # JSON allows any run of blanks before the closing brace, so the answer stays valid at every size.
    body = bytes(response.body)
    blocks = -(-fault.size_bytes // len(_PADDING))
    if fault.gzip:
        return _compress(_replace_body(response, body[:-1] + _PADDING * blocks + body[-1:]), fault)

    async def chunks() -> AsyncIterator[bytes]:
        yield body[:-1]
        for _ in range(blocks):
            yield _PADDING
        yield body[-1:]

    return StreamingResponse(chunks(), response.status_code, _kept_headers(response))


def _drip(response: Response, fault: FaultRule) -> Response:
    body = bytes(response.body)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), fault.chunk_bytes):
            yield body[start : start + fault.chunk_bytes]
            await anyio.sleep(fault.delay_seconds)

    headers = {**_kept_headers(response), "Content-Length": str(len(body))}
    return StreamingResponse(chunks(), response.status_code, headers)


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


def _hang(_response: Response, _fault: FaultRule) -> Response:
    return _Hanging()


def _reset(_response: Response, _fault: FaultRule) -> Response:
    return _Resetting()


def _truncate(response: Response, _fault: FaultRule) -> Response:
    return _Truncated(bytes(response.body), response.status_code, _kept_headers(response))


_SPOILED: Mapping[str, Callable[[Response, FaultRule], Response]] = {
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
