"""Redis and workers die under load: no acknowledged note is lost or there twice, and every one gets its vectors."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import anyio
import pytest
from anyio.to_thread import run_sync

from refdesk.core.context import Context
from refdesk.core.keeping.store_id import get_store_id
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Principal
from refdesk.queues.bullmq import open_shared
from refdesk.queues.bullmq.connection import CALL_SECONDS
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import models, operations
from tests.acceptance.processes import make_environment
from tests.conftest import REPOSITORY
from tests.engines import patient_refdesk, redis
from tests.engines.redis import RedisServer, until

pytestmark = pytest.mark.engines

ANN = Principal("acme", "ann", frozenset({"knowledge:read", "knowledge:write"}))
COLLECTION = models.get_collection("acme")
NORMAL = pytest.param(3, id="3 kills")
LONG = pytest.param(300, id="300 kills", marks=[pytest.mark.soak, pytest.mark.timeout(3600)])


@asynccontextmanager
async def start_worker(home: Path, url: str, module: str = "refdesk") -> AsyncGenerator[subprocess.Popen[bytes]]:
    """Yield `refdesk worker`, at work; it is killed at the latest when the block is left."""
    variables = {"REFDESK_EMBEDDER": "hashing", "REFDESK_REDIS": url, "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile(dir=home) as log:
        process = subprocess.Popen(  # noqa: ASYNC220 - starting it waits for nothing
            [sys.executable, "-m", module, "worker", "--toolset", "knowledge"],
            env=make_environment(home, **variables),
            cwd=REPOSITORY,
            stderr=log,
        )

        async def is_working() -> bool:
            said = os.pread(log.fileno(), 65536, 0)
            assert process.poll() is None, said.decode()
            return b'"working"' in said

        try:
            await until(is_working)
            yield process
        finally:
            process.kill()
            process.wait(redis.PATIENCE_SECONDS)


@dataclass
class Writer:
    """Writes notes and remembers which were acknowledged."""

    base: KnowledgeBase
    random: random.Random
    ids: dict[str, str] = field(default_factory=dict[str, str])

    async def write(self) -> None:
        """Store one note; now and then twice, as one whose reply got lost."""
        token = str(UUID(int=self.random.getrandbits(128), version=4))
        for _ in range(1 + (self.random.random() < 0.3)):
            entry = {"title": f"Note {token}", "body": "Something worth knowing.", "clientToken": token}
            output = await operations.store_knowledge(Context(ANN, self.base), models.StoreInput.model_validate(entry))
            assert self.ids.setdefault(token, output.id) == output.id

    async def write_until(self, enough: anyio.Event) -> None:
        while not enough.is_set():
            await self.write()

    async def is_embedded(self) -> bool:
        return not await self.base.store.get_unembedded(COLLECTION, HashingEmbedder().model.name, 1)

    async def check(self) -> None:
        """Wait for every note's vectors, and see that each is there, once."""
        await until(self.is_embedded)
        there = await self.base.store.get_digests(COLLECTION)
        assert set(self.ids.values()) == set(there)
        assert len(set(self.ids.values())) == len(self.ids)


@asynccontextmanager
async def open_writer(home: Path, url: str, seed: int, patience: float = CALL_SECONDS) -> AsyncGenerator[Writer]:
    async with open_store(home / "refdesk.sqlite3") as opened:
        semantics = Semantics(opened, HashingEmbedder())
        desk = await get_store_id(opened)
        async with open_shared(url, semantics.doorbell.ring, desk=desk, patience=patience) as shared:
            base = KnowledgeBase(opened, semantics, queue=shared.queue, scratchpad=shared.scratchpad)
            yield Writer(base, random.Random(seed))


@asynccontextmanager
async def load(home: Path, url: str, seed: int) -> AsyncGenerator[Writer]:
    """Yield a writer that four agents keep busy inside the block; afterwards everything must be there."""
    enough = anyio.Event()
    async with open_writer(home, url, seed) as writer:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(writer.write_until, enough)
            yield writer
            enough.set()
        await writer.check()


async def write_some(writer: Writer, count: int) -> None:
    """Return when so many more notes are acknowledged."""
    wanted = len(writer.ids) + count

    async def are_enough() -> bool:
        return len(writer.ids) >= wanted

    await until(are_enough)


@pytest.fixture
def server() -> Generator[RedisServer]:
    """A Redis that the test may kill."""
    with redis.running() as started:
        yield started


@pytest.mark.parametrize("kills", [NORMAL, LONG])
async def test_redis_is_killed_under_load_and_nothing_is_lost(tmp_path: Path, server: RedisServer, kills: int) -> None:
    async with start_worker(tmp_path, server.url), load(tmp_path, server.url, kills) as writer:
        for _ in range(kills):
            await write_some(writer, writer.random.randint(1, 40))
            server.kill()
            await write_some(writer, writer.random.randint(0, 10))
            server.start()


@pytest.mark.parametrize("kills", [NORMAL, LONG])
async def test_workers_are_killed_under_load_and_nothing_is_lost(
    tmp_path: Path, server: RedisServer, kills: int
) -> None:
    async with start_worker(tmp_path, server.url), load(tmp_path, server.url, kills) as writer:
        for _ in range(kills):
            async with start_worker(tmp_path, server.url) as doomed:
                await write_some(writer, writer.random.randint(1, 40))
                doomed.kill()


async def test_redis_is_flushed_under_load_and_nothing_is_lost(tmp_path: Path, server: RedisServer) -> None:
    async with start_worker(tmp_path, server.url), load(tmp_path, server.url, 1) as writer:
        for _ in range(5):
            await write_some(writer, 20)
            server.ask("FLUSHALL")


async def test_without_redis_a_worker_embeds_what_is_written(tmp_path: Path, server: RedisServer) -> None:
    async with start_worker(tmp_path, server.url):
        server.kill()
        async with load(tmp_path, server.url, 1) as writer:
            await write_some(writer, 20)


async def test_what_is_written_before_there_is_a_worker_is_embedded_by_many(
    tmp_path: Path, server: RedisServer
) -> None:
    async with open_writer(tmp_path, server.url, 1) as writer:
        for _ in range(50):
            await writer.write()
        server.ask("FLUSHALL")
        async with start_worker(tmp_path, server.url), start_worker(tmp_path, server.url):
            await writer.check()

            async def is_empty() -> bool:
                return not [key for key in server.list_keys() if "embed-" in key]

            await until(is_empty)


async def test_while_redis_says_nothing_notes_are_stored_and_embedded(tmp_path: Path, server: RedisServer) -> None:
    async with start_worker(tmp_path, server.url), open_writer(tmp_path, server.url, 1) as writer:
        server.freeze()
        for _ in range(40):
            await writer.write()
        await writer.check()
        server.thaw()
        await until(lambda: is_shared(writer))
        await writer.write()
        await writer.check()


async def test_a_worker_that_is_told_to_stop_ends_its_jobs_and_leaves_none_locked(
    tmp_path: Path, server: RedisServer
) -> None:
    async with (
        start_worker(tmp_path, server.url, patient_refdesk.MODULE) as worker,
        open_writer(tmp_path, server.url, 1, redis.PATIENCE_SECONDS) as writer,
    ):
        for _ in range(30):
            await writer.write()
        worker.terminate()
        assert await run_sync(worker.wait, redis.PATIENCE_SECONDS) == 0
        assert not [key for key in server.list_keys() if key.endswith(":lock")]
        assert server.ask("LLEN", "bull:embeddings:active") == 0


async def is_shared(writer: Writer) -> bool:
    assert writer.base.queue is not None
    return writer.base.queue.is_shared
