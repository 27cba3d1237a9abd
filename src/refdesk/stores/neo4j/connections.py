"""Reads and transactions over Bolt: bounded in time, retried only where that is safe."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, LiteralString, Protocol, TypeAlias, cast

import anyio
from neo4j import WRITE_ACCESS, AsyncGraphDatabase, Query, basic_auth

from refdesk.core.retrying import RetryPolicy
from refdesk.errors import StoreError
from refdesk.stores.neo4j.failures import (
    ENDED,
    SET_BACK,
    UNKNOWN_OUTCOME,
    describe_commit,
    is_passing,
    translated,
)
from refdesk.stores.neo4j.silence import Silence, SilentError

if TYPE_CHECKING:
    from neo4j import AsyncDriver, AsyncResult, AsyncSession, AsyncTransaction

    from refdesk.stores.neo4j.address import Address

Rows: TypeAlias = "list[list[Any]]"
"""The values of each record, in the order of the statement's RETURN."""

POOL_SIZE = 20
IDLE_SECONDS = 30.0
"""A connection that was idle for longer is tested before it is used: the server may have gone meanwhile."""

CLOSE_SECONDS = 1.0
"""How long rolling back or closing connections may take; then they are cut, and the server rolls back by itself."""

REPEATS = RetryPolicy(attempts=4, first_wait=0.2, max_wait=0.8)
"""How a read that failed for a transient reason is retried."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many seconds to wait for a working database; a silent one is given up sooner, see `silence`.

    Attributes:
        connect: To establish a connection.
        statement: For the answer to one statement.
        patience: For the transactions of others before a transaction can begin.
        transaction: For a whole transaction; then the server rolls it back, so that a hung one does not block others
            for ever.
    """

    connect: float = 5.0
    statement: float = 30.0
    patience: float = 30.0
    transaction: float = 120.0


class Runner(Protocol):
    """Runs a statement, within a transaction or on its own."""

    async def run(self, statement: str, **parameters: object) -> Rows:
        """Run the statement and return its rows; errors as in `failures.translated`."""
        ...


class Database:
    """One database of one server; keeps a pool of connections.

    Attributes:
        silence: Ends waits for a server that has stopped answering.
        sequence: The highest number of the store's change sequence that was seen; see `note_sequence`.
    """

    sequence = 0
    _is_set_back = False

    def __init__(self, address: Address, limits: Limits) -> None:
        # The driver's log would show the server's address; callers that know what a lost connection means report it.
        logging.getLogger("neo4j").setLevel(logging.CRITICAL)
        self._limits = limits
        self._name = address.database
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()
        self._open_driver = partial(_open_driver, address, limits)
        self._driver = self._open_driver()
        self.silence = Silence(self._knock)

    async def run(self, statement: str, **parameters: object) -> Rows:
        """Return the rows of a statement that may be run twice: a read, or an idempotent change of the schema."""
        return (await self.ask(statement, **parameters))[1]

    async def ask(self, statement: str, **parameters: object) -> tuple[str, Rows]:
        """Return the server's name and version, such as "Neo4j/5.26.31", and what `run` returns."""
        self._refuse_older()
        with translated(), self.silence.watched():
            return await REPEATS.call(lambda: self._run_once(statement, parameters), retries_on=is_passing)

    @asynccontextmanager
    async def begin(self) -> AsyncGenerator[OpenTransaction, None]:
        """Yield a transaction; leaving the block without a commit rolls it back."""
        self._refuse_older()
        session = self._open_session(self._driver)
        transaction: AsyncTransaction | None = None
        try:
            with translated(), self.silence.watched(), anyio.fail_after(self._limits.patience):
                transaction = await session.begin_transaction(timeout=self._limits.transaction)
            yield OpenTransaction(transaction, self._limits, self.silence)
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await _close_quietly(session, transaction)

    async def close(self) -> None:
        """Close every connection."""
        self.silence.close()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._driver.close()

    def note_sequence(self, number: int, least: int) -> None:
        """Note the number of the last change in the store, and what `sequence` was before the store was asked for it.

        Raises:
            StoreError: The store is older than it was, so whatever this process remembers of it may be wrong: from now
                on every call raises this.
        """
        self._is_set_back = self._is_set_back or number < least
        self.sequence = max(self.sequence, number)
        self._refuse_older()

    def _refuse_older(self) -> None:
        if self._is_set_back:
            raise StoreError(SET_BACK)

    async def _knock(self, asks_for_commits: bool) -> None:
        # Beginning a transaction reaches the server that takes writes, which need not plan or read anything.
        async with self._open_driver() as driver, self._open_session(driver, asks_for_commits) as session:
            await (await session.begin_transaction()).close()

    async def _run_once(self, statement: str, parameters: dict[str, object]) -> tuple[str, Rows]:
        query = Query(cast("LiteralString", statement), timeout=self._limits.statement)
        with anyio.fail_after(self._limits.statement + 1.0):
            async with self._open_session(self._driver) as session:
                result = await session.run(query, parameters)
                rows = await _collect(result)
                return (await result.consume()).server.agent, rows

    def _open_session(self, driver: AsyncDriver, asks_for_commits: bool = True) -> AsyncSession:
        # Reads go to the same server as writes: in a cluster only the leader is sure to have every commit.
        return driver.session(  # pyright: ignore[reportUnknownMemberType]
            database=self._name,
            default_access_mode=WRITE_ACCESS,
            fetch_size=-1,
            bookmark_manager=self._bookmarks if asks_for_commits else None,
        )


