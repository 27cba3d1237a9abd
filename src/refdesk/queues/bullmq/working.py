"""A BullMQ worker that survives outages of Redis and shuts down gracefully."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import bullmq
from redis.exceptions import NoPermissionError

from refdesk import errors
from refdesk.queues.bullmq.connection import FAILURES, connect
from refdesk.queues.bullmq.jobs import QUEUE_NAME, read_job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from refdesk.protocols import EmbeddingJob, JobOutcome
    from refdesk.queues.bullmq.connection import RedisConnection

logger = logging.getLogger(__name__)

AT_ONCE = 32
"""Jobs that one process works on at a time: while some are embedded together, others gather for the next batch."""

BLOCK_SECONDS = 2
ANSWER_SECONDS = 5.0
"""How long a worker waits for an answer of Redis: longer than `BLOCK_SECONDS`, its wait for the next job."""

LOCK_SECONDS = 10
"""How long a worker holds a job without a sign of life; at the next check after that, another worker gets it."""

STALLED_CHECK_SECONDS = 3
MOST_STALLS = 1000
"""High enough that a job is never given up because its workers died."""

KEPT_SECONDS = 3600
KEPT_JOBS = 1000
"""How long and how many ended jobs stay, if their producer did not say, so that it can read their outcomes."""

DRAIN_SECONDS = 1.5
"""How long jobs at work may still take once the worker is told to stop, while Redis answers. Another worker takes over
those that are cut off. Clients kill a server that takes more than two seconds to end."""

UNREADABLE = {"data": "null"}
"""What replaces a record that is not a valid job of BullMQ."""

RESTART_SECONDS = 1.0
MOST_REST_SECONDS = 16.0


class _Job(Protocol):
    @property
    def data(self) -> object: ...


class _FetchedJob(_Job, Protocol):
    @property
    def token(self) -> str: ...


class _Worker(Protocol):
    closing: bool
    waiting: asyncio.Future[object] | None
    processing: set[asyncio.Future[Any]]

    async def run(self) -> None: ...

    async def processJob(self, job: _FetchedJob, token: str) -> None: ...

    async def close(self, force: bool = False) -> None: ...


class _BullWorker(bullmq.Worker):
    """Fails a job whose record cannot be read, like one that names no document: it would be fetched again for ever; and
    works also for a user of Redis who may not name connections, who in Redis 6.2 is everybody without admin rights."""

    async def _ensure_client_names(self) -> None:
        """Show the worker to whoever lists clients, if that is allowed; asked first, since BullMQ would end instead."""
        try:
            if not self._client_name_set:
                await cast("Any", self.client).client_setname(QUEUE_NAME)
        except NoPermissionError:
            self._client_name_set = True
        await cast("Any", super())._ensure_client_names()

    async def nextJobFromJobData(
        self,
        job_data: dict[str, str] | None = None,
        job_id: str | None = None,
        limit_until: int = 0,
        delay_until: int = 0,
        token: str | None = None,
    ) -> Any:  # noqa: ANN401 - BullMQ's job
        """Return the job of a record, or one without data if the record cannot be read."""
        read = cast("Callable[..., Awaitable[Any]]", super().nextJobFromJobData)  # pyright: ignore[reportUnknownMemberType]
        try:
            return await read(job_data, job_id, limit_until, delay_until, token)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return await read(UNREADABLE, job_id, limit_until, delay_until, token)


class JobNotDoneError(Exception):
    """A job is to be retried; the message is kept in Redis and holds nothing private."""


@dataclass(slots=True)
class Processor:
    """Does jobs, and rests after each failure, longer each time, so as not to overrun what is down with retries."""

    work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]
    _rest: float = 1.0

    async def process(self, job: _Job, _token: str) -> dict[str, str]:
        """Do a job and return its outcome as its producer reads it."""
        asked = read_job(job.data)
        if asked is None:
            logger.warning("job refused", extra={"reason": "it names no document"})
            raise bullmq.UnrecoverableError("The job must have org, toolset and id as texts.")
        try:
            outcome = await self.work(asked)
        except errors.RefdeskError as error:
            logger.warning("job not done", extra={"reason": error.message, "document": asked.id})
            rest, self._rest = self._rest, min(2 * self._rest, MOST_REST_SECONDS)
            await anyio.sleep(rest)
            raise JobNotDoneError(error.message) from None
        except Exception:
            logger.exception("job broke", extra={"document": asked.id})
            raise JobNotDoneError("The worker broke; its log says how.") from None
        self._rest = 1.0
        return {"outcome": outcome}


async def work_off(connection: RedisConnection, work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]) -> None:
    """Work on the queue until cancelled.

    Args:
        connection: Knows whether Redis answers; a worker opens a connection of its own to the same Redis.
        work: Does a job.
    """
    processor = Processor(work)
    while True:
        await connection.wait_until(is_ours=True)
        client = connect(connection.url, ANSWER_SECONDS)
        options: dict[str, Any] = {
            "connection": client,
            "autorun": False,
            "concurrency": AT_ONCE,
            "drainDelay": BLOCK_SECONDS,
            "lockDuration": LOCK_SECONDS * 1000,
            "stalledInterval": STALLED_CHECK_SECONDS * 1000,
            "maxStalledCount": MOST_STALLS,
            "runRetryDelay": int(RESTART_SECONDS * 1000),
            "removeOnComplete": {"age": KEPT_SECONDS, "count": KEPT_JOBS},
            "removeOnFail": {"age": KEPT_SECONDS, "count": KEPT_JOBS},
        }
        worker = cast("_Worker", _BullWorker(QUEUE_NAME, cast("Any", processor.process), cast("Any", options)))
        try:
            await _run(worker, connection)
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()
        await anyio.sleep(RESTART_SECONDS)


async def _run(worker: _Worker, connection: RedisConnection) -> None:
    """Run a worker until it ends, Redis serves another desk or this is cancelled; then let it finish its jobs, and cut
    off what takes too long."""
    running = asyncio.ensure_future(worker.run())
    leaving = asyncio.ensure_future(connection.wait_until(is_ours=False))
    try:
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        with anyio.CancelScope(shield=True):
            draining = asyncio.ensure_future(_drain(worker, running))
            # If Redis does not answer, no job can be completed there, and shutting down must not wait for it.
            if running.done() or await _answers(connection, draining):
                await asyncio.wait({draining}, timeout=DRAIN_SECONDS)
            for task in (draining, running, *worker.processing):
                task.cancel()
            await asyncio.gather(draining, running, *worker.processing, return_exceptions=True)
            await worker.close(force=True)
    failure = running.exception() if not running.cancelled() else None
    if failure is not None and not isinstance(failure, FAILURES):
        logger.error("worker broke", exc_info=failure)


async def _answers(connection: RedisConnection, draining: asyncio.Future[None]) -> bool:
    """Return whether Redis answers, as far as is known by the time the worker has drained."""
    probing = asyncio.ensure_future(connection.probe())
    await asyncio.wait({probing, draining}, return_when=asyncio.FIRST_COMPLETED)
    if not probing.done():
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
    return connection.is_up


async def _drain(worker: _Worker, running: asyncio.Future[None]) -> None:
    """Finish the worker's jobs. BullMQ's own way of closing loses jobs that are being fetched at that moment."""
    worker.closing = True
    if worker.waiting is not None:
        worker.waiting.cancel()
    await asyncio.wait({running})
    while worker.processing:
        ended: list[_FetchedJob | BaseException | None]
        ended = await asyncio.gather(*worker.processing, return_exceptions=True)
        fetched = [job for job in ended if job is not None and not isinstance(job, BaseException)]
        worker.processing = {asyncio.ensure_future(worker.processJob(job, job.token)) for job in fetched}
