"""Insufficient scopes over streamable HTTP, as the MCP specification defines it: 403 with the missing scopes.

The refusal comes before the message reaches the protocol layer, which could only answer with a result of status 200.
Clients of the earlier era ask for the scopes that it names and no others, as that era's specification has it, so there
it also names those that the caller has; else they would lose them. Clients of the later era add them themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import answers
from refdesk.server.calls import Caller
from refdesk.server.credentials import get_caller
from refdesk.server.limits.sessions import PROTOCOL_VERSION
from refdesk.server.messages import MESSAGE
from refdesk.server.replies import reply, want_scopes

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from refdesk.server.mcp import Adapter


@dataclass(frozen=True, slots=True)
class StepUp:
    """Passes on messages whose sender has the scopes that they need."""

    app: ASGIApp
    adapter: Adapter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        message = cast("dict[str, Any]", scope.get(MESSAGE) or {})
        caller = Caller(self.adapter.desk, get_caller(Request(scope)), "mcp")
        method, params = message.get("method"), message.get("params")
        known = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        try:
            self.adapter.check(caller, method, known)
        except errors.PermissionDeniedError as error:
            if _list_missing(error):
                await caller.record_refusal(self.adapter.name_target(method, known), error)
                is_modern = Headers(scope=scope).get(PROTOCOL_VERSION) in MODERN_PROTOCOL_VERSIONS
                kept = frozenset[str]() if is_modern else caller.principal.scopes
                await _refuse(message, error, kept)(scope, receive, send)
                return
            # No scope would help: the call itself gives the reason.
        await self.app(scope, receive, send)


def _refuse(message: dict[str, Any], error: errors.PermissionDeniedError, kept: frozenset[str]) -> Response:
    id = message.get("id")
    refusal = types.JSONRPCError(
        jsonrpc="2.0",
        id=id,
        error=types.ErrorData(
            code=types.INVALID_REQUEST, message=error.message, data=answers.error_to_json(error, NESTED)
        ),
    )
    body = refusal.model_dump(mode="json", by_alias=True)
    return reply(body, 403, {"www-authenticate": want_scopes(sorted(kept.union(_list_missing(error))))})


def _list_missing(error: errors.PermissionDeniedError) -> list[str]:
    return cast("list[str]", (error.details or {}).get("missingScopes", []))
