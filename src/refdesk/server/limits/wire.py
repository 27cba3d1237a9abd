"""HTTP on the wire, with a deadline for everything that a client may leave unfinished.

uvicorn waits for ever for the rest of a request, and for a client that does not read its answer. Here headers, bodies
and unread answers have deadlines, and connections are counted. Event streams need no exception: their request is
complete, and their answer makes progress as long as somebody reads it.

When the server is to stop, streams that only tell of changes end at once and as complete answers, so that their clients
need not take it for a fault; other requests are given some time.

A client that has sent its request and says that it will send no more still gets its answer, unless whoever answers asks
whether it is there: nobody can tell it from one that has gone, and that is who streams and cancelled calls end for.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import h11
import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import answers
from refdesk.server.limits.connections import CONNECTION, Connections
from refdesk.server.limits.gathering import GatheringTransport
from refdesk.server.limits.proxies import read_proxies

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.config import Config
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from refdesk.server.limits.connections import Holder
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)

SPARE_FILES = 128
"""Open files beside those of the connections that are counted: those of the store, the model and other services, and of
connections that were just accepted or dropped."""

ACCEPTED_TOGETHER = 32
"""Connections that the event loop accepts in one go, before there is a check whether there is room for them."""

KNOCKING = 2048
"""Most connections that the system keeps waiting to be accepted."""

DRAIN_SECONDS = 1.5
"""How long requests in progress may still take once the server is told to stop, whatever an engine does: clients kill a
server that takes more than two seconds to end."""

_EVENTS = b"text/event-stream"
_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}

Part: TypeAlias = Literal["headers", "body"]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a client may take, in seconds.

    Attributes:
        headers: From the first byte of a request, or the start of the connection, to the end of the headers.
        body: From the end of the headers to the end of the request.
        write: Without any progress while there is data to send.
    """

    headers: float
    body: float
    write: float


