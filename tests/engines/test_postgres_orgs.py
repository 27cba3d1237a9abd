"""Orgs on PostgreSQL: none waits for another, each takes turns within itself, and no commit passes unseen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from refdesk.core.writing.quotas import Quota, read_usage, spend
from refdesk.errors import ConflictError, QuotaExceededError, StoreError
from refdesk.model import Collection, Metadata, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import get_store_url
from tests.engines.postgres_plans import explain
from tests.stores.samples import NOTES, asking, find_ids, make_document, put, revise

pytestmark = pytest.mark.engines

OTHER = Collection("zenith", "notes")
SHORT_SECONDS = 0.5
"""How long one waits in vain for another's transaction."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_store(get_store_url(tmp_path)) as opened:
        yield opened


@pytest.fixture
async def another(store: Store, tmp_path: Path) -> AsyncGenerator[PostgresStore]:
    """The same store as another process has it open."""
    async with open_store(get_store_url(tmp_path)) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


async def test_a_transaction_of_one_org_holds_up_nobody_in_another(store: Store, another: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("held", "apple")])
        for each in (store, another):
            await put(each, make_document(f"free-{id(each)}", "pear", collection=OTHER))
        # Only now: whatever a slow machine takes longer for than that would fail, too.
        another.connections.patience_seconds = SHORT_SECONDS
        with pytest.raises(StoreError, match="held the store too long"):
            await put(another, make_document("late", "plum"))
    assert await find_ids(store, asking("apple plum")) == ["held"]
    assert len(await find_ids(store, asking("pear", collection=OTHER))) == 2


async def test_a_large_org_among_many_small_ones_is_searched_by_words(store: Store) -> None:
    sizes = {"large": 2000, **{f"small-{number}": 5 for number in range(200)}}
    async with store.loading():
        for org, size in sizes.items():
            place = Collection(org, "notes")
            await put(store, *[make_document(str(n), f"apple word{n}", collection=place) for n in range(size)])
    large = Collection("large", "notes")
    for request in (asking("word7", collection=large), asking("word7", collection=large, title_contains="word7")):
        plans = await explain(store, request, is_generic=True)
        assert "Bitmap Index Scan on entries_by_word" in plans
        assert "Bitmap Index Scan on entries_pkey" not in plans, "it would read the whole org"


async def test_many_agents_of_an_org_use_up_its_quota_to_the_last_note(store: Store, another: Store) -> None:
    quota, stored = Quota("notes", per_org=20, per_agent=8), list[str]()

    async def write(store: Store, agent: str) -> None:
        for number in range(4):
            try:
                async with store.transaction() as transaction:
                    await spend(transaction, quota, "acme", agent)
                    await transaction.put_documents([make_document(f"{agent}-{number}", "apple")])
            except QuotaExceededError:
                return
            stored.append(agent)

    async with anyio.create_task_group() as group:
        for number in range(16):
            group.start_soon(write, (store, another)[number % 2], f"agent-{number}")
    assert len(stored) == 20
    assert (await read_usage(store, quota, "acme", "agent-0")).org == 20
    assert len(await find_ids(store, asking("apple", depth=100))) == 20


async def test_two_that_change_the_same_document_cannot_both_succeed(store: Store, another: Store) -> None:
    document = make_document("a", "apple")
    await put(store, document)
    refused = list[str]()

    async def change(store: Store, body: str) -> None:
        try:
            await put(store, revise(document, body=body))
        except ConflictError:
            refused.append(body)

    async with anyio.create_task_group() as group:
        group.start_soon(change, store, "pear")
        group.start_soon(change, another, "plum")
    [stored] = await store.get_documents(NOTES, ["a"])
    assert stored is not None
    assert {stored.body, *refused} == {"pear", "plum"}
    assert stored.version == 2


async def test_the_change_mark_moves_with_a_commit_that_began_before_others_and_ends_after_them(
    store: Store, another: Store
) -> None:
    before = await store.get_change_mark()
    async with store.transaction() as early:
        await early.put_documents([make_document("early", "apple")])
        await early.get_digests(NOTES)
        await put(another, make_document("late", "pear", collection=OTHER))
        between = await store.get_change_mark()
        assert between != before
    after = await store.get_change_mark()
    assert after not in (before, between)


async def test_a_transaction_reads_what_it_wrote_before_it_is_committed(store: Store) -> None:
    key = MetadataKey("acme", "count", "n")
    async with store.transaction() as transaction:
        assert await transaction.get_metadata(key) is None
        await transaction.put_metadata([Metadata(key, {"n": 1}), Metadata(key, {"n": 2})])
        await transaction.put_documents([make_document("a", "apple")])
        assert await transaction.get_metadata(key) == Metadata(key, {"n": 2})
        assert await transaction.list_metadata("count", org="acme") == [Metadata(key, {"n": 2})]
        assert await store.get_metadata(key) is None
        assert set(await transaction.get_digests(NOTES)) == {"a"}
        await transaction.remove_metadata([key])
        assert await transaction.get_metadata(key) is None
    assert await store.get_metadata(key) is None