class OpenTransaction:
    """A transaction of the driver."""

    def __init__(self, transaction: AsyncTransaction, limits: Limits, silence: Silence) -> None:
        self._transaction = transaction
        self._limits = limits
        self._silence = silence

    async def run(self, statement: str, **parameters: object) -> Rows:
        """Run the statement and return its rows.

        Raises:
            StoreError: The statement failed, and the transaction with it.
        """
        return await self._run(statement, parameters, self._limits.statement)

    async def take_lock(self, statement: str, **parameters: object) -> Rows:
        """Run the statement once the holders of the lock have ended, and return its rows; errors as in `run`."""
        return await self._run(statement, parameters, self._limits.patience)

    async def _run(self, statement: str, parameters: dict[str, object], seconds: float) -> Rows:
        if self._transaction.closed():
            raise StoreError(ENDED)
        with translated(), self._silence.watched(), anyio.fail_after(seconds):
            return await _collect(await self._transaction.run(cast("LiteralString", statement), parameters))

    async def commit(self) -> None:
        """Commit, returning once the writes are on disk.

        Raises:
            StoreError: They are not, or the outcome is unknown; the message says which.
        """
        if self._transaction.closed():
            raise StoreError(ENDED)
        try:
            with anyio.CancelScope(shield=True), self._silence.watched(), anyio.fail_after(self._limits.statement):
                await self._transaction.commit()
        except (TimeoutError, SilentError) as error:
            raise StoreError(UNKNOWN_OUTCOME) from error
        except Exception as error:
            raise describe_commit(error) from error


def _open_driver(address: Address, limits: Limits) -> AsyncDriver:
    return AsyncGraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]
        address.server,
        auth=basic_auth(address.user, address.password) if address.user else None,
        max_connection_pool_size=POOL_SIZE,
        connection_timeout=limits.connect,
        connection_write_timeout=limits.statement,
        connection_acquisition_timeout=limits.patience,
        liveness_check_timeout=IDLE_SECONDS,
        notifications_min_severity="OFF",
        telemetry_disabled=True,
        user_agent="refdesk",
    )


async def _collect(result: AsyncResult) -> Rows:
    return [record.values() async for record in result]


async def _close_quietly(session: AsyncSession, transaction: AsyncTransaction | None) -> None:
    """Roll back unless committed and return the connection; for a broken connection, the server rolls back itself."""
    try:
        if transaction is not None and not transaction.closed():
            await transaction.rollback()
        await session.close()
    except Exception:
        session.cancel()