class GuardedProtocol(H11Protocol):
    """One connection of uvicorn's, with deadlines, and counted."""

    def __init__(
        self,
        connections: Connections,
        deadlines: Deadlines,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._all = connections
        self._deadlines = deadlines
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._awaited: Part | None = None
        self.holder: Holder | None = None
        self.is_cut_off = False  # whether this side ended an incomplete request
        self.is_half_closed = False  # whether the other side will send no more
        self.is_following = False  # whether the request is answered with a stream that tells of changes

    @property
    def address(self) -> str:
        """The address of the other end; empty for a socket without one."""
        return self.client[0] if self.client else ""

    @property
    def is_answering(self) -> bool:
        """Whether a complete request is being answered on it."""
        cycle = self._get_cycle()
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def claim(self, holder: Holder) -> None:
        """Make a caller its holder.

        Raises:
            LimitExceededError: The caller already holds its share.
        """

        def take() -> None:
            self.holder = holder

        self._all.hand_over(self, take, holder)

    def drop(self) -> None:
        """End it at once."""
        self.transport.abort()

    def let_go(self, cycle: RequestResponseCycle) -> None:
        """End it if whoever answers has heard that the client has gone, and left the answer unfinished."""
        if not cycle.response_complete:
            cycle.disconnected = True
            self.transport.close()

    def shutdown(self) -> None:
        """End it once the current request is answered, and a stream that tells of changes at once."""
        super().shutdown()
        cycle = self._get_cycle()
        if cycle is not None and self.is_answering and self.is_following:
            self.is_half_closed = True
            cycle.message_event.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many connections."""
        super().connection_made(cast("asyncio.Transport", GatheringTransport(transport, self.loop)))
        # So `pause_writing` is called whenever something is not sent at once, including what is left when the
        # connection is closed.
        transport.set_write_buffer_limits(high=0)
        if self._all.add(self):
            self._await("headers")
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up, whichever side ended the connection."""
        self._all.remove(self)
        self._await(None)
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process the data received."""
        self._all.touch(self)
        super().data_received(data)
        self._look()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Note that the client will send no more; return whether it is still to be answered."""
        cycle = self._get_cycle()
        if cycle is None or not self.is_answering or cycle.response_started:
            return False
        self.is_half_closed = True
        cycle.message_event.set()
        return True

    def on_response_complete(self) -> None:
        """Go on to the next request; there is none if the client has sent no more of them."""
        super().on_response_complete()
        self._look()
        if self.is_half_closed and not self.is_answering:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP, which uvicorn has logged."""
        self.is_cut_off = True
        super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        if self._write_timer is None:
            self._await_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop waiting."""
        self._stop_write_timer()
        super().resume_writing()

    def _get_cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # `None` before the first request, although its type does not say so

    def _look(self) -> None:
        """Set the deadline for the missing part of a request, if one has begun."""
        if self.conn.their_state is h11.IDLE:
            # Blank lines stop uvicorn's own timer between requests, but do not begin a request.
            is_due = self.conn.trailing_data[0] or self.timeout_keep_alive_task is None
            self._await("headers" if is_due else None)
        else:
            self._await("body" if self.conn.their_state is h11.SEND_BODY else None)

    def _await(self, part: Part | None) -> None:
        if part == self._awaited:
            return
        self._awaited = part
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        if part is not None:
            self._start(part)

    def _start(self, part: Part) -> None:
        seconds = self._deadlines.headers if part == "headers" else self._deadlines.body
        self._read_timer = self.loop.call_later(seconds, self._give_up, part, seconds)

    def _give_up(self, part: Part, seconds: float) -> None:
        if self.flow.read_paused:
            self._start(part)  # the application is not reading, so the client is not at fault
            return
        self.is_cut_off = True
        logger.info("request cut off", extra={"address": self.address, "part": part, "seconds": seconds})
        if part == "body" or self.conn.trailing_data[0]:
            self._say_too_slow(seconds)
        if (cycle := self._get_cycle()) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _say_too_slow(self, seconds: float) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        error = errors.InvalidInputError(f"The request did not arrive within {seconds:g} seconds; send it at once.")
        body = answers.to_text(answers.error_to_json(error, NESTED)).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (h11.Response(status_code=408, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")

    def _await_reader(self, left: int) -> None:
        self._write_timer = self.loop.call_later(self._deadlines.write, self._check_reader, left)

    def _check_reader(self, left: int) -> None:
        now_left = self.transport.get_write_buffer_size()
        if now_left < left:
            self._await_reader(now_left)
            return
        logger.info("answer not read", extra={"address": self.address, "bytes": now_left})
        self.transport.abort()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


@dataclass(frozen=True, slots=True)
class _Answering:
    """Tells whoever asks whether the client is there that one that will send no more has gone, and completes streams of
    events."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: GuardedProtocol | None = scope.get("state", {}).get(CONNECTION)
        cycle = connection.cycle if connection is not None else None
        is_whole = is_told = is_stream = False

        async def receive_or_end() -> Message:
            nonlocal is_whole, is_told
            is_over = is_whole and connection is not None and connection.is_half_closed
            message: Message = {"type": "http.disconnect"} if is_over else await receive()
            if is_whole:
                is_told = True
                return {"type": "http.disconnect"}
            is_whole = not message.get("more_body", False)
            return message

        async def send_noted(message: Message) -> None:
            nonlocal is_stream
            if message["type"] == "http.response.start" and connection is not None:
                is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(_EVENTS)
                connection.is_following = is_stream and scope["method"] == "GET"
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await self.app(scope, receive_or_end, send_noted)
        if connection is None or cycle is None:
            return
        connection.is_following = False
        if is_stream and not cycle.response_complete:
            await send(_END)
        elif is_told:
            connection.let_go(cycle)


class GuardedServer(uvicorn.Server):
    """uvicorn's server, with a queue for many clients that connect at the same time.

    `on_stop` is called when it is to stop.
    """

    def __init__(self, config: Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(KNOCKING)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what only listens, wait for the requests in progress, and stop."""
        self._on_stop()
        await super().shutdown(sockets)


def build_server(app: ASGIApp, settings: Settings, on_stop: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """Return a server of the application; it opens nothing by itself, and calls `on_stop` when it is to stop."""
    # Streams of events would otherwise be cut off where they are, also those that answer a call in progress.
    AppStatus.disable_automatic_graceful_drain()
    return GuardedServer(
        uvicorn.Config(
            _Answering(app),
            http=_build_protocol(settings),  # pyright: ignore[reportArgumentType] - it is only called
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=ACCEPTED_TOGETHER,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=DRAIN_SECONDS,  # pyright: ignore[reportArgumentType] - asyncio takes parts of it
        ),
        on_stop,
    )


def _build_protocol(settings: Settings) -> Callable[..., GuardedProtocol]:
    most = min(settings.max_connections, allow_files(settings.max_connections + SPARE_FILES) - SPARE_FILES)
    is_exempt = read_proxies(settings.trusted_proxies).trusts
    connections = Connections(max(1, most), settings.max_address_connections, is_exempt)
    deadlines = Deadlines(
        settings.header_timeout_seconds, settings.body_timeout_seconds, settings.write_timeout_seconds
    )
    return partial(GuardedProtocol, connections, deadlines)


def allow_files(number: int) -> int:
    """Allow the process to open at least `number` files, if the system permits, and return how many it may open."""
    if sys.platform == "win32":
        return number
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        soft = number if hard == resource.RLIM_INFINITY else min(number, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return number if soft == resource.RLIM_INFINITY else soft
