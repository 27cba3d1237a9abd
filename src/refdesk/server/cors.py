"""Cross-origin resource sharing: what a page of an allowed origin may send to this server and read from it.

A browser asks before it sends JSON or a key to another origin (the preflight), and shows a page only those answers that
allow its origin. Which origins are allowed is decided by the gate, for every request; see `REFDESK_ALLOWED_ORIGINS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Collection

METHODS = ("GET", "POST", "DELETE")

SENT = (
    *("Authorization", "Content-Type", "Last-Event-ID", "Refdesk-Org"),
    *("Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id"),
    *("If-None-Match", "Traceparent", "X-Salesforce-Token"),
)
"""Headers that clients send: credentials, those of MCP's streamable HTTP in both eras, and whatever else is read."""

READ = ("ETag", "Mcp-Session-Id", "Refdesk-Warning", "Retry-After", "WWW-Authenticate")
"""Response headers that a client acts on, and that a page could not see otherwise."""


def allow_pages(origins: Collection[str]) -> list[Middleware]:
    """Return the middleware that lets pages of these origins call; it goes in front of everything that may refuse a
    request.

    No cookies are involved: callers are identified by the credential in each request. A page on a public origin may
    reach a server on a private network, because the operator named that origin.

    Args:
        origins: Web origins, in lower case as browsers send them.
    """
    if not origins:
        return []
    allowed = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=METHODS,
        allow_headers=SENT,
        expose_headers=READ,
        allow_private_network=True,
    )
    return [allowed]
