"""A path prefix: the path under which a reverse proxy shows this server, such as that of `https://example.com/desk`.

Inside the server no address has it. It is taken off the requests on whose path a proxy has left it, and put before the
addresses of this server that answers have in their headers; templates put it before those in pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from refdesk import errors
from refdesk.server.oauth.configuration import MCP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Message, Scope

    from refdesk.core.operations import Toolset
    from refdesk.server.oauth.configuration import OAuth
    from refdesk.settings import Settings

OWN = frozenset(
    (".well-known", "assets", "console", "docs", "health", "mcp", "messages", "metrics", "openapi.json", "ready", "sse")
)
"""What addresses of the server begin with, besides those of operations and resources."""

_PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
"""Characters that browsers and proxies leave as they are (RFC 3986, section 2.3), and no dot segments."""

_ADDRESSES = {
    b"location": re.compile(rb"^()(/(?!/).*)$"),
    b"refresh": re.compile(rb"^(\d+; url=)(/(?!/).*)$"),
    b"set-cookie": re.compile(rb"^(.*; path=)(/[^;]*.*)$", re.IGNORECASE),
}
"""How the headers that have addresses of this server in them are divided before these."""

_SLASH = 307
"""The status with which the framework redirects to an address with, or without, a slash at its end: to a whole URL."""

_OWN_URL = re.compile(rb"^https?://[^/]+")


def read_prefix(settings: Settings, oauth: OAuth | None) -> str:
    """Return the path prefix: the path of the public URL, or of the resource without `/mcp`; empty if it has none.

    Raises:
        ConfigurationError: The path has a character, or a segment, that is not the same to everybody.
    """
    resource = oauth.resource if oauth is not None and oauth.resource.endswith(MCP) else ""
    parts = urlsplit(settings.public_url or resource.removesuffix(MCP))
    prefix = parts.path.rstrip("/")
    if not _PREFIX.fullmatch(prefix) or parts.query or parts.fragment:
        raise errors.ConfigurationError(
            "REFDESK_PUBLIC_URL may have a path of letters, digits and -._~, such as https://example.com/desk, and "
            "nothing after it."
        )
    return prefix


def check_prefix(prefix: str, toolsets: Iterable[Toolset]) -> None:
    """Check that no request without the prefix can be taken for one that has it.

    Raises:
        ConfigurationError: One of the server's own addresses begins like the prefix.
    """
    routes = (each.route for toolset in toolsets for each in (*toolset.operations, *toolset.resources))
    first = prefix.split("/")[1:2]
    if first and first[0] in {*OWN, *(route.path.split("/")[1] for route in routes)}:
        raise errors.ConfigurationError(
            f"The path of REFDESK_PUBLIC_URL must not begin with /{first[0]}, as addresses of the server's own do: let "
            "the proxy show it under another one, such as /desk."
        )


def strip_prefix(scope: Scope, prefix: str) -> Scope:
    """Return a request as if it had been sent to the address without the prefix."""
    path: str = scope["path"]
    if not prefix or not (path == prefix or path.startswith(f"{prefix}/")):
        return scope
    rest = path.removeprefix(prefix) or "/"
    return {**scope, "path": rest, "raw_path": quote(rest).encode()}


def add_prefix(message: Message, prefix: str) -> Message:
    """Return the beginning of an answer with the prefix before each address of this server in its headers."""
    if not prefix:
        return message
    is_slash = message["status"] == _SLASH
    headers = [(name, _prepend(name.lower(), value, prefix, is_slash=is_slash)) for name, value in message["headers"]]
    return {**message, "headers": headers}


def _prepend(name: bytes, value: bytes, prefix: str, *, is_slash: bool) -> bytes:
    if name not in _ADDRESSES:
        return value
    own = _OWN_URL.sub(b"", value) if is_slash else value
    found = _ADDRESSES[name].match(own)
    if found is None:
        return value
    # The cookies of the whole server, also where its address has no slash at its end.
    path = found[2][1:] if re.match(rb"/(?:;|$)", found[2]) and name == b"set-cookie" else found[2]
    return found[1] + prefix.encode() + path
