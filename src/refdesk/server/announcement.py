"""What a server says of itself when a client connects: its name and picture, what it can do, and how to use it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]


class LabelledServer(Server[Any]):
    """A server that says of itself what is so in the era of whoever asks.

    Attributes:
        announces_lists: Whether clients of the handshake era may hear that a list has changed: what is listed stays the
            same while a server runs, but who is served by one after the other may have been answered by the first.
    """

    announces_lists = False

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:  # noqa: ANN401 - as the SDK has them
        """Return what the server can do."""
        found = super().get_capabilities(*arguments, **options)
        is_modern = options.get("protocol_version") in MODERN_PROTOCOL_VERSIONS
        for part in (found.tools, found.resources, found.prompts):
            if part is not None:
                part.list_changed = self.announces_lists and not is_modern
        return found


@dataclass(frozen=True, slots=True)
class DeclareExtensions:
    """Lets the handshake name the extensions too, which the SDK keeps to the later era.

    Attributes:
        later: Those that are of the later era alone.
    """

    server: Server[Any]
    later: frozenset[str]

    async def __call__(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Answer a message."""
        result = await call_next(ctx)
        served = {name: each for name, each in self.server.extensions.items() if name not in self.later}
        if ctx.method == "initialize" and isinstance(result, dict) and served:
            result["capabilities"]["extensions"] = served
        return result


@dataclass(frozen=True, slots=True)
class Instruct:
    """Gives whoever connects the instructions of the day, for what it may use.

    Attributes:
        tell: Returns them.
    """

    tell: Callable[[RequestContext], str]

    async def __call__(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Answer a message."""
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            result["instructions"] = self.tell(ctx)
        return result


@cache
def get_icons() -> list[types.Icon]:
    """Return the picture of the desk. Lists that people choose from have it; those that models read have not."""
    mark = (Path(__file__).parent / "assets" / "mark.svg").read_bytes()
    address = "data:image/svg+xml;base64," + b64encode(mark).decode()
    return [types.Icon(src=address, mime_type="image/svg+xml", sizes=["any"])]
