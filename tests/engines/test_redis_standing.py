"""A queue whose jobs nobody does: what is written gets its vectors all the same, only later."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from refdesk.core.background.embedding import LEFT_SECONDS, Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.doorbell import Doorbell
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from tests.engines import redis
from tests.engines.test_redis_kills import open_writer

pytestmark = pytest.mark.engines


@pytest.mark.parametrize(("field", "value"), [("paused", "1"), ("concurrency", "0")])
async def test_what_waits_in_a_queue_that_stands_still_is_embedded_by_who_hands_it_out(
    tmp_path: Path, field: str, value: str
) -> None:
    server = redis.get_fresh_server()
    seconds = 0.0
    async with open_writer(tmp_path, server.url, 1, redis.PATIENCE_SECONDS) as writer:
        server.ask("HSET", "bull:embeddings:meta", field, value)
        semantics = Semantics(writer.base.store, HashingEmbedder(), doorbell=Doorbell(lambda: seconds))
        indexer = Indexer(writer.base.store, semantics, SystemClock(), queue=writer.base.queue)
        assert writer.base.queue is not None
        async with anyio.create_task_group() as group:
            group.start_soon(writer.base.queue.consume, indexer.embed_job)
            for _ in range(5):
                await writer.write()
            await indexer.sweep()
            assert not await writer.is_embedded()
            seconds = LEFT_SECONDS
            await indexer.sweep()
            assert await writer.is_embedded()
            group.cancel_scope.cancel()
