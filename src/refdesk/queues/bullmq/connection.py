"""The connection to Redis: fails fast, tracks whether Redis is up, and logs each change once."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLError
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import anyio
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from refdesk import errors
from refdesk.core.doorbell import Doorbell
from refdesk.queues.bullmq.jobs import QUEUE_NAME

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

FAILURES = (RedisError, OSError, TimeoutError)
CALL_SECONDS = 0.5
"""Longest wait for Redis. The first call after it went away waits this long; later calls do not wait at all."""

PROBE_SECONDS = 5.0
PROBE_SECONDS_WHEN_DOWN = 0.5
QUIET_SECONDS = 60.0
"""How long a connection that goes up and down is not logged again."""

CONNECTIONS = 40
PROBE_KEY = "refdesk:probe"
QUEUE_PROBE_KEY = f"bull:{QUEUE_NAME}:refdesk:probe"
DESK_KEY = f"bull:{QUEUE_NAME}:refdesk:desk"
CLAIM_SECONDS = 20.0
"""How long a database stays a desk's after its last probe."""

PROBE = """
for _, write in ipairs({{'hset', 'f', 'v'}, {'lpush', 'v'}, {'zadd', 0, 'v'}, {'xadd', '*', 'f', 'v'}, {'set', 'v'}}) do
  redis.call(write[1], KEYS[2], unpack(write, 2))
  redis.call('del', KEYS[2])
end
redis.call('set', KEYS[1], 1, 'px', 1000)
local owner = redis.call('get', KEYS[3])
if owner and owner ~= ARGV[1] then
  return 0
end
if ARGV[1] ~= '' then
  redis.call('set', KEYS[3], ARGV[1], 'px', ARGV[2])
end
return 1
"""
"""Does what BullMQ does, on scratch keys: a user who may write values but not run scripts cannot use the queue. Then
claims the database for a desk, and returns whether it is no other's: that one's workers would find none of the
documents, and end the jobs."""

ELSEWHERE = (
    "Redis serves another desk: one with another store uses this database, or did seconds ago. Give each its own, by "
    "the number in REFDESK_REDIS."
)

DATABASE = re.compile(r"/?|/\d+")
MAY_NOT = ("ACL failure", "can't run this command", "can't access")
NO_DATABASE = ("DB index is out of range", "Invalid Database")
CROWDED = "max number of clients"
CLUSTER = ("same slot", "CROSSSLOT", "MOVED", "SELECT is not allowed in cluster")
"""Texts by which Redis reveals a cluster within errors of another kind."""

ERROR_CODE = re.compile(r"(?:^|caused error: |script: \d+: -)([A-Z]{3,})\b")
"""The code of an error, also of one within a script, which Redis 6.2 and BullMQ put into a text of their own."""

FULL = "its memory is full; raise its maxmemory"
REPLICA = "it is a replica, which takes no writes; REFDESK_REDIS must name the primary"
CODES = {"OOM": FULL, "READONLY": REPLICA}


def connect(url: str, seconds: float) -> Redis:
    """Return a client with this timeout and without retries: not every command may be repeated.

    Raises:
        ConfigurationError: The URL is not a Redis URL.
    """
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in {"redis", "rediss"} and DATABASE.fullmatch(parts.path) and not parts.fragment
        make_pool = cast("Callable[..., BlockingConnectionPool]", BlockingConnectionPool.from_url)  # pyright: ignore[reportUnknownMemberType]
        pool = make_pool(url if is_known else "", **_make_options(seconds))
        pool.make_connection()  # checks the options without connecting yet
    except (ValueError, TypeError, AttributeError, RedisError):
        raise errors.ConfigurationError(
            "REFDESK_REDIS is no URL of Redis; write redis://host:6379/0, or rediss:// for TLS. The database is a "
            "number; after ? there may be options of redis-py; special characters in a password are percent-encoded."
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
    """Return why Redis did not do what it was asked to, without its address."""
    return f"Redis is away: {_find_refusal(str(error), error) or _find_obstacle(error)}."


def _find_refusal(told: str, error: Exception) -> str | None:
    """Return how Redis refused, or `None` if it did not answer."""
    if isinstance(error, AuthenticationError | NoPermissionError) or any(text in told for text in MAY_NOT):
        return "it refuses the credentials or lacks a permission"
    if isinstance(error, OutOfMemoryError):
        return FULL
    if isinstance(error, ReadOnlyError):
        return REPLICA
    if isinstance(error, BusyLoadingError):
        return "it is still reading its data after a start"
    if CROWDED in told:
        return "it takes no more clients; raise its maxclients"
    if any(text in told for text in NO_DATABASE):
        return "it has no database of that number"
    if any(text in told for text in CLUSTER):
        return "it is a Redis Cluster; a single Redis is needed, or one with replicas"
    if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
        return None
    code = ERROR_CODE.search(told)
    return CODES.get(code[1], f"it answers with the error {code[1]}") if code else "it answers with an error"


def _find_obstacle(error: BaseException) -> str:
    causes = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(each, SSLError) for each in causes):
        return "no TLS with it: its certificate is not trusted, or it speaks none"
    if any(isinstance(each, FileNotFoundError) for each in causes):
        return "a file that REFDESK_REDIS names does not exist"
    if isinstance(error, RedisTimeoutError | TimeoutError):
        return "it does not answer in time"
    return "it cannot be reached"


