"""What was erased is gone from Redis too: jobs in every state, what became of them, and answers to repetitions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import bullmq
import pytest
from redis.asyncio import Redis

from refdesk.core.context import Context
from refdesk.core.keeping.erasing import Erasable, erase_everywhere
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing.audit import Actor
from refdesk.errors import StoreError
from refdesk.model import Principal
from refdesk.protocols import EmbeddingJob, JobOutcome
from refdesk.queues.bullmq.jobs import JOB_NAME, QUEUE_NAME
from refdesk.stores.postgres import open_store as open_postgres
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import models, operations
from tests.acceptance.processes import make_environment
from tests.conftest import REPOSITORY
from tests.engines import patient_refdesk, postgres, redis
from tests.engines.redis import RedisServer, open_patiently, until

pytestmark = pytest.mark.engines

CANARY = "xylocarpine"
ANN = Principal("acme", "ann", frozenset({"knowledge:read", "knowledge:write"}))
TOKENS = ("0d3b2f6e-8a4e-4c0e-9d0f-5b1f3f0c9a11", "0d3b2f6e-8a4e-4c0e-9d0f-5b1f3f0c9a12")
LATER = {"delay": 3_600_000}


def read_everything(server: RedisServer) -> str:
    """Return all that is in Redis, names and values, as text."""
    readers = {
        "string": ("GET", ()),
        "hash": ("HGETALL", ()),
        "list": ("LRANGE", ("0", "-1")),
        "set": ("SMEMBERS", ()),
        "zset": ("ZRANGE", ("0", "-1")),
        "stream": ("XRANGE", ("-", "+")),
    }
    kept: dict[str, str] = {}
    for key in server.list_keys():
        kind = str(server.ask("TYPE", key))
        if kind == "none":
            continue  # it has expired since it was listed
        command, span = readers[kind]
        kept[key] = str(server.ask(command, key, *span))
    return json.dumps(kept)


async def test_jobs_their_ends_and_answers_are_gone_and_those_of_others_stay(tmp_path: Path) -> None:
    server, path = redis.get_fresh_server(), tmp_path / "store.sqlite3"
    async with open_patiently(server.url) as shared, open_store(path) as store:
        base = KnowledgeBase(store, queue=shared.queue, scratchpad=shared.scratchpad)
        ids = [await store_note(base, number, token) for number, token in enumerate(TOKENS)]
        await end_jobs(server, ids)
        await wait_for_jobs(server, ids)
    server.put_record("foreign", data="{not json")
    server.ask("LPUSH", "bull:embeddings:wait", "without-a-record")
    before = read_everything(server)
    assert all(text in before for text in (*ids, *TOKENS, CANARY))
    assert await erase(path, server, "--entry", ids[0]) == {"erased": 1, "isScrubbed": True}
    after = read_everything(server)
    assert [text for text in (ids[0], TOKENS[0], f"{CANARY} {ids[0]}") if text in after] == []
    assert all(text in after for text in (ids[1], TOKENS[1]))
    assert (await erase(path, server))["isScrubbed"]
    assert [text for text in (*ids, *TOKENS, "acme") if text in read_everything(server)] == []


async def erase(path: Path, server: RedisServer, *what: str) -> dict[str, Any]:
    """Return what the command says."""
    command = [sys.executable, "-m", patient_refdesk.MODULE, "erase", "--org", "acme", *what, "--yes", "--json"]
    variables = {"REFDESK_STORE": f"sqlite:///{path}", "REFDESK_REDIS": server.url, "REFDESK_EMBEDDER": "hashing"}
    done = await anyio.run_process(command, env=make_environment(path.parent, **variables), cwd=REPOSITORY)
    return json.loads(done.stdout.splitlines()[-1])


async def store_note(base: KnowledgeBase, number: int, token: str) -> str:
    entry = {"title": f"Note {number}", "body": "Something.", "clientToken": token}
    stored = await operations.store_knowledge(Context(ANN, base), models.StoreInput.model_validate(entry))
    return stored.id


async def end_jobs(server: RedisServer, ids: list[str]) -> None:
    """Let a worker do one job of each document, of a producer that keeps what became of it; another one fails."""
    async with open_patiently(server.url) as shared:
        done: list[str] = []

        async def work(job: EmbeddingJob) -> JobOutcome:
            if job.text_digest == "bad":
                raise StoreError("It cannot be done.")
            done.append(job.id)
            return "current"

        for id in ids:
            await add(server, id, {})
            await add(server, id, {}, "bad")
        async with anyio.create_task_group() as group:
            group.start_soon(shared.queue.consume, work)

            async def have_ended() -> bool:
                return set(done) >= set(ids) and server.ask("ZCARD", "bull:embeddings:failed") == len(ids)

            await until(have_ended)
            group.cancel_scope.cancel()


async def wait_for_jobs(server: RedisServer, ids: list[str]) -> None:
    for id in ids:
        await add(server, id, LATER)
        await add(server, id, {"priority": 5})
        await add(server, id, {})


async def add(server: RedisServer, id: str, options: dict[str, Any], digest: str = "") -> None:
    """Add a job as a producer of other hands, with a field of its own."""
    data = {"org": "acme", "toolset": "knowledge", "id": id, "textDigest": digest, "note": f"{CANARY} {id}"}
    async with Redis.from_url(server.url, decode_responses=True) as client:  # pyright: ignore[reportUnknownMemberType]
        queue = cast("Any", bullmq.Queue(QUEUE_NAME, {"connection": client}))
        await queue.add(JOB_NAME, data, options)


async def test_what_one_store_had_is_gone_from_redis_though_the_next_store_fails(tmp_path: Path) -> None:
    server = redis.get_fresh_server()
    with postgres.running() as other:
        async with (
            open_patiently(server.url) as shared,
            open_store(tmp_path / "store.sqlite3") as store,
            open_postgres(other.get_url(), patience_seconds=2) as failing,
        ):
            base = KnowledgeBase(store, queue=shared.queue, scratchpad=shared.scratchpad)
            ids = [await store_note(base, number, token) for number, token in enumerate(TOKENS)]
            await wait_for_jobs(server, ids)
            other.kill()
            actor, wanted = Actor("acme", "ann", "cli"), Erasable("acme", agent="ann")
            with pytest.raises(StoreError):
                await erase_everywhere([base, replace(base, store=failing)], actor, wanted)
    assert [text for text in (*ids, *TOKENS, CANARY) if text in read_everything(server)] == []


async def test_without_redis_it_says_that_traces_may_be_left(tmp_path: Path) -> None:
    server, path = redis.get_fresh_server(), tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        id = await store_note(KnowledgeBase(store), 0, TOKENS[0])
    server.kill()
    assert await erase(path, server, "--entry", id) == {"erased": 1, "isScrubbed": False}
    server.start()
