"""Idempotency tokens with Redis between two servers of one store: one entry each, whatever Redis forgets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import anyio
import pytest

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import idempotency
from refdesk.errors import ConflictError
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import models, operations
from tests.engines import redis

pytestmark = pytest.mark.engines

ANN = Principal("acme", "ann", frozenset({"knowledge:write"}))
COLLECTION = models.get_collection("acme")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repetition waits for the first call as long as that takes on a slow machine."""
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", redis.PATIENCE_SECONDS)


@asynccontextmanager
async def open_server(path: Path, url: str) -> AsyncGenerator[KnowledgeBase]:
    async with open_store(path) as store, redis.open_patiently(url) as shared:
        yield KnowledgeBase(store, queue=shared.queue, scratchpad=shared.scratchpad)


async def store(base: KnowledgeBase, token: str, title: str = "A", agent: str = "ann") -> models.StoreOutput:
    entry = models.StoreInput.model_validate({"title": title, "body": "B", "clientToken": token})
    return await operations.store_knowledge(Context(Principal("acme", agent, ANN.scopes), base), entry)


def make_token(n: int) -> str:
    return str(UUID(int=n, version=4))


async def test_of_two_servers_at_the_same_time_one_stores_and_both_answer(tmp_path: Path) -> None:
    server, path = redis.get_fresh_server(), tmp_path / "store.sqlite3"
    answers: dict[int, list[models.StoreOutput]] = {n: [] for n in range(40)}

    async def ask(base: KnowledgeBase, n: int) -> None:
        answers[n].append(await store(base, make_token(n)))

    async with open_server(path, server.url) as one, open_server(path, server.url) as other:
        async with anyio.create_task_group() as group:
            for n in answers:
                group.start_soon(ask, one, n)
                group.start_soon(ask, other, n)
                if n % 10 == 9:
                    await anyio.lowlevel.checkpoint()
                    server.ask("FLUSHALL")
        assert len(await one.store.get_digests(COLLECTION)) == len(answers)
    for pair in answers.values():
        assert len({answer.id for answer in pair}) == 1
        assert sorted(answer.replayed for answer in pair) == [False, True]


async def test_two_deployments_on_one_redis_answer_for_their_own_entries_only(tmp_path: Path) -> None:
    server = redis.get_fresh_server()
    async with open_server(tmp_path / "a", server.url) as one, open_server(tmp_path / "b", server.url) as other:
        first, own = await store(one, make_token(1)), await store(other, make_token(1))
        assert (own.id != first.id, own.replayed) == (True, False)
        assert set(await other.store.get_digests(COLLECTION)) == {own.id}
        assert await store(other, make_token(1)) == own.model_copy(update={"replayed": True})


async def test_a_repetition_is_answered_by_any_server_whatever_becomes_of_redis(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with redis.running() as server:
        async with open_server(path, server.url) as one, open_server(path, server.url) as other:
            first = await store(one, make_token(1))
            assert f"idem:k.store:acme:ann:{make_token(1)}" in server.list_keys()
            again = first.model_copy(update={"replayed": True})
            assert await store(other, make_token(1)) == again
            server.ask("FLUSHALL")
            assert await store(other, make_token(1)) == again
            server.kill()
            assert await store(other, make_token(1)) == again
            assert len(await one.store.get_digests(COLLECTION)) == 1


async def test_another_payload_is_a_conflict_on_the_other_server_and_another_agents_token_is_not(
    tmp_path: Path,
) -> None:
    server, path = redis.get_fresh_server(), tmp_path / "store.sqlite3"
    async with open_server(path, server.url) as one, open_server(path, server.url) as other:
        first = await store(one, make_token(1))
        with pytest.raises(ConflictError, match="another request"):
            await store(other, make_token(1), "Another title")
        assert (await store(other, make_token(1), agent="bob")).id != first.id


async def test_a_note_holds_no_text_and_has_an_end(tmp_path: Path) -> None:
    server, path = redis.get_fresh_server(), tmp_path / "store.sqlite3"
    async with open_server(path, server.url) as one:
        await store(one, make_token(1), "A title to be kept to ourselves")
    [key] = [key for key in server.list_keys() if key.startswith("idem:")]
    assert "ourselves" not in str(server.ask("GET", key))
    ttl = server.ask("PTTL", key)
    assert isinstance(ttl, int)
    assert 0 < ttl <= 60_000
