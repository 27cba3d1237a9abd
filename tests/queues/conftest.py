"""One suite, every queue: a test that takes `bench` runs once on each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from refdesk.core.doorbell import Doorbell
from refdesk.protocols import EmbeddingJob, JobOutcome, JobQueue
from refdesk.queues.local import LocalQueue
from tests.engines import redis

NAMES = ["local", pytest.param("bullmq", marks=pytest.mark.engines)]


@dataclass
class Bench:
    """A queue, whoever is woken by it, and what its worker was given."""

    queue: JobQueue
    doorbell: Doorbell
    done: list[str] = field(default_factory=list[str])

    async def work(self, job: EmbeddingJob) -> JobOutcome:
        self.done.append(job.id)
        return "embedded"

    async def is_done(self) -> bool:
        return bool(self.done)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """A worker consumes the queue inside the block."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.queue.consume, self.work)
            yield
            group.cancel_scope.cancel()


@pytest.fixture(params=NAMES)
async def bench(request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    doorbell = Doorbell()
    if request.param == "local":
        yield Bench(LocalQueue(doorbell), doorbell)
        return
    async with redis.open_patiently(redis.get_fresh_server().url, doorbell.ring) as shared:
        yield Bench(shared.queue, doorbell)
