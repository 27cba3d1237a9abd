"""Checks incoming JSON-RPC messages: invalid ones get the error that the protocol prescribes, with a text that says
what to do.

The SDK answers some of them with the words of a validator, others with an internal error, and does not support batches,
which the revisions before 2025-06-18 have. So messages are checked here first, on either HTTP transport.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from refdesk.server import envelopes, strict_json
from refdesk.server.envelopes import (
    NO_JSON,
    NOTHING,
    find_batch_problem,
    find_problem,
    parse,
    refuse,
)
from refdesk.server.limits.rates import REFUSE_NEXT
from refdesk.server.limits.sessions import PROTOCOL_VERSION, SESSION_ID
from refdesk.server.protocol_errors import LIMITED
from refdesk.server.replies import reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNSUPPORTED_VERSION = -32022
JSON = "application/json"
NO_TYPE = f"Send messages as JSON, with the header Content-Type: {JSON}."
MESSAGE = "refdesk.message"
"""The key in a request's scope for the message that it carries."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Passes on requests that carry a valid message, and splits batches.

    Attributes:
        find_version: Returns the revision that the session with this id speaks; `None` if there is no such session.
        session_of: Returns the id of the session that a request names.
    """

    app: ASGIApp
    most_bytes: int
    find_version: Callable[[str], str | None]
    session_of: Callable[[Scope], str | None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        parts = await _read_ahead(receive, self.most_bytes)
        body = b"".join(part.get("body", b"") for part in parts)
        if parts[-1]["type"] != "http.request" or len(body) > self.most_bytes:
            await self.app(scope, _replay(parts, receive), send)  # gone or too large: later layers say so
            return
        if not _is_json(scope):
            await _respond(refuse(None, types.INVALID_REQUEST, NO_TYPE), 415)(scope, receive, send)
            return
        # The SDK compares the media type case-sensitively, although it may be written in any case.
        MutableHeaders(scope=scope)["content-type"] = JSON
        value = parse(body)
        if value is NOTHING:
            await _respond(refuse(None, types.PARSE_ERROR, NO_JSON), 400)(scope, receive, send)
            return
        if isinstance(value, list):
            answer = await self._serve_batch(scope, receive, cast("list[object]", value))
        else:
            answer = self._refuse(scope, value)
        if answer is None:
            scope[MESSAGE] = value
            await self.app(scope, _replay(parts, receive), send)
        else:
            await answer(scope, receive, send)

    def _refuse(self, scope: Scope, value: object) -> Response | None:
        problem = find_problem(value)
        if problem is not None:
            return _respond(problem, 400)
        version = Headers(scope=scope).get(PROTOCOL_VERSION)
        if version is None or version in KNOWN_PROTOCOL_VERSIONS:
            return None
        id = cast("dict[str, Any]", value).get("id")
        words = f"Unsupported protocol version; this server speaks {', '.join(KNOWN_PROTOCOL_VERSIONS)}."
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version[:80]}
        return _respond(refuse(id, UNSUPPORTED_VERSION, words, data), 400)

    async def _serve_batch(self, scope: Scope, receive: Receive, value: Sequence[object]) -> Response:
        session = self.session_of(scope)
        version = Headers(scope=scope).get(PROTOCOL_VERSION) or (self.find_version(session) if session else None)
        problem = find_batch_problem(value, version)
        if problem is not None:
            return _respond(problem, 400)
        refuse_next, answers = scope.get(REFUSE_NEXT), list[dict[str, Any]]()
        for place, each in enumerate(value):
            # The request has been counted as its first message; once the limit is reached, all that follow are refused.
            if place and refuse_next is not None and LIMITED not in scope:
                refusal = await refuse_next()
                if refusal is not None:
                    scope[LIMITED] = refusal
            answers += await self._serve_one(scope, receive, each)
        return reply(answers) if answers else Response(status_code=202)

    async def _serve_one(self, scope: Scope, receive: Receive, value: object) -> list[dict[str, Any]]:
        """Return the answer to one message of a batch: at most one message."""
        problem = find_problem(value)
        if problem is not None:
            return [problem.model_dump(mode="json", by_alias=True)]
        body, sent = strict_json.dump(value).encode(), list[bytes]()
        headers = MutableHeaders(raw=[each for each in scope["headers"] if each[0] != b"transfer-encoding"])
        headers["content-length"] = str(len(body))
        headers["accept"] = JSON  # a batch's answer has no place for a stream, or for messages before the answer

        async def send(message: Message) -> None:
            sent.append(message.get("body", b""))

        part: Message = {"type": "http.request", "body": body, "more_body": False}
        own = {**scope, "headers": headers.raw, MESSAGE: value}
        await self.app(own, _replay([part], receive), send)
        return _read_answers(b"".join(sent))


def get_header_session(scope: Scope) -> str | None:
    """Return the id of the session that a request of streamable HTTP names."""
    return Headers(scope=scope).get(SESSION_ID)


def get_wanted_version(scope: Scope) -> str | None:
    """Return the revision that a request asks for when it opens a session."""
    return envelopes.get_wanted_version(cast("dict[str, Any]", scope.get(MESSAGE) or {}))


def _respond(error: types.JSONRPCError, status: int) -> Response:
    return reply(error.model_dump(mode="json", by_alias=True), status)


def _is_json(scope: Scope) -> bool:
    return Headers(scope=scope).get("content-type", "").split(";")[0].strip().lower() == JSON


def _read_answers(body: bytes) -> list[dict[str, Any]]:
    """Return the answer in a body, if it holds one."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return []
    return [cast("dict[str, Any]", value)] if isinstance(value, dict) and value.keys() & {"result", "error"} else []


async def _read_ahead(receive: Receive, most_bytes: int) -> list[Message]:
    """Return the body's parts, up to the size limit of a message; a larger body is left for later layers to refuse."""
    parts: list[Message] = []
    length, has_more = 0, True
    while has_more and length <= most_bytes:
        part = await receive()
        parts.append(part)
        length += len(part.get("body", b""))
        has_more = part["type"] == "http.request" and part.get("more_body", False)
    return parts


def _replay(parts: list[Message], receive: Receive) -> Receive:
    waiting = iter(parts)

    async def receive_again() -> Message:
        part = next(waiting, None)
        return part if part is not None else await receive()

    return receive_again
