"""A write goes by what its process knows, in one round trip, and by nothing that another process has changed since."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import anyio
import pytest

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import audit
from refdesk.core.writing.quotas import Quota, list_keys, read_usage
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.errors import QuotaExceededError
from refdesk.model import Metadata, MetadataKey, Principal
from refdesk.protocols import OutdatedError
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.connections import Statement
from refdesk.stores.postgres.store import PostgresStore
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.models import StoreInput, StoreOutput
from refdesk.toolsets.knowledge.operations import store_knowledge
from tests.engines.postgres import get_store_url
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

ORG, KEY = NOTES.org, MetadataKey(NOTES.org, "count", "n")
SCOPES = frozenset({"knowledge:write"})
TOKEN = "0b5c1e1a-6a54-4a3a-9d62-7d9a1a0f3c11"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[PostgresStore]:
    async with open_store(get_store_url(tmp_path)) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


@pytest.fixture
async def another(store: PostgresStore, tmp_path: Path) -> AsyncGenerator[PostgresStore]:
    """The same store as another process has it open."""
    async with open_store(get_store_url(tmp_path)) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


def make_context(store: PostgresStore, agent: str = "a", *, per_org: int | None = None) -> Context:
    quota = Quota(QUOTA_NAME, per_org=per_org)
    watched = audit.watch(store, KnowledgeBase(store, Semantics(store, HashingEmbedder())).clock, actor(agent), "store")
    base = KnowledgeBase(watched, Semantics(store, HashingEmbedder()), quotas={quota.name: quota})
    return Context(Principal(ORG, agent, SCOPES), base)


def actor(agent: str) -> audit.Actor:
    return audit.Actor(ORG, agent, "rest")


async def write(context: Context, text: str, token: str | None = None) -> StoreOutput:
    note = {"title": "Apples", "body": text, "clientToken": token}
    return await store_knowledge(context, StoreInput.model_validate({k: v for k, v in note.items() if v}))


async def list_trips(store: PostgresStore, context: Context, texts: Sequence[str]) -> list[int]:
    """Return of how many statements each round trip is in which notes are stored."""
    send, trips = store.connections.send, list[int]()

    async def counted(connection: object, *statements: Statement, **options: object) -> object:
        trips.append(len(statements))
        return await send(connection, *statements, **options)  # pyright: ignore[reportArgumentType]

    store.connections.send = counted  # pyright: ignore[reportAttributeAccessIssue]
    try:
        for text in texts:
            await write(context, text)
    finally:
        store.connections.send = send
    return trips


async def test_who_wrote_last_writes_the_next_note_in_one_round_trip(store: PostgresStore) -> None:
    context = make_context(store)
    assert len(await list_trips(store, context, ["first"])) == 2
    # They begin, require what is known, put the document, its entry, spans, records and audit entry, count, commit.
    assert await list_trips(store, context, ["second", "third", "fourth"]) == [10, 10, 10]
    assert (await audit.verify(store, ORG)).entries == 4
    assert len(await store.get_digests(models.get_collection(ORG))) == 4


async def test_what_processes_write_in_turns_is_all_there_and_in_order(
    store: PostgresStore, another: PostgresStore
) -> None:
    contexts = [make_context(store, "a"), make_context(another, "b")]
    for number in range(12):
        await write(contexts[number // 3 % 2], f"note {number}")
    assert (await read_usage(store, Quota(QUOTA_NAME), ORG, "b")) == (
        await read_usage(another, Quota(QUOTA_NAME), ORG, "b")
    )
    assert (await read_usage(store, Quota(QUOTA_NAME), ORG, "a")).org == 12
    verdict = await audit.verify(store, ORG)
    assert (verdict.entries, verdict.broken) == (12, None)


async def test_agents_of_two_processes_use_up_a_quota_to_the_last_note(
    store: PostgresStore, another: PostgresStore
) -> None:
    stored = 0

    async def write_some(context: Context, name: str) -> None:
        nonlocal stored
        for number in range(4):
            try:
                await write(context, f"{name} {number}")
            except QuotaExceededError:
                return
            stored += 1

    async with anyio.create_task_group() as group:
        for number in range(16):
            context = make_context((store, another)[number % 2], f"agent-{number}", per_org=20)
            group.start_soon(write_some, context, f"note of {number}")
    assert stored == 20
    assert (await read_usage(store, Quota(QUOTA_NAME), ORG, "agent-0")).org == 20


async def test_who_knows_of_a_quota_that_is_used_up_learns_that_there_is_room_again(
    store: PostgresStore, another: PostgresStore
) -> None:
    context = make_context(store, per_org=2)
    for text in ("first", "second"):
        await write(context, text)
    with pytest.raises(QuotaExceededError):
        await write(context, "third")
    await write(make_context(store), "known again")
    async with another.transaction() as transaction:
        key, _ = list_keys(Quota(QUOTA_NAME), ORG, "a")
        await transaction.put_metadata([Metadata(key, {"used": 1})])
    await write(context, "third")


async def test_the_same_words_and_the_same_token_are_seen_whoever_stored_them(
    store: PostgresStore, another: PostgresStore
) -> None:
    context = make_context(store)
    await write(context, "first")
    elsewhere = await write(make_context(another, "a"), "the same words", TOKEN)
    assert (await write(context, "the same words")).duplicate_of == elsewhere.id
    again = await write(context, "the same words", TOKEN)
    assert (again.id, again.replayed) == (elsewhere.id, True)


async def test_a_transaction_that_goes_by_what_does_not_hold_writes_nothing_and_says_so(
    store: PostgresStore, another: PostgresStore
) -> None:
    async def put_expected(name: str) -> None:
        async with store.transaction() as transaction:
            await transaction.expect([make_document(name, "apple")], [KEY])
            await transaction.put_documents([make_document(name, "apple")])
            await transaction.put_metadata([Metadata(KEY, {"n": name})])

    await put_expected("first")
    await put(another, make_document("elsewhere", "apple"))
    with pytest.raises(OutdatedError):
        await put_expected("second")
    assert await find_ids(store, asking("apple")) == ["elsewhere", "first"]
    await put_expected("second")
    assert await find_ids(store, asking("apple")) == ["elsewhere", "first", "second"]
    async with another.transaction() as transaction:
        await transaction.put_metadata([Metadata(KEY, {"n": "changed"})])
    for _ in range(3):
        try:
            await put_expected("third")
        except OutdatedError:
            continue
        break
    assert await store.get_metadata(KEY) == Metadata(KEY, {"n": "third"})
