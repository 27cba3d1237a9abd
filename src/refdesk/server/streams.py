"""The retired SSE transport: one stream of events for each client, and an address to which the client sends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import QueryParams
from starlette.routing import Mount, Route

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import eras
from refdesk.server.credentials import get_holder
from refdesk.server.limits.sessions import CREDENTIAL, Session, Sessions
from refdesk.server.messages import Messages, get_wanted_version
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.settings import StdioEra

MESSAGES = "/messages/"
UNGUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The gate has already checked host and origin, for every route."""

_SESSION_ID = re.compile(rb"session_id=([0-9a-f]{32})")


def build_routes(
    server: Server[Any], era: StdioEra, message_bytes: int, sessions: Sessions, prefix: str
) -> list[Route | Mount]:
    """Return the routes of the transport, whose streams count as sessions; clients are sent below the path prefix."""
    transport = SseServerTransport(prefix + MESSAGES, UNGUARDED, max_request_body_size=message_bytes)
    posts = _Posts(transport.handle_post_message, sessions)
    messages = Messages(posts, message_bytes, sessions.find_version, _get_session)
    events = Route("/sse", _Events(server, transport, era, sessions), methods=["GET"])
    return [events, Mount(MESSAGES, messages)]


@dataclass(frozen=True, slots=True)
class _Events:
    """Opens a stream, and serves it until it ends."""

    server: Server[Any]
    transport: SseServerTransport
    era: StdioEra
    sessions: Sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cancel = anyio.CancelScope()

        async def end() -> None:
            cancel.cancel()

        session = Session(get_holder(scope), end, credential=scope.get(CREDENTIAL))
        try:
            await self.sessions.add(session)
        except errors.LimitExceededError as error:
            await reply_error(error, NESTED)(scope, receive, send)
            return
        try:
            with cancel:
                await self._serve(session, scope, receive, send)
        finally:
            self.sessions.remove(session)
        if cancel.cancelled_caught:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _serve(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            # The first event carries the id; later ones contain text that others wrote.
            if not self.sessions.is_named(session) and (found := _SESSION_ID.search(message.get("body", b""))):
                self.sessions.name(session, found[1].decode())
            await send(message)

        async with self.transport.connect_sse(scope, receive, send_named) as (read, write):
            await eras.run(self.server, read, write, self.era)


@dataclass(frozen=True, slots=True)
class _Posts:
    """Takes the messages that a client sends to its stream."""

    app: ASGIApp
    sessions: Sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = self.sessions.find(_get_session(scope) or "")
        if session is None:
            await self.app(scope, receive, send)
            return
        session.version = get_wanted_version(scope) or session.version
        with self.sessions.use(session):
            await self.app(scope, receive, send)


def _get_session(scope: Scope) -> str | None:
    return QueryParams(scope["query_string"]).get("session_id")