@dataclass(slots=True)
class RedisConnection:
    """A client, and what is known about the state of Redis.

    Attributes:
        on_change: Called when Redis goes down or comes up.
        trouble: Why Redis is down; `None` while it is up.
        patience: Seconds without an answer to a call after which Redis counts as down.
        desk: The id of the desk's store; empty to claim nothing.
        is_ours: Whether the last answered probe found no other desk; `None` before the first. While one does, Redis
            counts as down.
    """

    url: str = field(repr=False)
    client: Redis = field(repr=False)
    on_change: Callable[[], None]
    trouble: str | None = None
    patience: float = CALL_SECONDS
    desk: str = ""
    is_ours: bool | None = None
    _turned: anyio.Event = field(default_factory=anyio.Event)
    _quiet_until: float = 0.0
    _is_told: bool = False
    _bell: Doorbell = field(default_factory=Doorbell)

    @property
    def is_up(self) -> bool:
        """Whether the last call was answered."""
        return self.trouble is None

    async def call(self, ask: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """Return the answer, or `None` if Redis is down: at once if that is known, else after `patience`."""
        return await self._try(ask) if self.is_up else None

    async def probe(self) -> None:
        """Find out whether Redis is up, which includes accepting what a queue writes, and serves no other desk."""
        await self._try(self._claim)

    async def wait_until(self, *, is_ours: bool) -> None:
        """Return once a probe has found that Redis serves no other desk, or that it does."""
        while self.is_ours is not is_ours:
            await self._turned.wait()

    async def watch(self) -> None:
        """Probe until cancelled, more often while Redis is down."""
        while True:
            if self.is_up:
                await self._bell.wait(PROBE_SECONDS)
            if not self.is_up:
                await anyio.sleep(PROBE_SECONDS_WHEN_DOWN)
            await self.probe()

    async def _claim(self) -> None:
        keys, values = (PROBE_KEY, QUEUE_PROBE_KEY, DESK_KEY), (self.desk, round(CLAIM_SECONDS * 1000))
        is_ours = bool(await cast("Any", self.client).eval(PROBE, len(keys), *keys, *values))
        if is_ours is not self.is_ours:
            self.is_ours = is_ours
            turned, self._turned = self._turned, anyio.Event()
            turned.set()

    async def _try(self, ask: Callable[[], Awaitable[Answer]]) -> Answer | None:
        try:
            with anyio.fail_after(self.patience):
                answer = await ask()
        except FAILURES as error:
            self._note(explain(error))
            return None
        self._note(ELSEWHERE if self.is_ours is False else None)
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
async def open_connection(
    url: str, on_change: Callable[[], None], patience: float, desk: str
) -> AsyncGenerator[RedisConnection]:
    """Yield a connection that has been probed once and is being watched; it is closed when the block is left.

    Raises:
        ConfigurationError: The URL is not a Redis URL.
    """
    connection = RedisConnection(url, connect(url, patience), on_change, patience=patience, desk=desk)
    failure: Exception | None = None
    await connection.probe()
    async with anyio.create_task_group() as group:
        group.start_soon(connection.watch)
        try:
            yield connection
        except Exception as error:
            failure = error  # raised below, so that it is not wrapped in a group
        group.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await connection.client.aclose()
    if failure is not None:
        raise failure
