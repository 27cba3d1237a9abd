"""Forgetting jobs, whether waiting, at work, or ended but still remembered, and all record of their outcomes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from refdesk.queues.bullmq.jobs import read_record

if TYPE_CHECKING:
    from refdesk.protocols import EmbeddingJob
    from refdesk.queues.bullmq.connection import RedisConnection

LISTS = ("wait", "paused", "active")
SORTED_SETS = ("prioritized", "delayed", "waiting-children", "completed", "failed")
PAGE = 100
PATIENCE_SECONDS = 5.0
"""How long a job at work may take to end; its worker finds its document gone."""

LOOK_SECONDS = 0.1


class Queue(Protocol):
    """The part of BullMQ's queue that is used here."""

    async def remove(self, job_id: str) -> int:
        """Return 1 when the job is gone, 0 while a worker holds it."""
        ...

    def toKey(self, type: str) -> str:
        """Return the name of one of the queue's keys."""
        ...


async def forget(connection: RedisConnection, queue: Queue, is_meant: Callable[[EmbeddingJob], bool]) -> bool:
    """Remove matching jobs and their events, and return whether none is left; `False` also if Redis is down."""
    gone: set[str] = set()
    with anyio.move_on_after(PATIENCE_SECONDS):
        while connection.is_up:
            left = [job_id async for job_id in _list_jobs(connection, queue, is_meant)]
            if not left:
                break
            for job_id in left:
                await connection.call(partial(queue.remove, job_id))
            gone.update(left)
            await anyio.sleep(LOOK_SECONDS)
        await _forget_events(connection, queue.toKey("events"), gone)
        return connection.is_up
    return False


async def _list_jobs(
    connection: RedisConnection, queue: Queue, is_meant: Callable[[EmbeddingJob], bool]
) -> AsyncIterator[str]:
    # Read directly from the keys: BullMQ's own listing fails at any record that is not JSON, whoever wrote it.
    for state in (*LISTS, *SORTED_SETS):
        start = 0
        while page := await connection.call(partial(_read_page, connection, queue, state, start)):
            for job_id, data in page:
                known = read_record(data)
                if known is not None and is_meant(known):
                    yield job_id
            start += PAGE


async def _read_page(connection: RedisConnection, queue: Queue, state: str, start: int) -> list[tuple[str, str | None]]:
    """Return the ids of jobs in a state, in order, with their data; `None` for a job without a record."""
    client, key = cast("Any", connection.client), queue.toKey(state)
    ids: list[str] = await (client.lrange if state in LISTS else client.zrange)(key, start, start + PAGE - 1)
    async with client.pipeline(transaction=False) as pipe:
        for job_id in ids:
            pipe.hget(queue.toKey(job_id), "data")
        return list(zip(ids, await pipe.execute(), strict=True))


async def _forget_events(connection: RedisConnection, key: str, gone: set[str]) -> None:
    """Remove the events of these jobs from BullMQ's stream of events."""
    after = "-"
    while gone and (events := await connection.call(partial(_read_events, connection, key, after))):
        named = [event_id for event_id, fields in events if fields.get("jobId") in gone]
        if named:
            await connection.call(partial(_delete, connection, key, named))
        after = f"({events[-1][0]}"


async def _read_events(connection: RedisConnection, key: str, after: str) -> list[tuple[str, Mapping[str, str]]]:
    return await cast("Any", connection.client).xrange(key, min=after, count=PAGE)


async def _delete(connection: RedisConnection, key: str, ids: list[str]) -> int:
    return int(await cast("Any", connection.client).xdel(key, *ids))
