"""What the SDK would refuse in a validator's words, or not at all, said in ours: for every method and transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

MOST_PROBLEMS = 3


async def explain(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a message, or say what is wrong with its parameters.

    Raises:
        MCPError: They do not fit the method, or ask for a page that there is not.
    """
    if ctx.params and ctx.params.get("cursor") is not None and ctx.method.endswith("/list"):
        raise MCPError(types.INVALID_PARAMS, "There is no such page: the first one holds everything. Omit `cursor`.")
    try:
        return await call_next(ctx)
    except ValidationError as error:
        words = _explain(error)
        raise MCPError(types.INVALID_PARAMS, f"These are no parameters of {ctx.method[:80]}: {words}") from None


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
