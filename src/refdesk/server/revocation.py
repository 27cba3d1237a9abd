"""Ends streams and sessions once their key or token is no longer valid.

The credential of a request is checked when it arrives, that of a stream only when it begins. So the credentials of all
open streams and sessions are checked again periodically, each once for everything that it opened.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from refdesk.server.limits.sessions import CREDENTIAL, Credential

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.server.limits.sessions import Session, Sessions

logger = logging.getLogger(__name__)

TOGETHER = 8
"""How many credentials are checked at a time."""


@dataclass(slots=True, eq=False)
class _Stream:
    """The answer to a request that carried a credential."""

    credential: Credential
    work: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_started: bool = False
    is_over: bool = False


@dataclass(slots=True)
class Revocation:
    """Keeps track of what is open, and by whose credential.

    Attributes:
        sessions: The open sessions.
        seconds: How often credentials are checked again.
        patience: How long a check may take, in seconds.
    """

    sessions: Sessions
    seconds: float
    patience: float = 5.0
    _streams: dict[_Stream, None] = field(default_factory=dict[_Stream, None])
    _latest: dict[str, Credential] = field(default_factory=dict[str, Credential])

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a stream that answers it ends with its credential."""
        credential = scope.get(CREDENTIAL)
        if credential is None:
            await app(scope, receive, send)
            return
        self._latest[credential.name] = credential
        stream = _Stream(credential)

        async def send_noted(message: Message) -> None:
            stream.is_started = True
            stream.is_over = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        self._streams[stream] = None
        try:
            with stream.work:
                await app(scope, receive, send_noted)
        finally:
            del self._streams[stream]
        if stream.work.cancelled_caught and not stream.is_over:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def run(self) -> None:
        """Check periodically, for as long as the server runs."""
        while True:
            await anyio.sleep(self.seconds)
            try:
                await self.check()
            except Exception:
                logger.exception("credentials not checked again")

    async def check(self) -> None:
        """Check the latest credential of each caller that has something open, and end what it opened if it is no longer
        valid."""
        opened = [each.credential for each in (*self.sessions, *self._streams) if each.credential is not None]
        self._latest = {each.name: self._latest.get(each.name, each) for each in opened}
        places = anyio.CapacityLimiter(TOGETHER)
        async with anyio.create_task_group() as group:
            for credential in self._latest.values():
                group.start_soon(self._look, credential, places)

    async def _look(self, credential: Credential, places: anyio.CapacityLimiter) -> None:
        opens = True
        async with places:
            # A store that does not answer revokes nothing, and does not hold up other checks.
            with anyio.move_on_after(self.patience):
                opens = await credential.opens()
        if not opens and self._latest.get(credential.name) is credential:
            await self._end(credential.name, has_sessions=credential.is_key)

    async def _end(self, name: str, *, has_sessions: bool) -> None:
        # An answer that has not begun is over soon, or ends at a later check once it has.
        streams = [each for each in self._streams if each.credential.name == name and each.is_started]
        sessions = self.sessions if has_sessions else ()
        ended = [each for each in sessions if _get_name(each) == name and self.sessions.is_named(each)]
        for session in ended:
            self.sessions.remove(session)
            await session.end()
        for stream in streams:
            stream.work.cancel()
        if ended or streams:
            logger.info("ended with their key", extra={"sessions": len(ended), "streams": len(streams)})


def _get_name(session: Session) -> str | None:
    return session.credential.name if session.credential is not None else None
