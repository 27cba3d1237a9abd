"""Errors of our own, for every method and transport, where the SDK would use a validator's words or not refuse at
all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from refdesk.core.operations import NESTED
from refdesk.server import answers

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from refdesk import errors

MOST_PROBLEMS = 3
_TOO_EARLY = (types.INVALID_PARAMS, "Invalid request parameters", "")
"""The code, the words and the data of the SDK's refusal of a request that comes before the handshake."""

LIMIT_EXCEEDED = -32000
"""A code in the range that JSON-RPC reserves for a server's own errors."""

RESOURCE_NOT_FOUND = -32002
"""The code for "no such resource" in the handshake era; later clients get -32602."""

LIMITED = "refdesk.limited"
"""The key in a request's scope for the error that refuses its message."""


async def explain(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a message, or say what is wrong with its parameters.

    Raises:
        MCPError: They do not fit the method, ask for a page that there is not, or come before the handshake.
    """
    if (refusal := _find_refusal(ctx)) is not None:
        return _refuse(ctx, refusal)
    if ctx.params and ctx.params.get("cursor") is not None and ctx.method.endswith("/list"):
        raise MCPError(types.INVALID_PARAMS, "There is no such page: the first one holds everything. Omit `cursor`.")
    try:
        return await call_next(ctx)
    except ValidationError as error:
        words = _explain(error)
        raise MCPError(types.INVALID_PARAMS, f"These are no parameters of {ctx.method[:80]}: {words}") from None
    except MCPError as error:
        if (error.code, error.message, error.data) != _TOO_EARLY:
            raise
        raise MCPError(error.code, f"Send initialize first, then {ctx.method[:80]}.") from None


def _find_refusal(ctx: ServerRequestContext[Any, Any]) -> errors.LimitExceededError | None:
    """Return why the message is refused, if its sender sends too many."""
    scope = getattr(ctx.request, "scope", None)
    return scope.get(LIMITED) if isinstance(scope, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _refuse(ctx: ServerRequestContext[Any, Any], refusal: errors.LimitExceededError) -> HandlerResult:
    body = answers.error_to_json(refusal, NESTED)
    if ctx.method != "tools/call":
        raise MCPError(LIMIT_EXCEEDED, refusal.message, body)
    # The model reads results; clients may keep protocol errors from it.
    result: dict[str, Any] = {"content": [{"type": "text", "text": answers.to_text(body)}], "isError": True}
    return result if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else result | {"resultType": "complete"}


def _explain(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    sentences = dict.fromkeys(_describe(problem["type"], _path(problem["loc"])) for problem in found)
    return " ".join([*sentences][:MOST_PROBLEMS])


def _describe(kind: str, path: str) -> str:
    if kind == "missing":
        return f"`{path}` is required."
    return f"`{path}` is of the wrong type or form." if path else "they must be one object."


def _path(location: tuple[int | str, ...]) -> str:
    inner = location[1:] if location[:1] == ("params",) and len(location) > 1 else location
    return ".".join(str(part) for part in inner)[:80]
