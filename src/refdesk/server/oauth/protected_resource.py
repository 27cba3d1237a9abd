"""The protected resource metadata (RFC 9728), from which clients learn how to sign in.

Every address in it comes from the settings, never from a request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.routing import Route

from refdesk.discovery import ADMIN_SCOPE
from refdesk.server.oauth.configuration import MCP
from refdesk.server.replies import reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.core.operations import Toolset
    from refdesk.server.oauth.configuration import OAuth

WELL_KNOWN = "/.well-known/oauth-protected-resource"
CHALLENGE = "www-authenticate"

_SCOPE = re.compile(r'scope="([^"]*)"')


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """This server as seen by clients that can sign in.

    Attributes:
        scopes: The scopes that clients should request.
    """

    oauth: OAuth
    scopes: tuple[str, ...]

    @property
    def metadata_url(self) -> str:
        """The URL of the metadata, as challenges name it (RFC 9728, section 5.1).

        Below the server's own path prefix, if it has one: a proxy that passes on what is below that, and nothing else,
        need not know of it. Clients that no challenge told look before the whole path (section 3.1).
        """
        if self.oauth.resource.endswith(MCP):
            return f"{self.oauth.resource.removesuffix(MCP)}{WELL_KNOWN}{MCP}"
        parts = urlsplit(self.oauth.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    def to_json(self) -> dict[str, Any]:
        """Return the metadata."""
        return {
            "resource": self.oauth.resource,
            "authorization_servers": [self.oauth.issuer],
            "scopes_supported": self.to_asked(self.scopes),
            "bearer_methods_supported": ["header"],
            "resource_name": "refdesk",
        }

    def to_asked(self, scopes: Iterable[str]) -> list[str]:
        """Return scopes in the form in which clients request them, followed by the issuer's own scopes."""
        return [*(self.oauth.asked_prefix + scope for scope in scopes), *self.oauth.more_scopes]

    def build_routes(self) -> list[Route]:
        """Return the routes of the metadata: below it the resource's own path, that of the MCP endpoint, or none."""

        async def describe(_: Request) -> Response:
            return reply(self.to_json())

        suffixes = dict.fromkeys((urlsplit(self.oauth.resource).path.rstrip("/"), MCP, ""))
        return [Route(WELL_KNOWN + suffix, describe, methods=["GET"]) for suffix in suffixes]

    def complete(self, challenge: str, status: int) -> str:
        """Return a challenge that also says where the metadata is and, if nobody signed in, which scopes to request."""
        asked = _SCOPE.sub(lambda found: f'scope="{" ".join(self.to_asked(found[1].split()))}"', challenge)
        scope = f', scope="{" ".join(self.to_asked(self.scopes))}"' if status == 401 and self.scopes else ""
        return f'{asked}, resource_metadata="{self.metadata_url}"{scope}'


@dataclass(frozen=True, slots=True)
class Invite:
    """Completes the challenge in every response that has one."""

    app: ASGIApp
    resource: ProtectedResource

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (challenge := headers.get(CHALLENGE)) is not None:
                    headers[CHALLENGE] = self.resource.complete(challenge, message["status"])
            await send(message)

        await self.app(scope, receive, send_completed if scope["type"] == "http" else send)


def list_scopes(toolsets: Iterable[Toolset]) -> tuple[str, ...]:
    """Return the scopes that operations need, sorted, without `admin`, which is only ever granted on purpose.

    All of them are advertised at once: a client is not even shown tools that its scopes do not reach, so it would never
    find out what else to request. The issuer decides which of them a caller gets.
    """
    return tuple(sorted({scope for toolset in toolsets for scope in toolset.scopes} - {ADMIN_SCOPE}))
