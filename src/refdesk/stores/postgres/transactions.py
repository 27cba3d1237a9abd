"""Write transactions: those of one org take turns, those of different orgs never wait for each other.

A transaction-scoped advisory lock, named after schema and org, is the cheapest way to have all transactions of an org
run one after another, across processes and machines: under READ COMMITTED every statement after it sees all that was
committed before, so nothing ever has to be repeated as under SERIALIZABLE, and a pooler may hand the connection on when
the transaction ends. A transaction takes the lock of each org when it first reads or writes something of it, and keeps
it. Work on the whole store (migrations, graphs, the vectors of a model) keeps everybody out by the lock of the schema,
which all others hold in shared mode.

Writes return nothing but success, so they are sent along with the next read, or with the commit: a transaction takes a
round trip for each of its reads and one for its end. Brief transactions of an org that wait in line in one process
share one database transaction and its commit; see decision 16.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field

import anyio
import psycopg

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures
from refdesk.stores.postgres.connections import SEE, Connections, Scope, Statement, Text
from refdesk.stores.postgres.failures import translated
from refdesk.stores.postgres.pool import Connection, Row, hang_up, is_in_transaction
from refdesk.stores.postgres.silence import Silence

MOST_WRITERS = 6
"""Most transactions that write at a time in one process: the other connections of its pool are for reading."""

_BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
# An acknowledged commit is on the disk even if the server's default is otherwise.
_SHARE = "pg_advisory_xact_lock_shared(hashtextextended('refdesk store ' || current_schema(), 0))"
_LIMITS = """
    SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true),
        set_config('idle_in_transaction_session_timeout', %s, true),
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
"""
_LIMITS_AND_SHARE = f"{_LIMITS}, {_SHARE}"
_LOCK = Statement("SELECT pg_advisory_xact_lock(hashtextextended('refdesk store ' || current_schema(), 0))")
_OF_ORG = "pg_advisory_xact_lock(hashtextextended(concat('refdesk org ', current_schema(), ' ', %s::text), 0))"
_LOCK_ORG = f"SELECT {_OF_ORG}"
_SEE_AND_LOCK_ORG = f"{SEE}, {_OF_ORG}"
# Settings and locks take effect from left to right.
_BEGIN_IN_ORG = f"{_LIMITS_AND_SHARE}, {SEE.removeprefix('SELECT ')}, {_OF_ORG}"

LONG_SECONDS = 3600.0
"""How long a statement may take that works on all documents or all vectors; meanwhile nobody else can write."""

IDLE_PATIENCES = 2
"""A transaction whose process sends nothing for this many times the patience is undone: it hangs or is cut off."""

BATCH = 256
"""Most statements that wait to be sent."""


MOST_SHARING = 16
"""Most brief transactions that share a commit: none waits for longer than so many take."""


@dataclass(slots=True)
class Shared:
    """A database transaction in which brief transactions of an org follow each other, and how it ends.

    Attributes:
        members: How many brief transactions have been in it.
        is_committing: Whether the server has been asked to commit it.
        ended: Set when all of them are committed, or none.
        error: Why none of them is committed.
    """

    connection: Connection
    members: int = 1
    is_committing: bool = False
    ended: anyio.Event = field(default_factory=anyio.Event)
    error: StoreError | None = None

    def end(self, error: StoreError | None = None) -> None:
        """Note that it has ended, and wake those who wait for that."""
        self.error = error
        self.ended.set()

    def give_up(self) -> None:
        """End it because its server is silent: whoever is in it or has left it waits no longer."""
        hang_up(self.connection)
        self.end(StoreError(failures.UNCERTAIN if self.is_committing else failures.LOST))

    @contextmanager
    def ended_by_failure(self, meaning: str) -> Generator[None, None, None]:
        """End it if the block fails, for otherwise others would wait for ever; errors of the store go no further.

        Args:
            meaning: The message for a failure that is not a refusal by the server.
        """
        try:
            yield
        except StoreError as error:
            self.end(StoreError(error.message if _is_refusal(error.__cause__) else meaning))
        except BaseException:
            self.end(StoreError(meaning))
            raise


class Turns:
    """Lines up the tasks of one process, so that they do not hold connections while they wait for one another.

    Attributes:
        brief: How many brief transactions wait in line for each org.
        open: For an org whose turn is free, the shared transaction that whoever takes the turn next continues or
            commits.
    """

    def __init__(self) -> None:
        self._places = anyio.Semaphore(MOST_WRITERS)
        self._orgs: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self.brief: Counter[str] = Counter()
        self.open: dict[str, Shared] = {}

    @asynccontextmanager
    async def take(
        self, org: str, seconds: float, silence: Silence | None = None, *, is_brief: bool = False
    ) -> AsyncGenerator[None, None]:
        """Hold the turn of an org; for `""` there is no turn to wait for.

        Args:
            org: Whose turn.
            seconds: How long to wait for it.
            silence: The server's; without it, waiting goes on even while the server is silent.
            is_brief: Whether it is for a brief transaction.

        Raises:
            StoreError: Others kept it too long, or found the server silent.
        """
        turn = self._orgs[org] if org else anyio.Lock()
        self.brief[org] += is_brief
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(_taking(turn, seconds, silence))
            finally:
                self.brief[org] -= is_brief
                self.brief += Counter()
            try:
                yield
            finally:
                if org and not turn.statistics().tasks_waiting:
                    self._orgs.pop(org, None)

    def take_place(self, seconds: float, silence: Silence) -> AbstractAsyncContextManager[None]:
        """Hold a place among those who write; errors as in `take`."""
        return _taking(self._places, seconds, silence)


class Session:
    """One write transaction; it begins at the first statement, so that nobody waits while rows are prepared.

    A brief one leaves the commit to the next in line for its org, if that is brief too, and waits for it: each is
    undone alone, by a savepoint, and none is answered before all are on the disk.

    Attributes:
        has_begun: Whether statements have been sent.
        is_brief: Whether it does only what was announced at its beginning, in one org; see `Transaction.expect`.
    """

    def __init__(self, connections: Connections, turns: Turns, stack: AsyncExitStack, *, is_alone: bool) -> None:
        """Make it.

        Args:
            connections: One of them is taken when it begins.
            turns: The turns of this process.
            stack: Gives back what is taken when it is closed.
            is_alone: Whether nobody else may write before it ends.
        """
        self._connections = connections
        self._turns = turns
        self._stack = stack
        self._is_alone = is_alone
        self._connection: Connection | None = None
        self._scope: Scope | None = None
        self._orgs: set[str] = set()
        self._waiting: list[Statement] = []
        self.has_begun = False
        self.is_brief = False
        self._turn = AsyncExitStack()
        self._shared: Shared | None = None
        self._savepoint = ""
        self._mark: Statement | None = None
        self._seconds: float | None = None
        self._has_ended = False

    @property
    def orgs(self) -> frozenset[str]:
        """The orgs that it holds."""
        return frozenset(self._orgs)

    @property
    def is_one_node(self) -> bool:
        """See `Connections`."""
        return self._connections.is_one_node

    async def send(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, sent in one round trip with those queued; they see the rows of `scope`.

        Raises:
            StoreError: One failed, and the transaction with it.
        """
        connection = await self._enter(scope)
        before, self._waiting = self._waiting, []
        if self.has_begun and not is_in_transaction(connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        self.has_begun = True
        rows = await self._connections.send(connection, *before, *statements, seconds=self._seconds)
        return rows[len(before) :]

    async def post(self, scope: Scope, *statements: Statement) -> None:
        """Queue statements whose rows nobody wants; they run before whatever is sent next, or at the end.

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
        """Return once what was written is on the server's disk.

        Raises:
            StoreError: It was undone, or the connection was lost before the server confirmed it.
        """
        if self._connection is None:
            return
        if self.has_begun and not is_in_transaction(self._connection):
            raise StoreError("An earlier failure has undone this transaction. Repeat all of it.")
        with anyio.CancelScope(shield=True):
            if self._is_followed:
                await self._leave(self._connection)
            else:
                await self._commit(self._connection)

    @property
    def _is_followed(self) -> bool:
        if not self.is_brief or len(self._orgs) != 1 or not self._connections.is_one_node:
            return False
        members = self._shared.members if self._shared else 1
        return members < MOST_SHARING and self._turns.brief[next(iter(self._orgs))] > 0

    async def _leave(self, connection: Connection) -> None:
        """Leave the transaction to the next in line, and return once it is committed."""
        (org,) = self._orgs
        waiting, self._waiting = self._waiting, []
        await self._connections.send(connection, *waiting)
        is_first = self._shared is None
        shared = self._shared = self._shared or Shared(connection)
        with self._connections.pool.silence.telling(shared.give_up):
            await self._pass_on(org, shared)
            if is_first:
                await self._see_to_end(org, shared)
            await shared.ended.wait()
        if shared.error is not None:
            raise StoreError(shared.error.message) from shared.error

    async def _pass_on(self, org: str, shared: Shared) -> None:
        self._turns.open[org] = shared
        await self._turn.aclose()

    async def _see_to_end(self, org: str, shared: Shared) -> None:
        """Return once the transaction has ended; waits in line too, in case none of those in line continues it."""

        async def stand_in_line() -> None:
            # A commit under way is not cancelled: when cancelled, the driver asks the server, which may be silent.
            async with self._turns.take(org, LONG_SECONDS):
                with anyio.CancelScope(shield=True):
                    await self._end_shared(org)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(stand_in_line)
            await shared.ended.wait()
            group.cancel_scope.cancel()

    async def _end_shared(self, org: str) -> None:
        """Commit the transaction that others have left open, if there is one; they learn how it went."""
        shared = self._turns.open.pop(org, None)
        if shared is None or shared.ended.is_set():
            return
        if not is_in_transaction(shared.connection):
            shared.end(StoreError(failures.LOST))
            return
        with shared.ended_by_failure(failures.UNCERTAIN):
            shared.is_committing = True
            await self._connections.send(shared.connection, Statement("COMMIT"))
            shared.end()

    async def end(self) -> None:
        """Roll back, as far as the server is still reachable."""
        self._has_ended = True
        if self._shared is not None:
            with anyio.CancelScope(shield=True):
                await self._undo_own(self._shared)
            return
        if self._connection is not None and not self._connection.closed and not _is_idle(self._connection):
            # Why it is undone matters more than that the server could not be informed: it notices by itself.
            with anyio.CancelScope(shield=True), suppress(StoreError):
                await self._connections.send(self._connection, Statement("ROLLBACK"))

    async def _undo_own(self, shared: Shared) -> None:
        """Undo what this member of a shared transaction did, unless that has ended, and pass on what others did."""
        (org,) = self._orgs
        if shared.ended.is_set() or self._turns.open.get(org) is shared:
            return
        if self._waiting and self._waiting[0] is self._mark:
            # Not even the savepoint was sent.
            await self._pass_on(org, shared)
            return
        with shared.ended_by_failure(failures.LOST):
            await self._connections.send(shared.connection, Statement(Text(f"ROLLBACK TO SAVEPOINT {self._savepoint}")))
        if not shared.ended.is_set():
            await self._pass_on(org, shared)

    async def _commit(self, connection: Connection) -> None:
        shared = self._shared
        try:
            if shared is not None:
                # If this member's own statements fail, that must not undo what others did.
                waiting, self._waiting = self._waiting, []
                await self._connections.send(connection, *waiting)
                shared.is_committing = True
            await self._connections.send(connection, *self._waiting, Statement("COMMIT"), seconds=self._seconds)
        except StoreError as error:
            if _is_refusal(error.__cause__):
                raise
            if shared is not None:
                shared.end(StoreError(failures.UNCERTAIN))
            raise StoreError(failures.UNCERTAIN) from error
        if shared is not None:
            shared.end()

    async def _enter(self, scope: Scope) -> Connection:
        """Return the connection, after queueing what begins the transaction and lets it see and hold the scope."""
        if self._has_ended:
            raise RuntimeError("this transaction has ended")
        if self._connection is None:
            patience, silence, org = self._connections.patience_seconds, self._connections.pool.silence, scope.org or ""
            since = anyio.current_time()
            await self._stack.enter_async_context(self._turn)
            await self._turn.enter_async_context(self._turns.take(org, patience, silence, is_brief=self.is_brief))
            if (connection := self._join(scope)) is not None:
                return connection
            await self._end_shared(org)
            # If others have found the server silent meanwhile, do not ask for a connection to it.
            silence.check(since)
            await self._stack.enter_async_context(self._turns.take_place(patience, silence))
            self._connection = await self._stack.enter_async_context(self._connections.pool.lend())
            self._waiting += self._begin(scope)
        if scope != self._scope:
            self._waiting += self._hold(scope)
            self._scope = scope
        return self._connection

    def _begin(self, scope: Scope) -> list[Statement]:
        """Return what begins the transaction; if nothing comes in between, also what lets it see and hold the org."""
        # The lock has the lower limit, so that the error can say what was waited for.
        patience = self._connections.patience_seconds
        limits = [f"{int(seconds * 1000)}ms" for seconds in (patience, patience + 1, patience * IDLE_PATIENCES)]
        if self._is_alone:
            return [_BEGIN, Statement(_LIMITS, limits), _LOCK]
        if not scope.org or not self._connections.is_one_node:
            return [_BEGIN, Statement(_LIMITS_AND_SHARE, limits)]
        self._orgs.add(scope.org)
        self._scope = scope
        return [_BEGIN, Statement(_BEGIN_IN_ORG, (*limits, *scope.values, scope.org), scope)]

    def _join(self, scope: Scope) -> Connection | None:
        """Continue the transaction that another brief one of the org has left open, if there is one."""
        org = scope.org or ""
        shared = self._turns.open.get(org)
        if shared is None or not self.is_brief or shared.ended.is_set() or not is_in_transaction(shared.connection):
            return None
        del self._turns.open[org]
        shared.members += 1
        self._shared, self._connection, self._scope, self._orgs = shared, shared.connection, scope, {org}
        self._savepoint = f"member_{shared.members}"
        self._mark = Statement(Text(f"SAVEPOINT {self._savepoint}"))
        self._waiting.append(self._mark)
        self.has_begun = True
        return shared.connection

    def _hold(self, scope: Scope) -> list[Statement]:
        """Return what lets the transaction see the scope, and keeps others out of it."""
        seen = scope.statement
        if self._is_alone or scope.org == "" or scope.org in self._orgs:
            return [seen]
        if scope.org is None:
            self._is_alone = True
            return [seen, _LOCK]
        self._orgs.add(scope.org)
        if not self._connections.is_one_node:
            return [seen, Statement(_LOCK_ORG, (scope.org,))]
        return [Statement(_SEE_AND_LOCK_ORG, (*scope.values, scope.org), scope)]


@asynccontextmanager
async def _taking(
    turn: anyio.Lock | anyio.Semaphore, seconds: float, silence: Silence | None
) -> AsyncGenerator[None, None]:
    try:
        try:
            turn.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.fail_after(seconds), silence.watched() if silence is not None else nullcontext():
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
    """Yield a session; commit it when the block ends, or roll it back if that is by an exception.

    Args:
        connections: One of them is taken when the transaction begins.
        turns: Lines up the tasks of this process before that.
        is_alone: Whether it works on the whole store, so that nobody else may write before it ends.
    """
    async with AsyncExitStack() as stack:
        session = Session(connections, turns, stack, is_alone=is_alone)
        try:
            yield session
            await session.commit()
        finally:
            await session.end()
