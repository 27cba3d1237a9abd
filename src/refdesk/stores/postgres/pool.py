"""A connection pool.

With the driver's own pool, a caller waits for a connection until it times out even though the server has refused it,
and the pool retries at growing intervals: after a restart of the server, writes resumed after six seconds (measured
over 30 kills). Here each caller makes the connection itself, so it learns of a refusal at once, and recovery is
immediate too.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.types.string import TextLoader

from refdesk.errors import ConfigurationError, StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.silence import Silence

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = AsyncConnection[Row]

MOST_CONNECTIONS = 8
"""Most connections of one process, for writing and reading; more would only queue at the server."""

CONNECT_SECONDS = 4.0
"""How long making a connection may take."""

LIFETIME_SECONDS = 1800.0
"""After this long a connection is replaced, so that a server at another address gets its share."""

# No named prepared statements: a pooler may assign each transaction another connection.
_OPTIONS: Mapping[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "application_name": "refdesk",
    # Whatever the environment (PGCLIENTENCODING) or the role's settings say: statements are sent in it.
    "client_encoding": "UTF8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


class Pool:
    """Lends connections that have no open transaction, at most `MOST_CONNECTIONS` at a time.

    Attributes:
        silence: What is known about the server's silence.
    """

    def __init__(self, url: str, patience_seconds: float) -> None:
        self._url = url
        self._patience_seconds = patience_seconds
        self._places = anyio.Semaphore(MOST_CONNECTIONS)
        self.silence = Silence(self.answers)
        self._idle: list[tuple[Connection, float]] = []

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Connection, None]:
        """Yield a connection that was alive a moment ago; it is taken back when the block ends.

        Raises:
            StoreError: None can be made, none came free within the patience, or tasks that hold one find the server
                silent.
            ConfigurationError: The URL is not valid.
        """
        since = anyio.current_time()
        await self._wait_for_place()
        try:
            self.silence.check(since)
            connection, made_at = await self._take()
            try:
                yield connection
            finally:
                with anyio.CancelScope(shield=True):
                    await self._take_back(connection, made_at)
        finally:
            self._places.release()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Connection, None]:
        """Yield a connection of the caller's own, in addition to those that are lent, for work that takes minutes.

        Raises:
            StoreError: None can be made.
        """
        connection = await self._connect()
        try:
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()

    async def answers(self, seconds: float) -> bool:
        """Return whether the server, or whatever is in its place, answers a new connection within this many seconds."""
        try:
            with anyio.fail_after(seconds):
                connection = await AsyncConnection.connect(self._url, **_OPTIONS)
                self.silence.hear()
                await connection.close()
        except TimeoutError:
            return False
        except (psycopg.Error, OSError):
            # A refusal is an answer: tasks waiting on older connections will see what became of those.
            return True
        return True

    async def close(self) -> None:
        """Close the idle connections."""
        self.silence.close()
        while self._idle:
            connection, _ = self._idle.pop()
            await connection.close()

    async def _wait_for_place(self) -> None:
        with suppress(anyio.WouldBlock):
            return self._places.acquire_nowait()
        try:
            with anyio.fail_after(self._patience_seconds), self.silence.watched():
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreError(failures.BUSY) from error

    async def _take(self) -> tuple[Connection, float]:
        now = anyio.current_time()
        while self._idle:
            connection, made_at = self._idle.pop()
            if is_idle(connection) and not _has_news(connection) and now - made_at < LIFETIME_SECONDS:
                return connection, made_at
            await connection.close()
        return await self._connect(), now

    async def _connect(self) -> Connection:
        since = anyio.current_time()
        try:
            with translated(), anyio.fail_after(min(CONNECT_SECONDS, self._patience_seconds)):
                connection = await AsyncConnection.connect(self._url, **_OPTIONS)
        except StoreError as error:
            if isinstance(error.__cause__, TimeoutError) and self._patience_seconds >= CONNECT_SECONDS:
                self.silence.find(since)
            # A refusal comes without waiting: a caller that retried at once would never let other tasks run.
            await anyio.lowlevel.checkpoint()
            # Its message would repeat the URL, password and all.
            if isinstance(error.__cause__, psycopg.ProgrammingError):
                raise ConfigurationError("REFDESK_STORE is no URL that PostgreSQL's client can read.") from None
            raise
        self.silence.hear()
        # JSON stays text: the code that decodes rows is the same for every engine.
        connection.adapters.register_loader("json", TextLoader)
        return connection

    async def _take_back(self, connection: Connection, made_at: float) -> None:
        if is_idle(connection):
            self._idle.append((connection, made_at))
        else:
            await connection.close()


def hang_up(connection: Connection) -> None:
    """Cut a connection to a silent server: whoever waits on it learns at once, without asking the server to cancel."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def is_idle(connection: Connection) -> bool:
    """Return whether the connection is open and outside a transaction."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def is_in_transaction(connection: Connection) -> bool:
    """Return whether the connection has a transaction that can still be committed."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.INTRANS


def _has_news(connection: Connection) -> bool:
    """Return whether an idle connection has something to read, which shows that the server has closed it.

    This asks the operating system, not the server.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
