"""Tasks: calls that take long, whose callers come back for the outcome, even over another connection.

A task is a record in the store, made before its caller hears of it and kept for an hour after its outcome. The process
that works on it renews a lease; when a process dies, another takes over its tasks if repeating them is safe, or else
says that they were interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.core.background.leases import Holder, is_dead
from refdesk.core.identifiers import Uuid7Identifiers
from refdesk.errors import LimitExceededError
from refdesk.model import Metadata, MetadataKey, Principal

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.protocols import Clock, Identifiers, Store, Transaction

KIND = "task"
KEPT = timedelta(hours=1)
"""How long an outcome is kept."""

LEASE = timedelta(seconds=30)
"""How long a task is left to a process that does not renew it; a process that died on this machine is replaced at
once."""

MOST_WORKING = 20
"""Most tasks of one agent that may be worked on at a time."""

PAGE = 1000

Status: TypeAlias = Literal["working", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Task:
    """A call that takes long.

    Attributes:
        principal: Who called; nobody else can see it.
        tool: What was called.
        arguments: The arguments of the call, as they may be kept; `None` once the task has ended.
        message: What is being done, or why it ended without a result.
        outcome: The result if it was completed, the error if it failed.
        holder: Who works on it.
    """

    id: str
    principal: Principal
    tool: str
    status: Status
    created_at: datetime
    updated_at: datetime
    holder: Holder
    arguments: JsonObject | None = None
    message: str = ""
    outcome: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The tasks of a store, as one process sees them."""

    store: Store
    clock: Clock
    holder: Holder = field(default_factory=Holder)
    identifiers: Identifiers = field(default_factory=Uuid7Identifiers)

    async def create(self, principal: Principal, tool: str, arguments: JsonObject) -> Task:
        """Return a new task, which is durable and assigned to this process.

        Raises:
            LimitExceededError: The agent has too many tasks that are being worked on.
        """
        now = self.clock.now()
        task = Task(self.identifiers.new(), principal, tool, "working", now, now, self.holder, arguments)
        async with self.store.transaction() as transaction:
            found = [_decode(each) for each in await transaction.list_metadata(KIND, org=principal.org, limit=PAGE)]
            working = [each for each in found if each.status == "working"]
            if sum(each.principal.agent == principal.agent for each in working) >= MOST_WORKING:
                raise LimitExceededError(
                    f"You have {MOST_WORKING} tasks that are being worked on; wait for one, or cancel it.",
                    retry_after_seconds=5.0,
                )
            await transaction.put_metadata([self._encode(task)])
        return task

    async def get(self, principal: Principal, id: str) -> Task | None:
        """Return a task of this caller; `None` if it does not exist or belongs to another caller."""
        record = await self.store.get_metadata(MetadataKey(principal.org, KIND, id))
        task = _decode(record) if record is not None else None
        return task if task is not None and task.principal.agent == principal.agent else None

    async def renew(self, task: Task, message: str) -> bool:
        """Note that a task is still being worked on; return whether it is still assigned to this process."""
        return await self._change(task, message=message)

    async def finish(self, task: Task, status: Status, outcome: JsonObject | None, message: str = "") -> None:
        """Keep a task's outcome, unless it was cancelled or another process took it over."""
        await self._change(task, status=status, outcome=outcome, message=message, arguments=None)

    async def cancel(self, task: Task) -> None:
        """Cancel a task, unless it has ended. The process that works on it notices when renewing it."""
        async with self.store.transaction() as transaction:
            now = await self._read(transaction, task)
            if now is not None and now.status == "working":
                ended = replace(now, status="cancelled", arguments=None, updated_at=self.clock.now())
                await transaction.put_metadata([self._encode(ended)])

    async def take_over(self) -> list[Task]:
        """Take over and return the tasks that nobody works on any more; delete those whose outcome has expired."""
        due = [_decode(each) for each in await self.store.list_metadata(KIND, due_until=self._farthest(), limit=PAGE)]
        taken: list[Task] = []
        for task in due:
            async with self.store.transaction() as transaction:
                now = await self._read(transaction, task)
                if now is not None and now.status == "working" and self._is_abandoned(now):
                    taken.append(replace(now, holder=self.holder, updated_at=self.clock.now()))
                    await transaction.put_metadata([self._encode(taken[-1])])
                elif now is not None and now.status != "working" and now.updated_at + KEPT <= self.clock.now():
                    await transaction.remove_metadata([_key(now)])
        return taken

    async def _change(self, task: Task, **changes: object) -> bool:
        async with self.store.transaction() as transaction:
            now = await self._read(transaction, task)
            if now is None or now.status != "working" or now.holder != self.holder:
                return False
            changed = replace(now, updated_at=self.clock.now(), **changes)  # pyright: ignore[reportArgumentType]
            await transaction.put_metadata([self._encode(changed)])
        return True

    async def _read(self, transaction: Transaction, task: Task) -> Task | None:
        record = await transaction.get_metadata(_key(task))
        return _decode(record) if record is not None else None

    def _is_abandoned(self, task: Task) -> bool:
        is_gone = task.holder.host == self.holder.host and is_dead(task.holder.process)
        return is_gone or task.updated_at + LEASE <= self.clock.now()

    def _farthest(self) -> datetime:
        """Return the latest due time of records to look at: one not due yet may be of a process that died just now."""
        return self.clock.now() + LEASE

    def _encode(self, task: Task) -> Metadata:
        value: JsonObject = {
            "agent": task.principal.agent,
            "scopes": sorted(task.principal.scopes),
            "tool": task.tool,
            "status": task.status,
            "created_at": task.created_at.isoformat(),
            "updated_at": task.updated_at.isoformat(),
            "host": task.holder.host,
            "process": task.holder.process,
            "token": task.holder.token,
            "arguments": task.arguments,
            "message": task.message,
            "outcome": task.outcome,
        }
        return Metadata(_key(task), value, task.updated_at + (LEASE if task.status == "working" else KEPT))


def _key(task: Task) -> MetadataKey:
    return MetadataKey(task.principal.org, KIND, task.id)


def _decode(record: Metadata) -> Task:
    value = record.value
    scopes = frozenset(str(scope) for scope in cast("list[str]", value["scopes"]))
    return Task(
        id=record.key.name,
        principal=Principal(record.key.org, str(value["agent"]), scopes),
        tool=str(value["tool"]),
        status=cast("Status", value["status"]),
        created_at=datetime.fromisoformat(str(value["created_at"])),
        updated_at=datetime.fromisoformat(str(value["updated_at"])),
        holder=Holder(str(value["host"]), int(str(value["process"])), str(value["token"])),
        arguments=cast("JsonObject | None", value["arguments"]),
        message=str(value["message"]),
        outcome=cast("JsonObject | None", value["outcome"]),
    )
