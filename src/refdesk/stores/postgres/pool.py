"""A connection pool.

The driver's own pool lets whoever waits for a connection wait until a time runs out, though the server has refused it,
and tries again later and later: after a restart of the server, writes went on after six seconds (measured over 30
kills). Here whoever asks makes the connection, so the answer comes at once, and so does the recovery.
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
"""Connections of one process at most: one that writes and some that read; more only queue at the server."""

CONNECT_SECONDS = 4.0
"""How long making a connection may take."""

LIFETIME_SECONDS = 1800.0
"""After so long a connection is made anew, so that a server behind another address gets its share."""

# Nothing is prepared by name: a pooler hands its connections from transaction to transaction.
_OPTIONS: Mapping[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "application_name": "refdesk",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


class Pool:
    """Lends connections outside a transaction, at most `MOST_CONNECTIONS` at a time.

    Attributes:
        silence: What is known of the server's.
    """

    def __init__(self, url: str, patience_seconds: float) -> None:
        self._url = url
        self._patience_seconds = patience_seconds
        self._places = anyio.Semaphore(MOST_CONNECTIONS)
        self.silence = Silence(self.answers)
        self._idle: list[tuple[Connection, float]] = []

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Connection, None]:
        """Yield a connection that was alive a moment ago.

        Raises:
            StoreError: None can be made, none came free within the patience, or those who have one find the server
                silent.
            ConfigurationError: The URL is none.
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
        """Yield a connection of the caller's own, beside those that are lent: for what takes minutes.

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
        """Return whether the server, or whatever stands in its place, answers one who comes anew within so long."""
        try:
            with anyio.fail_after(seconds):
                connection = await AsyncConnection.connect(self._url, **_OPTIONS)
                self.silence.hear()
                await connection.close()
        except TimeoutError:
            return False
        except (psycopg.Error, OSError):
            # A refusal is an answer: who waits on a connection of before will see what became of it.
            return True
        return True

    async def close(self) -> None:
        """Close what is idle."""
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
            # Who is refused is so without a wait, and would keep everybody from a turn by trying again at once.
            await anyio.lowlevel.checkpoint()
            # Its message would repeat the URL, password and all.
            if isinstance(error.__cause__, psycopg.ProgrammingError):
                raise ConfigurationError("REFDESK_STORE is no URL that PostgreSQL's client can read.") from None
            raise
        self.silence.hear()
        # JSON comes as it is written: what decodes rows is the same for every engine.
        connection.adapters.register_loader("json", TextLoader)
        return connection

    async def _take_back(self, connection: Connection, made_at: float) -> None:
        if is_idle(connection):
            self._idle.append((connection, made_at))
        else:
            await connection.close()


def hang_up(connection: Connection) -> None:
    """End a connection whose server is silent: who waits for it learns that at once, and asks nobody to cancel."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def is_idle(connection: Connection) -> bool:
    """Return whether the connection is open and outside a transaction."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def is_in_transaction(connection: Connection) -> bool:
    """Return whether the connection has a transaction that can still be committed."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.INTRANS


def _has_news(connection: Connection) -> bool:
    """Return whether something can be read from an idle connection, which shows that the server has closed it.

    Asks the system, not the server.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
