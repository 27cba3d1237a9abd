"""Several processes on one Neo4j: each sees the others' commits, none loses one, none gets in the way for good."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.core.clock import FixedClock
from refdesk.errors import StoreError
from refdesk.protocols import Store
from refdesk.stores.neo4j import open_store
from refdesk.stores.neo4j.connections import Limits
from tests.engines.neo4j import get_store_url
from tests.engines.neo4j_limits import shortened
from tests.engines.neo4j_processes import running_workers
from tests.stores.samples import NOTES, NOW, asking, find_ids, make_document, put, revise
from tests.stores.sqlite.worker import COUNTER

pytestmark = pytest.mark.engines

EAST = [1.0, 0, 0, 0]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return get_store_url(tmp_path)


@pytest.fixture
async def store(url: str) -> AsyncGenerator[Store]:
    async with open_store(url, clock=FixedClock(NOW)) as opened:
        yield opened


async def test_transactions_of_several_processes_run_one_after_another(url: str, store: Store) -> None:
    with running_workers("increment", url, *[("8",)] * 3) as workers:
        assert [worker.hear() for worker in workers] == ["done"] * 3
    record = await store.get_metadata(COUNTER)
    assert record is not None
    assert record.value == {"n": 24}


async def test_what_one_process_writes_the_other_finds_at_its_next_search(url: str, store: Store) -> None:
    with running_workers("obey", url, ()) as (other,):
        assert await find_ids(store, asking("apple")) == []
        other.order("put", id="d", body="apple")
        assert await find_ids(store, asking("apple")) == ["d"]
        other.order("put", id="d", body="pear")
        assert await find_ids(store, asking("apple")) == []
        assert await find_ids(store, asking("pear")) == ["d"]
        (document,) = await store.get_documents(NOTES, ["d"])
        assert document is not None
        await put(store, revise(document, body="plum"))
        assert other.order("find", text="plum") == ["d"]
        assert other.order("embed", id="d", direction=EAST) is True
        assert other.order("find", direction=EAST) == ["d"]
        other.order("withdraw", id="d")
        assert await find_ids(store, asking("plum")) == []


async def test_several_processes_may_open_a_new_store_at_once(url: str) -> None:
    with running_workers("obey", url, *[()] * 3) as workers:
        assert [worker.order("find", text="apple") for worker in workers] == [[], [], []]


async def test_a_process_that_dies_in_a_transaction_leaves_the_store_to_others(url: str, store: Store) -> None:
    with running_workers("hold", url, ()) as (holder,):
        assert holder.hear() == "held"
        holder.close()
        await put(store, make_document("mine"))
    assert list(await store.get_digests(NOTES)) == ["mine"]


async def test_a_transaction_waits_no_longer_than_its_patience(url: str, store: Store) -> None:
    limits = Limits()
    async with open_store(url, limits=limits) as impatient:
        await impatient.check()
        async with store.transaction() as transaction:
            await transaction.put_documents([make_document("first")])
            # Short only where what is waited for never comes: else the machine's speed would be measured.
            with shortened(limits, 0.5), pytest.raises(StoreError, match="too long"):
                await put(impatient, make_document("second"))
            assert await impatient.get_documents(NOTES, ["first"]) == [None]
        await put(impatient, make_document("second"))
    assert sorted(await store.get_digests(NOTES)) == ["first", "second"]
