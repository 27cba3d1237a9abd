"""Redis, shared by many processes: a BullMQ job queue and a scratchpad.

Everything in Redis is also in the store or may be lost: without Redis everything keeps working, with each process on
its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from refdesk.queues.bullmq.connection import CALL_SECONDS, open_connection
from refdesk.queues.bullmq.queue import BullQueue
from refdesk.queues.bullmq.scratchpad import RedisScratchpad


@dataclass(frozen=True, slots=True)
class Shared:
    """What the processes of a deployment share through one Redis."""

    queue: BullQueue
    scratchpad: RedisScratchpad


@asynccontextmanager
async def open_shared(
    url: str, wake: Callable[[], None], *, desk: str = "", patience: float = CALL_SECONDS
) -> AsyncGenerator[Shared]:
    """Yield the queue and the scratchpad at a URL, whether or not Redis is there; it may come and go meanwhile.

    Opening takes at most twice the patience. On leaving the block, pending announcements are sent if that is quick.

    Args:
        url: `redis://` or `rediss://`, with user, password and database where needed; options of redis-py may follow.
        wake: Lets this process look for work by itself; called when Redis goes or comes, and for jobs it did not take.
        desk: The id of the desk's store. A Redis that serves another one counts as away.
        patience: Seconds until a call without an answer means that Redis is away.

    Raises:
        ConfigurationError: The URL is not a Redis URL.
    """
    async with open_connection(url, wake, patience, desk) as connection:
        queue = BullQueue(connection, wake)
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(queue.send)
            try:
                yield Shared(queue, RedisScratchpad(connection))
            except Exception as error:
                failure = error  # raised below, so that it does not come out wrapped in a group
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure


__all__ = ["BullQueue", "RedisScratchpad", "Shared", "open_shared"]
