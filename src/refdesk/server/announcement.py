"""What a server announces when a client connects: its name and icon, its capabilities, and how to use it."""

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
    """A server that announces the capabilities that fit the protocol era of the client.

    Attributes:
        announces_lists: Whether clients of the handshake era may be told that a list has changed. What a server lists
            stays the same while it runs, but a client that is served by several in turn may still have the list of an
            earlier one.
    """

    announces_lists = False

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:  # noqa: ANN401 - as the SDK has them
        """Return the server's capabilities."""
        found = super().get_capabilities(*arguments, **options)
        is_modern = options.get("protocol_version") in MODERN_PROTOCOL_VERSIONS
        for part in (found.tools, found.resources, found.prompts):
            if part is not None:
                part.list_changed = self.announces_lists and not is_modern
        return found


@dataclass(frozen=True, slots=True)
class DeclareExtensions:
    """Names the extensions in the handshake too; the SDK announces them in the later era only.

    Attributes:
        later: The extensions that exist only in the later era.
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
    """Gives each client that connects today's instructions, for the tools that it may use.

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
    """Return the desk's icon. It is shown in lists that people choose from, not in those that models read."""
    mark = (Path(__file__).parent / "assets" / "mark.svg").read_bytes()
    address = "data:image/svg+xml;base64," + b64encode(mark).decode()
    return [types.Icon(src=address, mime_type="image/svg+xml", sizes=["any"])]
