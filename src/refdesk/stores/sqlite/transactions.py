"""This process's transactions: one after another on the single write connection, and many to one commit.

The cost of a commit is the sync to the disk, and one sync carries any number of transactions. So a transaction that
ends while others wait for their turn lets them go first, each within a savepoint of its own, and then commits for all.
None is acknowledged before that commit is on the disk; one that fails is undone alone; if the commit itself fails, all
of them fail. If nobody waits, a transaction is committed the moment it ends.

Callers that write one note after another are answered together, so they also come back together, but not at exactly the
same moment: so a group waits a little until it is as large as the previous one. A lone writer never waits.

A log that has grown long is moved into the file once the commit that made it so is acknowledged: this takes as long as
several commits, and the next caller still has most of its work to do before it needs the connection.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.lowlevel

from refdesk.errors import StoreError
from refdesk.stores.sqlite.connections import UNDONE, Writer, require_transaction
from refdesk.stores.sqlite.driver import Connection

if TYPE_CHECKING:
    from refdesk.model import AuditEntry

P = ParamSpec("P")
R = TypeVar("R")

MOST_MEMBERS = 64
MOST_SECONDS = 0.05
"""Size and age at which a group is committed even while others wait: another process may want the store."""

PATIENCE = 2.0
"""How long a group waits to become as large as the previous one, in multiples of the time that one took to gather."""

PATIENCE_FOR_NEXT = 2.0
"""How long a group waits for its next member once most have joined, in multiples of the mean time between members of
the previous group. When one of several writers has finished, the others thus wait less for it than for a whole
group."""


@dataclass(slots=True, eq=False)
class _Group:
    """Transactions that are committed together.

    Attributes:
        members: How many have ended and were not undone.
        last: When the last of them ended.
        has_leader: Whether one of them has taken on the commit.
        complete: Set when there are as many as expected; exists while the leader waits for them.
        settled: Set once all are on the disk, or none is: `failure` says why.
        last_audits: See `Session.last_audits`.
    """

    started: float = field(default_factory=time.monotonic)
    members: int = 0
    last: float = 0.0
    has_leader: bool = False
    complete: anyio.Event | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)
    failure: StoreError | None = None
    last_audits: dict[str, AuditEntry] = field(default_factory=dict[str, "AuditEntry"])

    @property
    def is_due(self) -> bool:
        return self.members >= MOST_MEMBERS or time.monotonic() - self.started > MOST_SECONDS

    def settle(self, failure: StoreError | None = None) -> None:
        self.failure = failure
        self.settled.set()


class Transactions:
    """Hands the writing connection from task to task and commits for them."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._turn = anyio.Lock(fast_acquire=True)
        self._group: _Group | None = None
        self._expected = 1
        self._gathering_seconds = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nobody has the connection or waits for it."""
        return not self._turn.locked()

    def open(self) -> Session:
        """Return a new transaction, for an `async with`; once its block has ended without error it is on the disk.

        Raises:
            StoreError: It could not be begun or committed, and is undone.
        """
        return Session(self, self._writer)

    async def take_turn(self) -> None:
        """Return once this task has the connection to itself."""
        await self._turn.acquire()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Writer, None]:
        """Yield the connection for what must run outside of any transaction."""
        async with self._turn:
            if self._group is not None:
                with anyio.CancelScope(shield=True):
                    await self._commit(self._group)
            yield self._writer

    async def join(self) -> _Group:
        """Begin a transaction, or a savepoint in the one that is still to be committed for others."""
        if self._group is None:
            await self._writer.begin()
            self._group = _Group()
        else:
            self._writer.call_here(_enter)
        return self._group

    async def leave(self, group: _Group | None, *, is_kept: bool) -> None:
        """Give up the turn; return once the group is on the disk."""
        try:
            if group is None:
                return
            await self._end_member(group, is_kept=is_kept)
            if not group.settled.is_set() and (group.is_due or not group.has_leader):
                await self._lead(group)
        finally:
            self._turn.release()
        if not group.settled.is_set():
            await group.settled.wait()
        if group.failure is not None:
            raise StoreError(group.failure.message) from (group.failure.__cause__ or group.failure)

    async def _end_member(self, group: _Group, *, is_kept: bool) -> None:
        if is_kept:
            is_there = self._writer.call_here(_keep, group.members > 0)
            group.members, group.last = group.members + 1, time.monotonic()
            if group.complete is not None and group.members >= self._expected:
                group.complete.set()
        else:
            group.last_audits.clear()
            is_there = await self._writer.call(_undo, group.members > 0)
        if not is_there:
            self._settle(group, StoreError(UNDONE))
        elif group.members == 0:
            self._settle(group)

    async def _lead(self, group: _Group) -> None:
        """Commit, after those already waiting, and those still expected, have had their turn."""
        group.has_leader = True
        if self._turn.statistics().tasks_waiting and not group.is_due:
            self._turn.release()
            await self._turn.acquire()
        if group.members < self._expected and not group.settled.is_set() and not group.is_due:
            self._turn.release()
            await self._gather(group)
            await self._turn.acquire()
        if not group.settled.is_set():
            await self._commit(group)

    async def _gather(self, group: _Group) -> None:
        """Return once as many have joined as last time, or once it has taken much longer than then."""
        latest = group.started + PATIENCE * self._gathering_seconds
        rest = PATIENCE_FOR_NEXT * self._gathering_seconds / (self._expected - 1)
        group.complete = anyio.Event()
        while not group.complete.is_set():
            until = min(latest, group.last + rest) if 2 * group.members > self._expected else latest
            if (left := until - time.monotonic()) <= 0:
                return
            with anyio.move_on_after(min(left, rest)):  # by then most may have joined
                await group.complete.wait()

    async def _commit(self, group: _Group) -> None:
        self._expected, self._gathering_seconds = group.members, group.last - group.started
        try:
            await self._writer.commit()
        except StoreError as failure:
            with suppress(StoreError):
                await self._writer.call(_undo, False)
            self._settle(group, failure)
        else:
            self._settle(group)
            self._writer.move_long_log()

    def _settle(self, group: _Group, failure: StoreError | None = None) -> None:
        self._group = None
        group.settle(failure)


class Session:
    """One transaction; it begins at the first statement, so that no other process waits while rows are prepared.

    A class rather than a generator, because every stored note opens one.
    """

    def __init__(self, transactions: Transactions, writer: Writer) -> None:
        self._transactions = transactions
        self._writer = writer
        self._group: _Group | None = None
        self._has_ended = False
        self._has_paused = True

    async def __aenter__(self) -> Session:
        await self._transactions.take_turn()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._has_ended = True
        if kind is not None:
            await self._undo()
            return
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            await self._undo()
            raise
        with anyio.CancelScope(shield=True):
            await self._transactions.leave(self._group, is_kept=True)

    @property
    def last_audits(self) -> dict[str, AuditEntry]:
        """The last entry of each org's audit log, as far as the transactions committed together know it.

        Nobody else writes meanwhile, so it need not be read again. Emptied when one of the transactions is undone; what
        is put in before the first statement is not kept.
        """
        return self._group.last_audits if self._group is not None else {}

    async def _undo(self) -> None:
        with anyio.CancelScope(shield=True), suppress(StoreError):
            await self._transactions.leave(self._group, is_kept=False)

    async def run(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run in the writer's thread.

        Raises:
            StoreError: A failure has ended the transaction, or it could not be begun.
        """
        await self._begin()
        self._has_paused = True
        return await self._writer.call(_run, function, *args, **kwargs)

    async def run_here(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the same in this thread, for a few rows, which cost less than a hop to another thread and back."""
        await self._begin()
        return self._writer.call_here(_run, function, *args, **kwargs)

    async def _begin(self) -> None:
        if self._has_ended:
            raise RuntimeError("this transaction has ended")
        if self._has_paused:
            # Statements run in this thread follow each other without a pause in which this task could be cancelled.
            await anyio.lowlevel.checkpoint_if_cancelled()
            self._has_paused = False
        if self._group is None:
            self._group = await self._transactions.join()


def _run(
    connection: Connection, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs
) -> R:
    require_transaction(connection)
    return function(connection, *args, **kwargs)


def _enter(connection: Connection) -> None:
    connection.execute("SAVEPOINT member")


def _keep(connection: Connection, is_within: bool) -> bool:
    """End a member that is kept; return whether the transaction is still open."""
    if not connection.in_transaction:
        return False
    if is_within:
        connection.execute("RELEASE member")
    return True


def _undo(connection: Connection, is_within: bool) -> bool:
    """Undo a member alone, or the whole transaction if it holds nothing else; return whether it was still open."""
    if not connection.in_transaction:
        return False
    connection.execute("ROLLBACK TO member; RELEASE member" if is_within else "ROLLBACK")
    return True
