"""Insufficient scopes over streamable HTTP, as the MCP specification has it: 403 with the missing scopes.

It is said before the message reaches the protocol's own layer, which could only answer it with a result of status 200.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from starlette.requests import Request

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import answers
from refdesk.server.calls import Caller
from refdesk.server.credentials import get_caller
from refdesk.server.replies import reply, want_scopes

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.server.mcp import Adapter


@dataclass(frozen=True, slots=True)
class StepUp:
    """Passes on messages whose sender has the scopes that they need."""

    app: ASGIApp
    adapter: Adapter
    most_bytes: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["method"] == "POST":
            parts = await _read_ahead(receive, self.most_bytes)
            message = _parse(b"".join(part.get("body", b"") for part in parts))
            try:
                self._check(scope, message)
            except errors.PermissionDeniedError as error:
                await _refuse(message, error)(scope, receive, send)
                return
            receive = _replay(parts, receive)
        await self.app(scope, receive, send)

    def _check(self, scope: Scope, message: dict[str, Any]) -> None:
        params = message.get("params")
        known = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        caller = Caller(self.adapter.desk, get_caller(Request(scope)), "mcp")
        self.adapter.check(caller, message.get("method"), known)


async def _read_ahead(receive: Receive, most_bytes: int) -> list[Message]:
    """Return the body's parts, up to where it is too large to be a message; that is left for others to refuse."""
    parts: list[Message] = []
    length, has_more = 0, True
    while has_more and length <= most_bytes:
        part = await receive()
        parts.append(part)
        length += len(part.get("body", b""))
        has_more = part["type"] == "http.request" and part.get("more_body", False)
    return parts


def _replay(parts: list[Message], receive: Receive) -> Receive:
    waiting = iter(parts)

    async def receive_again() -> Message:
        part = next(waiting, None)
        return part if part is not None else await receive()

    return receive_again


def _parse(body: bytes) -> dict[str, Any]:
    """Return a message, or nothing where there is none."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _refuse(message: dict[str, Any], error: errors.PermissionDeniedError) -> Response:
    id = message.get("id")
    refusal = types.JSONRPCError(
        jsonrpc="2.0",
        id=id if isinstance(id, str | int) else None,
        error=types.ErrorData(
            code=types.INVALID_REQUEST, message=error.message, data=answers.error_to_json(error, NESTED)
        ),
    )
    missing = cast("list[str]", (error.details or {})["missingScopes"])
    body = refusal.model_dump(mode="json", by_alias=True)
    return reply(body, 403, {"www-authenticate": want_scopes(missing)})
