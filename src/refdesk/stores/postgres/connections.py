"""Sends statements to the database in as few round trips as possible.

Every setting is per transaction (`set_config(…, true)`), so that a pooler which hands its connections from
transaction to transaction may sit in between.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

import anyio
from psycopg import AsyncClientCursor
from psycopg.sql import SQL, Composed

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Pool, Row

GRACE_SECONDS = 2.0
"""How much longer than the server's own limits an answer is waited for: beyond lies a network that swallows it."""


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
        """The statement that says so, for the rest of the transaction.

        Entries are seen whatever words they hold, and reached by their keys: the index of words would give all of them.
        """
        return Statement(
            "SELECT set_config('refdesk.org', %s, true), set_config('refdesk.all_orgs', %s, true), "
            "set_config('refdesk.any', '{0}', true), set_config('refdesk.all', '{-1}', true), "
            "set_config('enable_bitmapscan', 'off', true)",
            (self.org or "", "off" if self.org is not None else "on"),
        )


ALL_ORGS = Scope(None)
_BEGIN_READING = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
_COMMIT = Statement("COMMIT")


class Connections:
    """Runs statements on connections of a pool; none is waited for longer than the patience and some grace."""

    def __init__(self, url: str, patience_seconds: float) -> None:
        self.patience_seconds = patience_seconds
        self.pool = Pool(url, patience_seconds)

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement; all are of one moment, after every commit made before the call.

        One round trip.
        """
        async with self.pool.lend() as connection:
            rows = await self.send(connection, _BEGIN_READING, self.limits, scope.statement, *statements, _COMMIT)
            return rows[-1 - len(statements) : -1]

    @property
    def limits(self) -> Statement:
        """The statement that says how a reading transaction runs.

        Whatever a search reads is reached by a key; the planner would rather read the whole of the small table of
        tokens, as it does not count what they cost out of line. Compiling a plan takes longer than any of ours.
        """
        return Statement(
            "SELECT set_config('statement_timeout', %s, true), set_config('enable_seqscan', 'off', true), "
            "set_config('jit', 'off', true)",
            (f"{int(self.patience_seconds * 1000)}ms",),
        )

    async def send(
        self, connection: Connection, *statements: Statement, seconds: float | None = None
    ) -> list[list[Row]]:
        """Return the rows of each statement (none where it gives none), sent together in one round trip.

        Args:
            connection: Lent by the pool.
            statements: In their order; when one fails, those behind it are not run.
            seconds: How long the server may take; the patience unless given.

        Raises:
            StoreError: One failed, or no answer came in time.
        """
        cursor = AsyncClientCursor(connection)
        with translated(), _answered_within((seconds or self.patience_seconds) + GRACE_SECONDS):
            # One message: the driver's pipeline would send each statement by itself, and wake the server for each.
            texts = [cursor.mogrify(each.text, each.values or None) for each in statements]
            await cursor.execute(";".join(texts).encode())
            return await _fetch_all(cursor, len(statements))

    async def send_alone(self, connection: Connection, statement: Statement, seconds: float = 3600.0) -> None:
        """Run what cannot share a transaction with anything, nor be sent together with it; errors as in `send`."""
        with translated(), _answered_within(seconds):
            await connection.execute(statement.text, statement.values)


async def _fetch_all(cursor: AsyncClientCursor[Row], count: int) -> list[list[Row]]:
    every: list[list[Row]] = []
    while len(every) < count:
        every.append(await cursor.fetchall() if cursor.description else [])
        if not cursor.nextset():
            break
    return every


@contextmanager
def _answered_within(seconds: float) -> Generator[None, None, None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        raise StoreError(failures.SLOW) from error
