"""A bad network before Redis: every store is acknowledged once and embedded, and no call counts twice."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.queues.bullmq import Shared, open_shared
from refdesk.queues.bullmq.connection import CALL_SECONDS
from tests.engines import redis
from tests.engines.redis import until
from tests.engines.tcp_faults import FAULTS, Fault, open_proxy
from tests.engines.test_redis_kills import is_shared, open_writer

pytestmark = pytest.mark.engines

HARMLESS = {"none", "sliced", "slow"}


@pytest.mark.parametrize("fault", FAULTS)
async def test_notes_are_stored_once_and_embedded_whatever_the_network_does(tmp_path: Path, fault: Fault) -> None:
    server = redis.get_fresh_server()
    # Where every answer comes, however late, it is waited for as long as a slow machine takes to bring it.
    patience = redis.PATIENCE_SECONDS if fault in HARMLESS else CALL_SECONDS
    async with (
        open_proxy(server.port) as proxy,
        open_writer(tmp_path, f"redis://127.0.0.1:{proxy.port}/0", 1, patience) as writer,
        anyio.create_task_group() as group,
    ):
        assert writer.base.semantics is not None
        indexer = Indexer(writer.base.store, writer.base.semantics, SystemClock(), queue=writer.base.queue)
        group.start_soon(indexer.run)
        await writer.write()
        for now in (fault, "none", fault):
            proxy.fault = now
            for _ in range(20):
                await writer.write()
        if fault in HARMLESS:
            assert await is_shared(writer)
        await writer.check()
        proxy.fault = "none"
        await until(lambda: is_shared(writer))
        await writer.write()
        await writer.check()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("spoils", [1, 1000])
@pytest.mark.parametrize("fault", FAULTS)
async def test_no_call_is_counted_twice_whatever_the_network_does(fault: Fault, spoils: int) -> None:
    server = redis.get_fresh_server()
    async with (
        open_proxy(server.port) as proxy,
        open_shared(f"redis://127.0.0.1:{proxy.port}/0", redis.do_nothing, patience=CALL_SECONDS) as shared,
    ):
        counts, asked = list[int | None](), 0
        for n in range(15):
            proxy.fault, proxy.spoils = (fault if n % 3 == 1 else "none"), spoils
            if n % 3 == 0:
                await until(lambda: is_up(shared))
            asked += shared.queue.is_shared
            counts.append(await shared.scratchpad.count("k", 60))
        proxy.fault = "none"
        last = None
        # On a busy machine an answer may come too late for this, too.
        while last is None:
            await until(lambda: is_up(shared))
            asked += 1
            last = await shared.scratchpad.count("k", 60)
        told = [count for count in counts if count is not None]
        assert len(told) + 1 <= last <= asked
        assert told == sorted(set(told))


async def is_up(shared: Shared) -> bool:
    return shared.queue.is_shared
