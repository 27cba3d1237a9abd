"""Streamable HTTP: each answer is one JSON body, unless its request can only be served by a stream of events.

A JSON body costs two thirds of what a stream does. A stream is needed if something precedes the answer: progress that
the client asked for, or, before the revision of 2026-07-28, a question to the client. The SDK decides once for all
requests of a session; here it is decided for each request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.server.streamable_http import LAST_EVENT_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from refdesk.server.elicitation import IN_ONE_BODY
from refdesk.server.envelopes import refuse
from refdesk.server.limits.sessions import PROTOCOL_VERSION
from refdesk.server.messages import MESSAGE
from refdesk.server.replays import Replays
from refdesk.server.replies import reply
from refdesk.server.streams import UNGUARDED

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from mcp.server.lowlevel import Server
    from starlette.types import Receive, Scope, Send

EVENTS = "text/event-stream"
NOTHING_FOLLOWS = "Nothing follows that event, or it is not kept any more; send what was not answered again."
ID_IN_USE = "An unanswered request of this session has that `id`: give each request its own."

_in_one_body: ContextVar[bool] = ContextVar("in_one_body", default=False)
"""Whether the request being served is answered in one body; the session's other tasks do not inherit it."""


@dataclass(frozen=True, slots=True)
class Streamable:
    """The transport as an ASGI application.

    Attributes:
        sessions: Serves the sessions of the handshake era, and requests of the later era that need no stream.
        streams: Serves requests of the later era that need a stream.
    """

    sessions: StreamableHTTPSessionManager
    streams: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        version = Headers(scope=scope).get(PROTOCOL_VERSION)
        is_modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        manager = self.streams if is_modern and takes_events(scope) and wants_progress(scope) else self.sessions
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve until the block is left; then every session ends."""
        async with self.sessions.run(), self.streams.run():
            yield


def build_streamable(
    server: Server[Any], message_bytes: int, may_ask: Callable[[Mapping[str, Any]], bool]
) -> Streamable:
    """Return the transport of a server.

    Args:
        server: The SDK's server.
        message_bytes: Largest message, in bytes.
        may_ask: Returns whether serving a message may require a question to the client.
    """
    streams = StreamableHTTPSessionManager(
        server, security_settings=UNGUARDED, max_request_body_size=message_bytes, max_sessions=None
    )
    return Streamable(_Sessions(server, message_bytes, may_ask), streams)


def takes_events(scope: Scope) -> bool:
    """Return whether the client reads streams."""
    return EVENTS in Headers(scope=scope).get("accept", "")


def wants_progress(scope: Scope) -> bool:
    """Return whether a request asks for progress notifications."""
    return _get(_get(_get(scope, MESSAGE), "params"), "_meta").get("progressToken") is not None


def _get(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: object = holder.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


class _Sessions(StreamableHTTPSessionManager):
    """Opens sessions in which each request is answered in the form that it needs."""

    def __init__(self, server: Server[Any], message_bytes: int, may_ask: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__(
            server,
            json_response=True,
            security_settings=UNGUARDED,
            max_request_body_size=message_bytes,
            max_sessions=None,
        )
        self._may_ask = may_ask

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        opened = super()._admit_session(requestor)
        if opened is None or opened.mcp_session_id is None:
            return opened
        own = _Transport(
            opened.mcp_session_id,
            event_store=(replays := Replays()),
            security_settings=self.security_settings,
            idle_timeout=self.session_idle_timeout,
        )
        own.may_ask, own.replays, own.used_ids = self._may_ask, replays, set()
        self._server_instances[opened.mcp_session_id] = own
        return own


class _Transport(StreamableHTTPServerTransport):
    """One session, which decides for each request whether it is answered in one body."""

    may_ask: Callable[[Mapping[str, Any]], bool]
    replays: Replays
    used_ids: set[str]
    _is_client_asked = False

    @property
    def is_json_response_enabled(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the current request is answered in one body."""
        return _in_one_body.get()

    @is_json_response_enabled.setter
    def is_json_response_enabled(self, value: bool) -> None:
        del value  # the SDK's constructor sets it for all requests

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        resumed = Headers(scope=scope).get(LAST_EVENT_ID_HEADER)
        if resumed is not None and scope["method"] == "GET" and not self.replays.can_resume(resumed):
            error = refuse(None, types.INVALID_REQUEST, NOTHING_FOLLOWS).model_dump(mode="json", by_alias=True)
            await reply(error, 400)(scope, receive, send)
            return
        with self._use_id(scope) as is_own:
            if not is_own:
                error = refuse(_get(scope, MESSAGE).get("id"), types.INVALID_REQUEST, ID_IN_USE)
                await reply(error.model_dump(mode="json", by_alias=True), 400)(scope, receive, send)
                return
            self._note_capabilities(scope)
            scope[IN_ONE_BODY] = not self._needs_stream(scope)
            before = _in_one_body.set(scope[IN_ONE_BODY])
            try:
                await super().handle_request(scope, receive, send)
            finally:
                _in_one_body.reset(before)

    @contextmanager
    def _use_id(self, scope: Scope) -> Generator[bool]:
        """Reserve a request's id for the block; yield whether no other unanswered request of the session has it.

        The SDK keys requests by their ids as text, and would give one request the answer to the other.
        """
        message = _get(scope, MESSAGE)
        id = str(message["id"]) if "method" in message and "id" in message else None
        if id is None:
            yield True
        elif id in self.used_ids or id in self._request_streams:
            yield False
        else:
            self.used_ids.add(id)
            try:
                yield True
            finally:
                self.used_ids.discard(id)

    async def terminate(self) -> None:
        """End the session."""
        self.replays.close()
        await super().terminate()

    def _note_capabilities(self, scope: Scope) -> None:
        message = _get(scope, MESSAGE)
        if message.get("method") == "initialize":
            self._is_client_asked = "elicitation" in _get(_get(message, "params"), "capabilities")

    def _needs_stream(self, scope: Scope) -> bool:
        is_asking = self._is_client_asked and self.may_ask(_get(scope, MESSAGE))
        return takes_events(scope) and (is_asking or wants_progress(scope))
