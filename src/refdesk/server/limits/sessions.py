"""Who holds which protocol session, and which one ends when there are too many.

Many clients never end a session. So when a caller, or its org, opens more than its share, the longest idle session of
that caller or org ends; when there are too many in all, the longest idle one of the org that has most. A session in
which a message is being answered stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server.limits.connections import AGENT_SHARE, ORG_SHARE
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refdesk.server.limits.connections import Holder

End: TypeAlias = Callable[[], Awaitable[None]]
CREDENTIAL = "refdesk.credential"
"""The key in a request's scope for the credential that it carried."""

SESSION_ID = "mcp-session-id"
PROTOCOL_VERSION = "mcp-protocol-version"


@dataclass(frozen=True, slots=True)
class Credential:
    """A key or token that a request carried.

    Attributes:
        name: Identifies the key, or the caller whose token it is: a newer token of the same caller stands for an
            earlier one.
        opens: Returns whether it is still valid; true if that cannot be determined at the moment.
        is_key: Whether it is an API key. Sessions end with their key; but tokens expire every few minutes, and a
            session opened with one goes on with the next.
    """

    name: str
    opens: Callable[[], Awaitable[bool]]
    is_key: bool = True


@dataclass(slots=True, eq=False)
class Session:
    """One session, of either transport.

    Attributes:
        end: Ends it.
        version: The protocol revision that its client asked for.
        answering: How many of its messages are being answered, including the one that opens it.
        credential: What the request that opened it carried.
    """

    holder: Holder
    end: End
    version: str | None = None
    answering: int = 0
    credential: Credential | None = None


@dataclass(slots=True)
class Sessions:
    """The open sessions of a server, the longest idle first."""

    most: int
    _open: dict[Session, None] = field(default_factory=dict[Session, None])
    _by_id: dict[str, Session] = field(default_factory=dict[str, Session])

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Session]:
        return iter([*self._open])

    async def add(self, session: Session) -> None:
        """Count a new session, and end others if there are too many.

        Raises:
            LimitExceededError: A message is being answered in every session that could end.
        """
        while (surplus := self._list_surplus(session.holder)) is not None:
            idlest = next((each for each in surplus if not each.answering), None)
            if idlest is None:
                raise errors.LimitExceededError(
                    "You have as many sessions open as one caller may, all of them busy; end some (DELETE) or wait.",
                    retry_after_seconds=1.0,
                )
            self.remove(idlest)
            await idlest.end()
        self._open[session] = None

    def name(self, session: Session, id: str) -> None:
        """Note the id of a session, which it gets when it is open."""
        self._by_id.setdefault(id, session)

    def is_named(self, session: Session) -> bool:
        """Return whether a session's id is known."""
        return session in self._by_id.values()

    def find(self, id: str) -> Session | None:
        """Return the session that has an id."""
        return self._by_id.get(id)

    def find_version(self, id: str) -> str | None:
        """Return the protocol revision of a session; `None` if it is not known."""
        session = self._by_id.get(id)
        return session.version if session is not None else None

    def remove(self, session: Session) -> None:
        """Forget a session, if it is known."""
        self._open.pop(session, None)
        for id in [id for id, each in self._by_id.items() if each is session]:
            del self._by_id[id]

    @contextmanager
    def use(self, session: Session) -> Generator[None]:
        """Keep a session from being ended while one of its messages is being answered."""
        session.answering += 1
        try:
            yield
        finally:
            session.answering -= 1
            if session in self._open:
                del self._open[session]
                self._open[session] = None

    def _list_surplus(self, holder: Holder) -> list[Session] | None:
        """Return the sessions of which one must end before this caller opens another; `None` if there is room."""
        own = [each for each in self._open if each.holder == holder]
        if len(own) >= max(1, int(self.most * AGENT_SHARE)):
            return own
        org = [each for each in self._open if each.holder[0] == holder[0]]
        if len(org) >= max(1, int(self.most * ORG_SHARE)):
            return org
        if len(self._open) < self.most:
            return None
        [(largest, _)] = Counter(each.holder[0] for each in self._open).most_common(1)
        return [each for each in self._open if each.holder[0] == largest]


@dataclass(frozen=True, slots=True)
class SessionLimit:
    """Passes on the requests of streamable HTTP, and counts its sessions.

    Attributes:
        app: Gives sessions their ids and answers in them.
        identify: Returns who sent a request.
        read_version: Returns the protocol revision that a request asks for when it opens a session; `None` if it does
            not ask.
    """

    app: ASGIApp
    sessions: Sessions
    identify: Callable[[Scope], Holder]
    read_version: Callable[[Scope], str | None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        It is refused if it would open a session beyond the limit and every session that could end is busy.
        """
        headers = Headers(scope=scope)
        id = headers.get(SESSION_ID)
        version = headers.get(PROTOCOL_VERSION)
        if id is not None:
            await self._go_on(id, scope, receive, send)
        elif scope["method"] == "POST" and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._open(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _go_on(self, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        session = self.sessions.find(id)
        if session is None or scope["method"] != "POST":
            # A stream that only listens does not count as use: the session may still be the longest idle one.
            await self.app(scope, receive, _watch(send, lambda start: self._forget(session, scope, start)))
            return
        with self.sessions.use(session):
            await self.app(scope, receive, _watch(send, lambda start: self._forget(session, scope, start)))

    def _forget(self, session: Session | None, scope: Scope, start: Message) -> None:
        """Note that a session has ended: its client ended it, or it was idle for too long."""
        is_over = start["status"] == 404 or (scope["method"] == "DELETE" and start["status"] < 300)
        if is_over and session is not None and session.holder == self.identify(scope):
            self.sessions.remove(session)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        ids: list[str] = []

        async def end() -> None:
            for id in ids:
                await self._end(id, scope)

        session = Session(self.identify(scope), end, self.read_version(scope), credential=scope.get(CREDENTIAL))

        def note(start: Message) -> None:
            id = Headers(raw=list(start.get("headers", ()))).get(SESSION_ID)
            if start["status"] < 300 and id is not None:
                ids.append(id)
                self.sessions.name(session, id)

        try:
            await self.sessions.add(session)
        except errors.LimitExceededError as error:
            await reply_error(error, NESTED)(scope, receive, send)
            return
        try:
            with self.sessions.use(session):
                await self.app(scope, receive, _watch(send, note))
        finally:
            if not ids:
                self.sessions.remove(session)

    async def _end(self, id: str, opening: Scope) -> None:
        """End a session as its own client would: by a DELETE with the key that opened it."""
        kept = ("type", "asgi", "http_version", "scheme", "path", "raw_path", "root_path", "server", "client", "user")
        scope: dict[str, Any] = {name: opening[name] for name in kept if name in opening}
        headers = [(SESSION_ID.encode(), id.encode()), (b"host", b"localhost")]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            return

        await self.app(scope | {"method": "DELETE", "query_string": b"", "headers": headers}, receive, send)


def _watch(send: Send, note: Callable[[Message], None]) -> Send:
    """Return a `send` that passes the start of each answer to `note`."""

    async def send_watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            note(message)
        await send(message)

    return send_watched
