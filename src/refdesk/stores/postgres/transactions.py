"""Write transactions, serialised by an advisory lock.

A transaction-scoped advisory lock, named after the schema, is the cheapest way to have all transactions of a store run
one after another, across processes and machines: under READ COMMITTED every statement behind it sees all that was
committed before, so nothing ever has to be repeated as SERIALIZABLE would ask for, and a pooler may hand the connection
on at its end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import psycopg

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Row, is_in_transaction

_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('refdesk store ' || current_schema(), 0))")
# An acknowledged commit is on the disk even where the server's default is otherwise.
_DURABLY = Statement(
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
_LIMITS = """
    SELECT set_config('lock_timeout', %(patience)s, true), set_config('statement_timeout', %(statement)s, true),
        set_config('idle_in_transaction_session_timeout', %(idle)s, true)
"""

LONG_SECONDS = 3600.0
"""How long a statement may take that works on all documents or all vectors; meanwhile nobody else can write."""

IDLE_PATIENCES = 2
"""A transaction whose process says nothing for so many patiences is undone: the process hangs or is cut off."""


class Session:
    """One transaction that writes: begins at the first statement, so that nobody waits while rows are prepared."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection
        self._scope: Scope | None = None
        self._seconds: float | None = None
        self._has_ended = False

    async def send(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, sent in one round trip; they see the rows of `scope`.

        Raises:
            StoreError: One failed, and the transaction with it.
        """
        if self._has_ended:
            raise RuntimeError("this transaction has ended")
        before = [] if self._scope else self._beginning
        if scope != self._scope:
            before.append(scope.statement)
        if self._scope and not is_in_transaction(self._connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        self._scope = scope
        rows = await self._connections.send(self._connection, *before, *statements, seconds=self._seconds)
        return rows[len(before) :]

    async def take_time(self, scope: Scope, seconds: float = LONG_SECONDS) -> None:
        """Let each statement from here on take as long as work on a whole store may."""
        limit = Statement("SELECT set_config('statement_timeout', %s, true)", (f"{int(seconds)}s",))
        await self.send(scope, limit)
        self._seconds = seconds

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement; see `send`."""
        return await self.send(scope, *statements)

    async def run_script(self, script: str) -> None:
        """Run the statements of a file, which have no parameters, in this transaction."""
        with translated():
            await self._connection.execute(script.encode())

    async def commit(self) -> None:
        """Return when what was written is on the server's disk.

        Raises:
            StoreError: It was undone, or the connection was lost before the server's word came.
        """
        if self._scope is None:
            return
        if not is_in_transaction(self._connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        with anyio.CancelScope(shield=True):
            await self._commit()

    async def end(self) -> None:
        """Roll back, as far as the server is still reachable."""
        self._has_ended = True
        if self._scope is not None and is_in_transaction(self._connection):
            # The reason for the undoing matters more than that the server could not be told: it notices by itself.
            with anyio.CancelScope(shield=True), suppress(StoreError):
                await self._connections.send(self._connection, Statement("ROLLBACK"))

    async def _commit(self) -> None:
        try:
            await self._connections.send(self._connection, Statement("COMMIT"))
        except StoreError as error:
            if _is_refusal(error.__cause__):
                raise
            raise StoreError(failures.UNCERTAIN) from error

    @property
    def _beginning(self) -> list[Statement]:
        # The lock has the lower limit, so that the answer can say what was waited for.
        patience = self._connections.patience_seconds
        limits = {"patience": patience, "statement": patience + 1, "idle": patience * IDLE_PATIENCES}
        values: dict[str, object] = {name: f"{int(seconds * 1000)}ms" for name, seconds in limits.items()}
        return [Statement("BEGIN ISOLATION LEVEL READ COMMITTED"), Statement(_LIMITS, values), _DURABLY, _LOCK]


@asynccontextmanager
async def _taking(turn: anyio.Lock, seconds: float) -> AsyncGenerator[None, None]:
    try:
        with anyio.fail_after(seconds):
            await turn.acquire()
    except TimeoutError as error:
        raise StoreError(failures.HELD) from error
    try:
        yield
    finally:
        turn.release()


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether the server refused the statement, as opposed to shutting down."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return state is not None and not state.startswith(("08", "57P"))


@asynccontextmanager
async def open_session(connections: Connections, turn: anyio.Lock) -> AsyncGenerator[Session, None]:
    """Yield a session; commit it when the block is left, undo it when by an exception.

    Args:
        connections: One of them is taken at once.
        turn: Lines up the tasks of this process before that, so that they do not hold connections while they wait.
    """
    async with _taking(turn, connections.patience_seconds), connections.pool.lend() as connection:
        session = Session(connections, connection)
        try:
            yield session
            await session.commit()
        finally:
            await session.end()
