"""The ASGI gate in front of all HTTP: checks hosts, origins and sizes.

A browser that is tricked into calling a server on its own machine (DNS rebinding) names a host or origin other than
this server's; such requests end here. So do requests that two parsers would split differently.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import anyio.lowlevel
from starlette.datastructures import Headers, MutableHeaders

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import strict_json
from refdesk.server.prefix import add_prefix, strip_prefix
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.core.operations import ErrorFormat

_WHOLE_URL = re.compile(r"https?://([^/]*)(/.*)?", re.IGNORECASE | re.DOTALL)
MOST_HEADER_BYTES = 32 * 1024
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    # Not "no-referrer": browsers send the origin "null" with forms from a page that sends no referrer.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Gate:
    """Passes on requests that name this server and that come from its own pages, those of allowed origins, or no page
    at all.

    Attributes:
        hosts: Host names, beside loopback, that a request may name.
        takes_addresses: Whether a request may name the server by any IP address. A web page cannot make an address
            point to this server, as it can with a host name of its own.
        origins: Web origins, beside this server's own, whose pages may call.
        most_bytes: The largest requests, in bytes, at addresses where they may be larger than elsewhere.
        get_error_format: Returns the form of errors at an address.
        find_scheme: Returns the scheme that a client uses, `http` or `https`: redirects and cookies follow it.
        prefix: The path under which a proxy shows this server.
    """

    app: ASGIApp
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    takes_addresses: bool = False
    most_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    get_error_format: Callable[[Scope], ErrorFormat] = lambda _: NESTED
    find_scheme: Callable[[Scope], str] = lambda scope: scope["scheme"]
    prefix: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = _to_origin_form(scope)
        scope = {**strip_prefix(scope, self.prefix), "scheme": self.find_scheme(scope)}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = add_prefix(message, self.prefix)
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = _HeadOnly(self.app) if scope["method"] == "HEAD" else self.app
        refusal = self._refuse(Headers(scope=scope), self.most_bytes.get(scope["path"], strict_json.MAX_BYTES))
        if refusal is None:
            await app(scope, receive, send_guarded)
        else:
            status, error = refusal
            reply = reply_error(error, self.get_error_format(scope), status)
            if _has_two_ends(Headers(scope=scope)):
                # Another parser may take what follows for a second request.
                reply.headers["connection"] = "close"
            await reply(scope, receive, send_guarded)

    def _refuse(self, headers: Headers, most_bytes: int) -> tuple[int, errors.CallerError] | None:
        if sum(len(name) + len(value) for name, value in headers.raw) > MOST_HEADER_BYTES:
            return 431, errors.TooLargeError(f"The headers are larger than {MOST_HEADER_BYTES} bytes; send fewer.")
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return 400, errors.InvalidInputError("Send exactly one Host header.")
        if _has_two_ends(headers):
            return 400, errors.InvalidInputError("Send Content-Length or Transfer-Encoding, not both.")
        if not self._is_ours(hosts[0]):
            return 421, errors.InvalidInputError(
                "This server does not answer to that host name. Call it by one it knows, or let whoever runs it name "
                "it: REFDESK_ALLOWED_HOSTS=that-name, several separated by commas."
            )
        origin = headers.get("origin")
        if origin is not None and not self._may_call(origin, hosts[0]):
            return 403, errors.PermissionDeniedError(
                "Pages of that origin may not call this server; whoever runs it can add it to REFDESK_ALLOWED_ORIGINS."
            )
        if _declared_length(headers) > most_bytes:
            return 413, strict_json.too_large(most_bytes)
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":") if not host.endswith("]") else (host.lower(), "", "")
        if not name:
            name, port = port, ""
        return (not port or port.isdecimal()) and (
            name in LOOPBACK or name in self.hosts or (self.takes_addresses and _is_address(name))
        )

    def _may_call(self, origin: str, host: str) -> bool:
        return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}") or origin.lower() in self.origins


@dataclass(frozen=True, slots=True)
class _HeadOnly:
    """Answers with the head alone, and ends what would go on to the body: a stream never would end."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with anyio.CancelScope() as work:

            async def send_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body"})
                    work.cancel()
                await anyio.lowlevel.checkpoint()

            await self.app(scope, receive, send_head)


def _to_origin_form(scope: Scope) -> Scope:
    """Return a request that names its target by a whole URL as one that names it by path and Host header (RFC 9112,
    section 3.2.2): the host of the URL counts."""
    found = _WHOLE_URL.fullmatch(scope["path"])
    if found is None:
        return scope
    authority, path = found[1].encode("latin-1", "replace"), found[2] or "/"
    headers = [(name, authority if name == b"host" else value) for name, value in scope["headers"]]
    return {**scope, "path": path, "raw_path": quote(path).encode(), "headers": headers}


def _declared_length(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() and len(length) < 20 else sys.maxsize


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return False


def _has_two_ends(headers: Headers) -> bool:
    return "transfer-encoding" in headers and "content-length" in headers
