"""Desks with stores of their own on one database of Redis: none takes another's jobs, and each says why."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import httpx2
import pytest

from refdesk.core.keeping.store_id import get_store_id, read_store_id
from refdesk.protocols import EmbeddingJob, JobOutcome
from refdesk.queues.bullmq import Shared
from refdesk.queues.bullmq.connection import DESK_KEY, ELSEWHERE
from refdesk.stores.memory import MemoryStore
from tests.acceptance.processes import run
from tests.engines import patient_refdesk, redis
from tests.engines.redis import open_patiently, until
from tests.engines.test_redis_command import get_health, start_server, store

pytestmark = pytest.mark.engines


class Worker:
    """Does whatever it gets, and remembers it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def work(self, job: EmbeddingJob) -> JobOutcome:
        self.done.append(job.id)
        return "gone"


@asynccontextmanager
async def open_desk(server: redis.RedisServer, desk: str) -> AsyncGenerator[tuple[Shared, Worker]]:
    """Yield what a process of this desk shares, and its worker, which works meanwhile."""
    worker = Worker()
    async with open_patiently(server.url, desk=desk) as shared, anyio.create_task_group() as group:
        group.start_soon(shared.queue.consume, worker.work)
        yield shared, worker
        group.cancel_scope.cancel()


def make_jobs(*ids: int) -> list[EmbeddingJob]:
    return [EmbeddingJob("acme", "notes", str(id)) for id in ids]


async def test_a_desk_never_takes_the_jobs_of_another() -> None:
    server = redis.get_fresh_server()
    async with open_desk(server, "a") as (one, ours), open_desk(server, "b") as (other, theirs):
        assert one.queue.trouble is None
        assert other.queue.trouble == ELSEWHERE
        assert not await other.queue.enqueue(make_jobs(*range(50)))
        assert await other.scratchpad.count("k", 60) is None
        assert await one.queue.enqueue(make_jobs(*range(100)))

        async def is_done() -> bool:
            return len(ours.done) == 100

        await until(is_done)
        assert theirs.done == []


async def test_processes_of_one_desk_share_its_jobs_with_workers_that_claim_nothing() -> None:
    server = redis.get_fresh_server()
    async with open_desk(server, "a") as (one, _), open_desk(server, "a") as (other, _):
        assert (one.queue.trouble, other.queue.trouble) == (None, None)
    server.ask("DEL", DESK_KEY)
    async with open_desk(server, "") as (older, _), open_desk(server, "a") as (one, _):
        assert (older.queue.trouble, one.queue.trouble) == (None, None)


async def test_a_worker_stops_while_redis_serves_another_desk_and_goes_on_after_that() -> None:
    server = redis.get_fresh_server()
    async with open_desk(server, "a") as (shared, worker):

        async def is_away() -> bool:
            return shared.queue.trouble == ELSEWHERE

        async def is_back() -> bool:
            return shared.queue.trouble is None

        async def is_quiet() -> bool:
            # A worker that waits for jobs is a blocked client.
            return cast("dict[str, object]", server.ask("INFO", "clients"))["blocked_clients"] == 0

        async def is_done() -> bool:
            return worker.done == ["1", "2"]

        assert await shared.queue.enqueue(make_jobs(1))
        await until(lambda: _has(worker, "1"))
        server.ask("SET", DESK_KEY, "b")
        await until(is_away)
        await until(is_quiet)
        server.put_record("theirs", data=json.dumps({"org": "acme", "toolset": "notes", "id": "2"}))
        assert server.ask("LLEN", "bull:embeddings:wait") == 1
        server.ask("DEL", DESK_KEY)
        await until(is_back)
        await until(is_done)


async def _has(worker: Worker, id: str) -> bool:
    return id in worker.done


async def test_a_store_has_one_id_whoever_asks_first() -> None:
    one, other = MemoryStore(), MemoryStore()
    assert await read_store_id(one) == ""
    found: list[str] = []

    async def ask() -> None:
        found.append(await get_store_id(one))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(ask)
    assert set(found) == {await read_store_id(one)}
    assert await get_store_id(other) not in found


async def test_two_servers_with_stores_of_their_own_on_one_redis(tmp_path: Path) -> None:
    with redis.running() as server, ExitStack() as stack:
        settings, homes = {"REFDESK_REDIS": server.url}, [tmp_path / "one", tmp_path / "other"]
        first = stack.enter_context(start_server(homes[0], settings, patient_refdesk.MODULE))
        store(first, "Whoever comes first has it")
        second = stack.enter_context(start_server(homes[1], settings, patient_refdesk.MODULE))

        async def is_embedded(address: str, id: str) -> bool:
            return httpx2.get(f"{address}/knowledge/{id}", timeout=120).json()["embeddingStatus"] == "ready"

        for n in range(5):
            for address in (first, second):
                id = store(address, f"Note {n}")
                await until(lambda address=address, id=id: is_embedded(address, id))
        assert ELSEWHERE not in get_health(first)[2]
        assert ELSEWHERE in get_health(second)[2]
        for home, status in zip(homes, ("ok", "warn"), strict=True):
            done = run(["doctor", "--json"], home, REFDESK_EMBEDDER="hashing", **settings)
            [check] = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "queue"]
            assert check["status"] == status
            assert (check["found"] == ELSEWHERE) is (status == "warn")
