"""Connections to the database: a pool of them, and statements sent in as few round trips as can be.

Everything is said per transaction (`set_config(…, true)`) and nothing is prepared by name, so that a pooler which hands
its connections from transaction to transaction may stand between.
"""

from __future__ import annotations

import select
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString, TypeAlias

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Composed
from psycopg_pool import AsyncConnectionPool

from refdesk.errors import ConfigurationError, StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.failures import translated

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = AsyncConnection[Row]

MOST_CONNECTIONS = 8
"""Connections of one process at most: one that writes and some that read; more only queue at the server."""

CONNECT_SECONDS = 5
"""How long making a connection may take."""

GRACE_SECONDS = 2.0
"""How much longer than the server's own limits an answer is waited for: beyond lies a network that swallows it."""

_OPTIONS: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "refdesk",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and what it is given: in order for `%s`, by name for `%(name)s`."""

    text: LiteralString | SQL | Composed
    values: Sequence[object] | dict[str, object] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows the statements of a transaction may see: one org's, or for the server's own work all."""

    org: str | None

    @property
    def statement(self) -> Statement:
        """The statement that says so, for the rest of the transaction."""
        values = (self.org or "", "off" if self.org is not None else "on")
        return Statement("SELECT set_config('refdesk.org', %s, true), set_config('refdesk.all_orgs', %s, true)", values)


ALL_ORGS = Scope(None)
_BEGIN_READING = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
_COMMIT = Statement("COMMIT")


class Connections:
    """The pool, and how long anything is waited for."""

    def __init__(self, url: str, patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self._url = url
        self._pool = AsyncConnectionPool[Connection](
            url,
            kwargs=_OPTIONS,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            timeout=min(patience_seconds, CONNECT_SECONDS + GRACE_SECONDS),
            # A request that comes while the server is away makes the next attempt, so none has to go on in between.
            reconnect_timeout=1.0,
            open=False,
        )

    async def open(self) -> None:
        """Get ready.

        Raises:
            ConfigurationError: The URL is none.
            StoreError: No connection can be made. Trying one first tells at once what the pool would go on trying.
        """
        try:
            with translated():
                connection = await AsyncConnection.connect(self._url, **_OPTIONS)
                await connection.close()
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.ProgrammingError):
                raise ConfigurationError("REFDESK_STORE is no URL that PostgreSQL's client can read.") from None
            raise
        await self._pool.open()

    async def close(self) -> None:
        """Close every connection that nobody uses."""
        await self._pool.close(timeout=GRACE_SECONDS)

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Connection, None]:
        """Yield a connection that was alive a moment ago, outside a transaction; take it back in that state only."""
        with translated():
            connection = await self._take()
        try:
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                if connection.info.transaction_status is not TransactionStatus.IDLE:
                    await connection.close()
                await self._pool.putconn(connection)

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement; all are of one moment, after every commit made before the call.

        One round trip.
        """
        async with self.lend() as connection:
            rows = await self.send(connection, _BEGIN_READING, self.limits, scope.statement, *statements, _COMMIT)
            return rows[-1 - len(statements) : -1]

    @asynccontextmanager
    async def snapshot(self, scope: Scope) -> AsyncGenerator[Snapshot, None]:
        """Yield what reads at one moment, in any number of round trips."""
        async with self.lend() as connection:
            snapshot = Snapshot(self, connection, scope)
            yield snapshot
            await snapshot.end()

    @property
    def limits(self) -> Statement:
        """The statement that says how a reading transaction runs.

        Whatever a search reads is reached by a key; the planner would rather read the whole of the small table of
        tokens, as it does not count what they cost out of line. Compiling a plan takes longer than any of ours.
        """
        return Statement(
            "SELECT set_config('statement_timeout', %s, true), set_config('enable_seqscan', 'off', true), "
            "set_config('jit', 'off', true)",
            (_milliseconds(self.patience_seconds),),
        )

    async def send(self, connection: Connection, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement (none where it gives none), sent together in one round trip.

        Raises:
            StoreError: One failed, or no answer came in time.
        """
        with translated(), self._answered():
            async with connection.pipeline():
                cursors = [await connection.execute(each.text, each.values) for each in statements]
            return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]

    @contextmanager
    def _answered(self) -> Generator[None, None, None]:
        try:
            with anyio.fail_after(self.patience_seconds + GRACE_SECONDS):
                yield
        except TimeoutError as error:
            raise StoreError(failures.SLOW) from error

    async def _take(self) -> Connection:
        for _ in range(MOST_CONNECTIONS + 1):
            connection = await self._pool.getconn()
            if _is_alive(connection):
                return connection
            # The server was restarted: each idle connection is found out here, before anything is sent over it.
            await connection.close()
            await self._pool.putconn(connection)
        raise StoreError(failures.LOST)


class Snapshot:
    """Reads of one moment, in a transaction that begins at the first."""

    def __init__(self, connections: Connections, connection: Connection, scope: Scope) -> None:
        self._connections = connections
        self._connection = connection
        self._beginning = [_BEGIN_READING, connections.limits, scope.statement]
        self._has_ended = False

    async def send(self, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, sent in one round trip."""
        before, self._beginning = self._beginning, []
        rows = await self._connections.send(self._connection, *before, *statements)
        return rows[len(before) :]

    async def send_last(self, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement and give the moment up, in one round trip."""
        *rows, _ = await self.send(*statements, _COMMIT)
        self._has_ended = True
        return rows

    async def end(self) -> None:
        """Give the moment up, if that has not been done."""
        if not self._beginning and not self._has_ended:
            await self._connections.send(self._connection, _COMMIT)


def _is_alive(connection: Connection) -> bool:
    """Return whether the other side has not hung up; asks the system, not the server.

    An idle connection on which something can be read has been closed or is about to be.
    """
    if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def _milliseconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"


def is_broken(connection: Connection) -> bool:
    """Return whether the connection's transaction can no longer be committed."""
    return connection.closed or connection.info.transaction_status is not TransactionStatus.INTRANS
