"""Subscriptions: clients are notified when what they would read at an address has changed, whoever changed it.

Writes of this process trigger a check; for writes of others the store's change mark is polled, for as long as anybody
is subscribed. Addresses are read on behalf of their subscribers, so nobody learns of what they may not read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, ResourceUpdated, event_to_notification

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import answers, protocol_errors

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from refdesk.app import Desk
    from refdesk.core.operations import Call
    from refdesk.server.calls import Caller

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""How soon a write of another process is noticed."""

NEWS = "watches://news"
"""An address that may change without any change to a document."""

NEWS_SECONDS = 0.5
"""How soon news found by another process is noticed."""

REST = 10.0
"""Checking for news takes at most one part in this many of a processor's time."""

PAUSE_SECONDS = 0.25
"""Least pause between two checks of what is watched, however much is written."""

MOST_WATCHED = 100
"""Most addresses watched by one session or stream; each may be read after any write."""

MOST_OF_ORG = 1_000
GONE = ""
WATCH = "watch"
"""The transport, in the log and the metrics, of reads that only check whether anything changed."""

_LISTENER = "refdesk.listener"


@dataclass(slots=True, eq=False)
class Listener:
    """One session or stream, and the addresses of whose changes it is notified.

    Attributes:
        callers: Who subscribed to each address, on whose behalf it is read.
        seen: The fingerprint of each address when it was last read; see `Subscriptions.read`.
    """

    org: str
    callers: dict[str, Caller] = field(default_factory=dict[str, "Caller"])
    seen: dict[str, str] = field(default_factory=dict[str, str])
    _changed: dict[str, None] = field(default_factory=dict[str, None])
    _ring: anyio.Event = field(default_factory=anyio.Event)
    _is_over: bool = False

    def note(self, uri: str) -> None:
        """Note that an address has changed; if noted twice before it is sent, it is sent once."""
        self._changed[uri] = None
        self._ring.set()

    def end(self) -> None:
        """Note that the server is to stop."""
        self._is_over = True
        self._ring.set()

    async def take(self) -> str | None:
        """Return the next address that has changed, as soon as there is one; `None` once the server is to stop."""
        while not self._changed:
            if self._is_over:
                return None
            self._ring = anyio.Event()
            await self._ring.wait()
        uri = next(iter(self._changed))
        del self._changed[uri]
        return uri


