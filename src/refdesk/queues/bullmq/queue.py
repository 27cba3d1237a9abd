"""The queue `embeddings` of BullMQ: announced after a commit, consumed by any number of workers."""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import bullmq

from refdesk.queues.bullmq import forgetting
from refdesk.queues.bullmq.jobs import QUEUE_NAME, write_job
from refdesk.queues.bullmq.working import work_off

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from refdesk.protocols import EmbeddingJob, JobOutcome
    from refdesk.queues.bullmq.connection import RedisConnection

MOST_ANNOUNCED = 10_000
"""Most announcements that wait to be sent; the oldest are dropped first, and the sweep finds their work again."""

AT_ONCE = 100
"""Jobs in one round trip."""


TURN_JOBS = 32
"""How many jobs of one org are queued in a row before other orgs get their turn."""

TURNS_SECONDS = 10.0
"""How long the jobs already added for an org count against it."""


@dataclass(slots=True)
class Turns:
    """Decides how far back in the queue an org's next job goes: the further, the more of its jobs were added lately."""

    _since: float = -math.inf
    _added: Counter[str] = field(default_factory=Counter[str])

    def rank(self, org: str) -> int:
        """Return the priority of the org's next job, from 0, and count the job."""
        now = anyio.current_time()
        if now - self._since >= TURNS_SECONDS:
            self._since = now
            self._added.clear()
        self._added[org] += 1
        return (self._added[org] - 1) // TURN_JOBS


class _Queue(forgetting.Queue, Protocol):
    async def addBulk(self, jobs: list[dict[str, Any]]) -> list[object]: ...


class BullQueue:
    """Tells the workers of every process what is to be embedded, as long as Redis is up.

    Args:
        connection: The connection to Redis.
        wake: Lets this process look for work by itself, since some could not be announced.
    """

    def __init__(self, connection: RedisConnection, wake: Callable[[], None]) -> None:
        self._connection = connection
        self._wake = wake
        self._queue = cast("_Queue", bullmq.Queue(QUEUE_NAME, {"connection": connection.client}))
        self._announced: deque[EmbeddingJob] = deque(maxlen=MOST_ANNOUNCED)
        self._bell = anyio.Event()
        self._turns = Turns()

    @property
    def is_shared(self) -> bool:
        """Whether Redis is up."""
        return self._connection.is_up

    @property
    def trouble(self) -> str | None:
        """Why Redis is down; `None` while it is up."""
        return self._connection.trouble

    def announce(self, jobs: Sequence[EmbeddingJob]) -> None:
        """Send the jobs soon; while Redis is down they are dropped, and this process looks for work by itself."""
        if not jobs or not self._connection.is_up:
            self._wake()
            return
        self._announced.extend(jobs)
        self._bell.set()

    async def enqueue(self, jobs: Sequence[EmbeddingJob]) -> bool:
        """Add the jobs and return whether Redis took all of them; one that is already waiting is not added again."""
        for start in range(0, len(jobs), AT_ONCE):
            batch = [write_job(job, self._turns.rank(job.org)) for job in jobs[start : start + AT_ONCE]]
            if await self._connection.call(partial(self._queue.addBulk, batch)) is None:
                return False
        return self._connection.is_up

    async def forget(self, is_meant: Callable[[EmbeddingJob], bool]) -> bool:
        """Remove matching jobs in any state and what Redis knows of them, and return whether none is left."""
        kept = [job for job in self._announced if not is_meant(job)]
        self._announced.clear()
        self._announced.extend(kept)
        return await forgetting.forget(self._connection, self._queue, is_meant)

    async def consume(self, work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]) -> None:
        """Work until cancelled, through every outage of Redis."""
        await work_off(self._connection, work)

    async def send(self) -> None:
        """Send announcements until cancelled; then those that are left, if that is quick."""
        try:
            while True:
                await self._bell.wait()
                self._bell = anyio.Event()
                await self._send_all()
        finally:
            with anyio.CancelScope(shield=True):
                await self._send_all()

    async def _send_all(self) -> None:
        while self._announced:
            jobs = [self._announced.popleft() for _ in range(min(AT_ONCE, len(self._announced)))]
            if not await self.enqueue(jobs):
                self._announced.clear()
                self._wake()
