"""The connection to Redis: fails fast, tracks whether Redis is up, and logs each change once."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast
from urllib.parse import urlsplit

import anyio
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from refdesk import errors
from refdesk.core.doorbell import Doorbell

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

FAILURES = (RedisError, OSError, TimeoutError)
CALL_SECONDS = 0.5
"""The longest that anybody waits for Redis; the first call after it went away waits so long, the others not at all."""

PROBE_SECONDS = 5.0
PROBE_SECONDS_WHEN_DOWN = 0.5
QUIET_SECONDS = 60.0
"""So long a connection that goes up and down is not logged again."""

CONNECTIONS = 40
PROBE_KEY = "refdesk:probe"


def connect(url: str, seconds: float) -> Redis:
    """Return a client with this timeout and without retries: not every command may be repeated.

    Raises:
        ConfigurationError: It is not a Redis URL.
    """
    try:
        is_known = urlsplit(url).scheme in {"redis", "rediss"}
        make_pool = cast("Callable[..., BlockingConnectionPool]", BlockingConnectionPool.from_url)  # pyright: ignore[reportUnknownMemberType]
        pool = make_pool(url if is_known else "", **_make_options(seconds))
    except (ValueError, TypeError):
        raise errors.ConfigurationError(
            "REFDESK_REDIS is no URL of Redis; write redis://host:6379/0, or rediss:// for TLS."
        ) from None
    return Redis.from_pool(pool)


def _make_options(seconds: float) -> dict[str, object]:
    return {
        "decode_responses": True,
        "max_connections": CONNECTIONS,
        "timeout": seconds,
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
    }


def explain(error: Exception) -> str:
    """Return why Redis did not do what it was asked, without its address."""
    if isinstance(error, AuthenticationError | NoPermissionError):
        reason = "it refuses the credentials or lacks a permission"
    elif isinstance(error, RedisTimeoutError | TimeoutError):
        reason = "it does not answer in time"
    elif isinstance(error, RedisConnectionError | OSError):
        reason = "it cannot be reached"
    else:
        reason = "it answers with an error"
    return f"Redis is away: {reason}."


@dataclass(slots=True)
class RedisConnection:
    """A client and what is known of the other end.

    Attributes:
        on_change: Called when it goes down or up.
        trouble: Why it is down; `None` while it is up.
        patience: Seconds until a call without an answer means that it is down.
    """

    url: str = field(repr=False)
    client: Redis = field(repr=False)
    on_change: Callable[[], None]
    trouble: str | None = None
    patience: float = CALL_SECONDS
    _quiet_until: float = 0.0
    _is_told: bool = False
    _bell: Doorbell = field(default_factory=Doorbell)

    @property
    def is_up(self) -> bool:
        """Whether the last call was answered."""
        return self.trouble is None

    async def call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """Return the answer, or `None` when Redis is away: at once when that is known, else after `patience`."""
        return await self._try(ask) if self.is_up else None

    async def probe(self) -> None:
        """Find out whether it is up: it must take a write."""
        await self._try(lambda: self.client.set(PROBE_KEY, "1", px=1000))

    async def watch(self) -> None:
        """Probe until cancelled, more often while it is down."""
        while True:
            if self.is_up:
                await self._bell.wait(PROBE_SECONDS)
            if not self.is_up:
                await anyio.sleep(PROBE_SECONDS_WHEN_DOWN)
            await self.probe()

    async def _try(self, ask: Callable[[], Awaitable[Answer]]) -> Answer | None:
        try:
            with anyio.fail_after(self.patience):
                answer = await ask()
        except FAILURES as error:
            self._note(explain(error))
            return None
        self._note(None)
        return answer

    def _note(self, trouble: str | None) -> None:
        was_up, self.trouble = self.is_up, trouble
        if was_up == self.is_up:
            return
        if trouble is None and self._is_told:
            self._is_told = False
            logger.info("queue back")
        elif trouble is not None and anyio.current_time() >= self._quiet_until:
            self._quiet_until, self._is_told = anyio.current_time() + QUIET_SECONDS, True
            logger.warning("queue away", extra={"reason": trouble})
        self._bell.ring()
        self.on_change()


@asynccontextmanager
async def open_connection(url: str, on_change: Callable[[], None], patience: float) -> AsyncGenerator[RedisConnection]:
    """Yield a connection that was tried once and is watched; it is closed when the block is left.

    Raises:
        ConfigurationError: It is not a Redis URL.
    """
    connection = RedisConnection(url, connect(url, patience), on_change, patience=patience)
    failure: Exception | None = None
    await connection.probe()
    async with anyio.create_task_group() as group:
        group.start_soon(connection.watch)
        try:
            yield connection
        except Exception as error:
            failure = error  # raised below, so that it does not come out wrapped in a group
        group.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await connection.client.aclose()
    if failure is not None:
        raise failure