@dataclass(slots=True)
class Subscriptions:
    """The subscriptions at one desk.

    Attributes:
        identify: Returns who sent a message.
        read: Returns a fingerprint, a text that changes when what a caller reads at an address changes; raises what
            reading raises.
        most: Most addresses of one session or stream.
        is_looking: Whether changes are being checked for, because somebody is subscribed.
    """

    desk: Desk
    identify: Callable[[RequestContext], Caller]
    read: Callable[[Caller, str], Awaitable[str]]
    most: int = MOST_WATCHED
    _listeners: list[Listener] = field(default_factory=list[Listener])
    _poke: anyio.Event = field(default_factory=anyio.Event)
    _mark: str = ""
    is_looking: bool = False

    def extend(self, server: Server[Any]) -> None:
        """Make a server accept subscriptions, in both protocol eras."""
        server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self.subscribe)
        server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, self.unsubscribe)
        server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self.listen)
        self.desk.listeners.append(self._note_call)
        self.desk.news_listeners.append(self._note_news)
        self.desk.stop_listeners.append(self._end)

    def __len__(self) -> int:
        """Return how many addresses are watched."""
        return sum(len(listener.callers) for listener in self._listeners)

    async def subscribe(self, context: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Subscribe a session of the handshake era to an address.

        Raises:
            MCPError: The caller can read nothing there, or has too many subscriptions.
        """
        caller, uri, connection = self.identify(context), str(params.uri), _get_connection(context)
        listener = connection.state.get(_LISTENER) or Listener(caller.principal.org)
        try:
            await self._watch(listener, caller, uri)
        except errors.RefdeskError as error:
            raise _to_protocol(error, uri) from None
        if _LISTENER not in connection.state:
            connection.state[_LISTENER] = listener
            self._send_to(connection, listener, context)
        return types.EmptyResult()

    async def unsubscribe(self, context: RequestContext, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """End a session's subscription to an address, if it has one."""
        listener = _get_connection(context).state.get(_LISTENER)
        if listener is not None:
            listener.callers.pop(str(params.uri), None)
            listener.seen.pop(str(params.uri), None)
        return types.EmptyResult()

    async def listen(
        self, context: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a client of the later era of changes at addresses that it can read, until it closes the stream or the
        server is to stop.

        Lists never change while a server runs, so only subscriptions to addresses are honoured.

        Raises:
            MCPError: Too many addresses.
        """
        caller = self.identify(context)
        listener, id = Listener(caller.principal.org), context.request_id
        assert id is not None
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: id}
        self._listeners.append(listener)
        try:
            await self._watch_all(listener, caller, params.notifications.resource_subscriptions or ())
            honored = types.SubscriptionFilter(resource_subscriptions=[*listener.callers] or None)
            acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
            await context.session.send_notification(
                types.SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=id
            )
            while (uri := await listener.take()) is not None:
                changed = event_to_notification(ResourceUpdated(uri), meta)
                await context.session.send_notification(changed, related_request_id=id)
        finally:
            self._forget(listener)
        return types.SubscriptionsListenResult(_meta=meta)

    async def _watch_all(self, listener: Listener, caller: Caller, uris: Iterable[str]) -> None:
        for uri in dict.fromkeys(uris):
            try:
                await self._watch(listener, caller, uri)
            except errors.LimitExceededError as error:
                raise _to_protocol(error, uri) from None
            except errors.RefdeskError:
                continue  # it is left out of the acknowledgement

    async def _watch(self, listener: Listener, caller: Caller, uri: str) -> None:
        """Make a listener watch an address from now on.

        Raises:
            LimitExceededError: The listener, or its org, watches too many addresses.
            RefdeskError: The caller can read nothing there.
        """
        self._refuse_surplus(listener, uri)
        if not self.is_looking:
            self._mark = await self._read_mark()
        listener.seen[uri] = await self.read(caller, uri)
        listener.callers[uri] = caller
        if listener not in self._listeners:
            self._listeners.append(listener)
        group = self.desk.questions
        if group is not None and not self.is_looking:
            self.is_looking = True
            group.start_soon(self._poll)

    def _refuse_surplus(self, listener: Listener, uri: str) -> None:
        counts = Counter({each.org: 0 for each in self._listeners})
        for each in self._listeners:
            counts[each.org] += len(each.callers)
        is_new = uri not in listener.callers
        if is_new and (len(listener.callers) >= self.most or counts[listener.org] >= MOST_OF_ORG):
            raise errors.LimitExceededError(
                f"You watch as many addresses as one session ({self.most}) or org ({MOST_OF_ORG}) may; "
                "unsubscribe from some."
            )

    def _forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _send_to(self, connection: Connection, listener: Listener, context: RequestContext) -> None:
        """Send changes to a session until it ends."""
        session, scope = context.session, anyio.CancelScope()

        async def send() -> None:
            with scope:
                while (uri := await listener.take()) is not None:
                    await session.send_resource_updated(uri)

        def end() -> None:
            self._forget(listener)
            scope.cancel()

        connection.exit_stack.callback(end)
        if self.desk.questions is not None:
            self.desk.questions.start_soon(send)

    def _note_call(self, call: Call) -> None:
        if self.is_looking and call.transport != WATCH:
            self._poke.set()

    def _end(self) -> None:
        for listener in self._listeners:
            listener.end()

    def _note_news(self) -> None:
        self._poke.set()

    async def _poll(self) -> None:
        """Check for changes, for as long as anybody is subscribed."""
        took = 0.0
        try:
            while any(listener.callers for listener in self._listeners):
                awaits_news = any(NEWS in listener.callers for listener in self._listeners)
                with anyio.move_on_after(max(NEWS_SECONDS, took * REST) if awaits_news else POLL_SECONDS):
                    await self._poke.wait()
                self._poke = anyio.Event()
                begun = anyio.current_time()
                try:
                    if await self._look():
                        await anyio.sleep(PAUSE_SECONDS)
                    took = anyio.current_time() - begun
                except errors.RefdeskError as error:
                    logger.info("not looked for changes", extra={"reason": error.message})
                    await anyio.sleep(POLL_SECONDS)
        finally:
            self.is_looking = False

    async def _look(self) -> bool:
        """Tell listeners what changed since the last check; return whether anything in the store did."""
        mark = await self._read_mark()
        is_same = mark == self._mark
        for listener in list(self._listeners):
            for uri, caller in list(listener.callers.items()):
                if is_same and uri != NEWS:
                    continue
                now = await self._read_again(caller, uri)
                if uri in listener.callers and now != listener.seen[uri]:
                    listener.seen[uri] = now
                    listener.note(uri)
        self._mark = mark
        return not is_same

    async def _read_again(self, caller: Caller, uri: str) -> str:
        try:
            return await self.read(caller, uri)
        except (errors.NotFoundError, errors.PermissionDeniedError):
            return GONE

    async def _read_mark(self) -> str:
        base = await self.desk.get_base()
        marks = [await each.knowledge_base.store.get_change_mark() for each in base.each()]
        return " ".join([*marks, str(self.desk.noted)])


def _get_connection(context: RequestContext) -> Connection:
    """Return the session that a message belongs to; the SDK has no public access to it."""
    return context.session._connection  # pyright: ignore[reportPrivateUsage]


def _to_protocol(error: errors.RefdeskError, uri: str) -> MCPError:
    if isinstance(error, errors.NotFoundError):
        return MCPError(protocol_errors.RESOURCE_NOT_FOUND, error.message, {"uri": uri})
    is_limit = isinstance(error, errors.LimitExceededError)
    code = protocol_errors.LIMIT_EXCEEDED if is_limit else types.INVALID_PARAMS
    return MCPError(code, error.message, answers.error_to_json(error, NESTED))
