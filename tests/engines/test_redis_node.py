"""The queue's contract, docs/reference/queue.md, with BullMQ's library for Node at the other end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from refdesk.core.background.embedding import Indexer, to_job
from refdesk.core.clock import SystemClock
from refdesk.core.search.semantics import Semantics
from refdesk.protocols import EmbeddingJob
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import ScriptedEmbedder, make_document
from tests.engines import redis
from tests.engines.queue_peer import Peer, install_peer, start_peer
from tests.engines.redis import RedisServer, open_patiently, until

pytestmark = pytest.mark.engines

NOTE = {"org": "acme", "toolset": "notes", "id": "pær-1"}
NAMELESS: list[object] = [
    *(None, 1, "text", [], {}),
    *({**NOTE, "id": 7}, {**NOTE, "org": ""}, {**NOTE, "id": "x" * 257}, {**NOTE, "id": "a\x00b"}),
    *({**NOTE, "id": "\ud800"}, {**NOTE, "textDigest": None}, {"org": "acme", "toolset": "notes"}),
]

UNREADABLE = [
    *({"data": text} for text in ("", "{not json", "[" * 100_000)),
    *({"opts": text} for text in ("", "nope", "[1]", "null")),
    *({"priority": "high"}, {"stacktrace": "{"}),
]


@dataclass
class Bench:
    """Documents and the process that embeds them."""

    server: RedisServer
    store: MemoryStore = field(default_factory=MemoryStore)
    embedder: ScriptedEmbedder = field(default_factory=lambda: ScriptedEmbedder(poison=frozenset({"venom"})))

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Our worker consumes the queue inside the block, and does not look for work by itself."""
        semantics = Semantics(self.store, self.embedder)
        async with (
            open_patiently(self.server.url, semantics.doorbell.ring) as shared,
            anyio.create_task_group() as group,
        ):
            indexer = Indexer(self.store, semantics, SystemClock())
            group.start_soon(shared.queue.consume, indexer.embed_job)
            yield
            group.cancel_scope.cancel()

    async def put(self, id: str, body: str = "") -> EmbeddingJob:
        document = make_document(id, body)
        async with self.store.transaction() as transaction:
            await transaction.put_documents([document])
        return to_job(document)


@pytest.fixture
def bench() -> Bench:
    return Bench(redis.get_fresh_server())


@pytest.fixture(scope="session")
def folder(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    return install_peer(pytestconfig.cache.mkdir("refdesk-queue"))


async def ask(peer: Peer, data: object, opts: object = None) -> object:
    peer.tell({"data": data, "opts": opts or {}})
    return await run_sync(peer.hear)


async def test_a_job_of_a_node_producer_is_embedded_and_it_reads_what_became_of_it(bench: Bench, folder: Path) -> None:
    await bench.put("pær-1")
    await bench.put("bad", "venom")
    with start_peer(folder, "produce", str(bench.server.port)) as peer:
        async with bench.working():
            assert await ask(peer, NOTE) == {"returned": {"outcome": "embedded"}}
            assert await ask(peer, NOTE, {"jobId": "mine"}) == {"returned": {"outcome": "current"}}
            assert await ask(peer, {**NOTE, "id": "nobody"}) == {"returned": {"outcome": "gone"}}
            assert await ask(peer, {**NOTE, "org": "other"}) == {"returned": {"outcome": "gone"}}
            assert await ask(peer, {**NOTE, "id": "bad"}) == {"returned": {"outcome": "failed"}}
            assert await ask(peer, {**NOTE, "more": {"of": "it"}}) == {"returned": {"outcome": "current"}}
        assert await run_sync(peer.end) == 0
    collection = make_document("x").collection
    assert await bench.store.get_embedded(collection, bench.embedder.name, ["pær-1"]) == {"pær-1"}


async def test_a_job_that_names_no_document_fails_once_and_the_next_one_is_done(bench: Bench, folder: Path) -> None:
    await bench.put("pær-1")
    refused = {"failed": "The job must have org, toolset and id as texts."}
    with start_peer(folder, "produce", str(bench.server.port)) as peer:
        async with bench.working():
            for data in NAMELESS:
                assert await ask(peer, data, {"attempts": 3}) == refused, data
            assert await ask(peer, NOTE) == {"returned": {"outcome": "embedded"}}


@pytest.mark.parametrize("record", UNREADABLE)
async def test_a_record_that_is_no_job_fails_once_and_the_next_one_is_done(
    bench: Bench, record: dict[str, str]
) -> None:
    job = await bench.put("pær-1")
    bench.server.put_record("mine", **record)
    async with bench.working(), open_patiently(bench.server.url) as shared:
        await until(partial(has_failed, bench.server, "mine"))
        assert await shared.queue.enqueue([job])
        await until(partial(has_no_job, bench.server))
    assert bench.server.ask("LLEN", "bull:embeddings:active") == 0
    collection = make_document("x").collection
    assert await bench.store.get_embedded(collection, bench.embedder.name, ["pær-1"]) == {"pær-1"}


async def test_a_node_worker_can_do_our_jobs(bench: Bench, folder: Path) -> None:
    jobs = [await bench.put(f"pær-{n}") for n in range(3)]
    async with open_patiently(bench.server.url) as shared:
        assert await shared.queue.enqueue(jobs)
    with start_peer(folder, "consume", str(bench.server.port), "3") as peer:
        assert await run_sync(peer.hear) == "ready"
        heard = [await run_sync(peer.hear) for _ in jobs]
        assert await run_sync(peer.end) == 0
    for one, job in zip(heard, jobs, strict=True):
        assert isinstance(one, dict)
        assert one["data"] == {"org": job.org, "toolset": job.toolset, "id": job.id, "textDigest": job.text_digest}
        assert (one["name"], one["attempts"]) == ("embed", 5)
    await until(partial(has_no_job, bench.server))


async def has_no_job(server: RedisServer) -> bool:
    return not [key for key in server.list_keys() if ":embed-" in key]


async def has_failed(server: RedisServer, id: str) -> bool:
    return server.ask("ZSCORE", "bull:embeddings:failed", id) is not None
