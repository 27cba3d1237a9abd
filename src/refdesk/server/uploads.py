"""Requests whose client disconnects before it has sent them whole: each ends at once, with one line in the log.

The framework and the SDK would treat each as a server error and log a trace. An incomplete request cannot be answered,
so it is dropped while it is read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from starlette.datastructures import Headers

from refdesk.server.credentials import find_caller_of
from refdesk.server.limits.connections import CONNECTION

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Uploads:
    """Passes on requests, and ends those that will never be complete."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and _has_body(Headers(scope=scope)):
            await _Upload(scope, receive, send).serve(self.app)
        else:
            await self.app(scope, receive, send)


class _Upload:
    """One request with a body."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._work = anyio.CancelScope()
        self._received = 0
        self._is_awaited = True

    async def serve(self, app: ASGIApp) -> None:
        with self._work:
            await app(self._scope, self._receive_part, self._send_part)

    async def _receive_part(self) -> Message:
        part = await self._receive()
        if part["type"] == "http.request":
            self._received += len(part.get("body", b""))
            self._is_awaited = self._is_awaited and part.get("more_body", False)
        elif self._is_awaited:
            self._is_awaited = False
            self._tell()
            self._work.cancel()
            await anyio.lowlevel.checkpoint()
        return part

    async def _send_part(self, message: Message) -> None:
        self._is_awaited = False  # an answer that has begun needs no more of the request
        await self._send(message)

    def _tell(self) -> None:
        connection: Any = self._scope.get("state", {}).get(CONNECTION)
        if connection is not None and connection.is_cut_off:
            return  # this server cut it off, and has logged that
        caller, client = find_caller_of(self._scope), self._scope.get("client")
        facts = {
            "address": (caller.address if caller else "") or (client[0] if client else ""),
            "org": caller.org if caller else None,
            "agent": caller.agent if caller else None,
            "bytes": self._received,
        }
        logger.info("upload aborted", extra=facts)


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
