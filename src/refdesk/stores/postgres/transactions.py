"""Write transactions: those of one org take turns, those of different orgs never wait for each other.

A transaction-scoped advisory lock, named after schema and org, is the cheapest way to have all transactions of an org
run one after another, across processes and machines: under READ COMMITTED every statement behind it sees all that was
committed before, so nothing ever has to be repeated as SERIALIZABLE would ask for, and a pooler may hand the connection
on at its end. A transaction takes the lock of each org when it first reads or writes something of it, and keeps it.
Work on the whole store (migrations, graphs, the vectors of a model) keeps everybody out by the lock of the schema, of
which all others hold a share.

Nothing that is written is answered but by success, so writes travel with the next read, or with the commit: a
transaction takes a round trip for each of its reads and one for its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
import psycopg

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Row, is_in_transaction

MOST_WRITERS = 6
"""Transactions that write in one process at a time, at most: the other connections of its pool are for reading."""

_BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
# An acknowledged commit is on the disk even where the server's default is otherwise.
_LIMITS = """
    SELECT set_config('lock_timeout', %(patience)s, true), set_config('statement_timeout', %(statement)s, true),
        set_config('idle_in_transaction_session_timeout', %(idle)s, true),
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
"""
_SHARE = Statement("SELECT pg_advisory_xact_lock_shared(hashtextextended('refdesk store ' || current_schema(), 0))")
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('refdesk store ' || current_schema(), 0))")
_LOCK_ORG = "SELECT pg_advisory_xact_lock(hashtextextended(concat('refdesk org ', current_schema(), ' ', %s::text), 0))"

LONG_SECONDS = 3600.0
"""How long a statement may take that works on all documents or all vectors; meanwhile nobody else can write."""

IDLE_PATIENCES = 2
"""A transaction whose process says nothing for so many patiences is undone: the process hangs or is cut off."""

BATCH = 256
"""Statements that wait to be sent, at most."""


class Turns:
    """Lines up the tasks of one process, so that they do not hold connections while they wait for one another."""

    def __init__(self) -> None:
        self._places = anyio.Semaphore(MOST_WRITERS)
        self._orgs: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    @asynccontextmanager
    async def take(self, scope: Scope, seconds: float) -> AsyncGenerator[None, None]:
        """Hold the turn of an org, where the scope is one, and a place among those who write.

        Raises:
            StoreError: Others kept it too long.
        """
        key = scope.org or ""
        turn = self._orgs[key] if key else anyio.Lock()
        async with _taking(turn, seconds), _taking(self._places, seconds):
            try:
                yield
            finally:
                if key and not turn.statistics().tasks_waiting:
                    self._orgs.pop(key, None)


class Session:
    """One transaction that writes: begins at the first statement, so that nobody waits while rows are prepared."""

    def __init__(self, connections: Connections, turns: Turns, stack: AsyncExitStack, *, is_alone: bool) -> None:
        """Make it.

        Args:
            connections: One of them is taken when it begins.
            turns: Those of this process.
            stack: What is taken is given back with it.
            is_alone: Nobody else writes before it ends.
        """
        self._connections = connections
        self._turns = turns
        self._stack = stack
        self._is_alone = is_alone
        self._connection: Connection | None = None
        self._scope: Scope | None = None
        self._orgs: set[str] = set()
        self._waiting: list[Statement] = []
        self._has_begun = False
        self._seconds: float | None = None
        self._has_ended = False

    async def send(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, sent in one round trip with what waits; they see the rows of `scope`.

        Raises:
            StoreError: One failed, and the transaction with it.
        """
        connection = await self._enter(scope)
        before, self._waiting = self._waiting, []
        if self._has_begun and not is_in_transaction(connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        self._has_begun = True
        rows = await self._connections.send(connection, *before, *statements, seconds=self._seconds)
        return rows[len(before) :]

    async def post(self, scope: Scope, *statements: Statement) -> None:
        """Have statements run whose rows nobody wants, before whatever is sent next or at the end.

        Raises:
            StoreError: One of those before has failed, and the transaction with it.
        """
        await self._enter(scope)
        self._waiting += statements
        if len(self._waiting) >= BATCH:
            await self.send(scope)

    async def take_time(self, scope: Scope, seconds: float = LONG_SECONDS) -> None:
        """Let each statement from here on take as long as work on a whole store may."""
        limit = Statement("SELECT set_config('statement_timeout', %s, true)", (f"{int(seconds)}s",))
        await self.send(scope, limit)
        self._seconds = seconds

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement; see `send`."""
        return await self.send(scope, *statements)

    async def run_script(self, script: str) -> None:
        """Run the statements of a file, which have no parameters, in this transaction that has begun."""
        assert self._connection is not None
        with translated():
            await self._connection.execute(script.encode())

    async def commit(self) -> None:
        """Return when what was written is on the server's disk.

        Raises:
            StoreError: It was undone, or the connection was lost before the server's word came.
        """
        if self._connection is None:
            return
        if self._has_begun and not is_in_transaction(self._connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        with anyio.CancelScope(shield=True):
            await self._commit(self._connection)

    async def end(self) -> None:
        """Roll back, as far as the server is still reachable."""
        self._has_ended = True
        if self._connection is not None and not self._connection.closed and not _is_idle(self._connection):
            # The reason for the undoing matters more than that the server could not be told: it notices by itself.
            with anyio.CancelScope(shield=True), suppress(StoreError):
                await self._connections.send(self._connection, Statement("ROLLBACK"))

    async def _commit(self, connection: Connection) -> None:
        try:
            await self._connections.send(connection, *self._waiting, Statement("COMMIT"), seconds=self._seconds)
        except StoreError as error:
            if _is_refusal(error.__cause__):
                raise
            raise StoreError(failures.UNCERTAIN) from error

    async def _enter(self, scope: Scope) -> Connection:
        """Return the connection, after what begins the transaction and lets it see and hold the scope was queued."""
        if self._has_ended:
            raise RuntimeError("this transaction has ended")
        if self._connection is None:
            patience = self._connections.patience_seconds
            await self._stack.enter_async_context(self._turns.take(scope, patience))
            self._connection = await self._stack.enter_async_context(self._connections.pool.lend())
            self._waiting += [_BEGIN, self._limits, _LOCK if self._is_alone else _SHARE]
        if scope != self._scope:
            self._waiting += [scope.statement, *self._hold(scope)]
            self._scope = scope
        return self._connection

    def _hold(self, scope: Scope) -> list[Statement]:
        if self._is_alone or scope.org == "" or scope.org in self._orgs:
            return []
        if scope.org is None:
            self._is_alone = True
            return [_LOCK]
        self._orgs.add(scope.org)
        return [Statement(_LOCK_ORG, (scope.org,))]

    @property
    def _limits(self) -> Statement:
        # The lock has the lower limit, so that the answer can say what was waited for.
        patience = self._connections.patience_seconds
        limits = {"patience": patience, "statement": patience + 1, "idle": patience * IDLE_PATIENCES}
        return Statement(_LIMITS, {name: f"{int(seconds * 1000)}ms" for name, seconds in limits.items()})


@asynccontextmanager
async def _taking(turn: anyio.Lock | anyio.Semaphore, seconds: float) -> AsyncGenerator[None, None]:
    try:
        with anyio.fail_after(seconds):
            await turn.acquire()
    except TimeoutError as error:
        raise StoreError(failures.HELD) from error
    try:
        yield
    finally:
        turn.release()


def _is_idle(connection: Connection) -> bool:
    return connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether the server refused the statement, as opposed to shutting down."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return state is not None and not state.startswith(("08", "57P"))


@asynccontextmanager
async def open_session(
    connections: Connections, turns: Turns, *, is_alone: bool = False
) -> AsyncGenerator[Session, None]:
    """Yield a session; commit it when the block is left, undo it when by an exception.

    Args:
        connections: One of them is taken when the transaction begins.
        turns: Lines up the tasks of this process before that.
        is_alone: It works on the whole store: nobody else writes before it ends.
    """
    async with AsyncExitStack() as stack:
        session = Session(connections, turns, stack, is_alone=is_alone)
        try:
            yield session
            await session.commit()
        finally:
            await session.end()
