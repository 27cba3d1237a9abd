"""What the store says to PostgreSQL in each transaction, and that nothing of it outlives one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import psycopg
import pytest

from refdesk.errors import StoreError
from refdesk.model import HasAll, Metadata, MetadataKey
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement
from refdesk.stores.postgres.pool import MOST_CONNECTIONS
from refdesk.stores.postgres.store import PostgresStore
from refdesk.stores.postgres.transactions import Turns, open_session
from tests.engines.postgres import get_store_url
from tests.stores.samples import MODEL, NOTES, asking, embed, find_ids, make_document, near, passage, put

pytestmark = pytest.mark.engines

COUNT = Statement("SELECT count(*) FROM records")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[PostgresStore]:
    # The careless default of some servers: what is acknowledged may be lost with their power.
    url = get_store_url(tmp_path).replace("-csearch_path", "-csynchronous_commit%3Doff%20-csearch_path")
    async with open_store(url) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


async def test_a_commit_waits_for_the_disk_even_where_the_server_would_not(store: PostgresStore) -> None:
    asked = Statement("SELECT current_setting('synchronous_commit')")
    assert await store.connections.read(Scope("acme"), asked) == [[("off",)]]
    async with open_session(store.connections, Turns()) as session:
        assert await session.send(Scope("acme"), asked) == [[("on",)]]


async def test_a_read_sees_one_org_whatever_it_asks_for(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(MetadataKey(org, "job", "n"), {}) for org in ("acme", "zenith")])
    seen = [
        (await store.connections.read(scope, COUNT))[0][0][0] for scope in (Scope("acme"), Scope("no-one"), ALL_ORGS)
    ]
    assert seen == [1, 0, 2]


async def test_within_a_transaction_each_statement_sees_the_org_it_is_for(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(MetadataKey(org, "job", "n"), {}) for org in ("acme", "zenith")])
    async with open_session(store.connections, Turns()) as session:
        scopes = (Scope("acme"), ALL_ORGS, Scope("no-one"), Scope("zenith"))
        assert [(await session.send(scope, COUNT))[0][0][0] for scope in scopes] == [1, 2, 0, 1]


async def test_nothing_that_is_said_outlives_its_transaction(store: PostgresStore) -> None:
    document = make_document("a", "apple")
    await put(store, document)
    await embed(store, document, passage([1, 0, 0, 0]))
    assert await find_ids(store, asking("apple", vector=near([1, 0, 0, 0], MODEL.name))) == ["a"]
    async with store.connections.pool.lend() as connection:
        found = await connection.execute(
            "SELECT current_setting('refdesk.org', true), current_setting('refdesk.all_orgs', true), "
            "current_setting('statement_timeout'), current_setting('enable_seqscan'), "
            "current_setting('enable_bitmapscan'), current_setting('plan_cache_mode'), "
            "(SELECT count(*) FROM pg_listening_channels())"
        )
        assert await found.fetchone() == ("", "", "0", "on", "on", "auto", 0)


async def test_statements_are_prepared_where_the_server_is_reached_directly_and_nowhere_else(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count() -> object:
        async with store.connections.pool.lend() as connection:
            return await (await connection.execute("SELECT count(*) > 0 FROM pg_prepared_statements")).fetchone()

    await put(store, make_document("a", "apple"))
    assert await find_ids(store, asking("apple")) == await find_ids(store, asking("apple")) == ["a"]
    assert await count() == (True,)
    await store.connections.pool.close()
    # A pooler tells its clients numbers of its own.
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    await put(store, make_document("b", "apple"))
    assert await find_ids(store, asking("apple")) == await find_ids(store, asking("apple")) == ["a", "b"]
    assert await count() == (False,)


async def test_a_connection_whose_statements_were_forgotten_prepares_them_anew(store: PostgresStore) -> None:
    await put(store, make_document("a", "apple"))
    async with store.connections.pool.lend() as connection:
        await connection.execute("DEALLOCATE ALL")
    with pytest.raises(StoreError):
        await find_ids(store, asking("apple", depth=3))
    assert await find_ids(store, asking("apple", depth=3)) == ["a"]


@pytest.mark.parametrize(
    "text", ["it's", "back\\slash", 'quo"te', "{a,b}", "$1", "%s %(a)s", "a;b", "E'\\n'", "null", ""]
)
async def test_whatever_a_text_holds_it_is_a_value(store: PostgresStore, text: str) -> None:
    document = make_document(f"id {text}", f"apple {text}", title=text, facets={text or "x": (text, "y")})
    await put(store, document)
    assert await store.get_documents(NOTES, [document.id]) == [document]
    key = MetadataKey("acme", "job", text)
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(key, {"text": text})])
    assert await store.get_many_metadata([key]) == [Metadata(key, {"text": text})]
    request = asking("apple", where=HasAll(text or "x", (text, "y")), title_contains=text, as_written=text)
    assert await find_ids(store, request) == [document.id]


async def test_more_tasks_than_connections_take_turns(store: PostgresStore) -> None:
    await put(store, make_document("a", "apple"))
    answers: list[list[str]] = []

    async def ask() -> None:
        answers.append(await find_ids(store, asking("apple")))

    async with anyio.create_task_group() as group:
        for _ in range(3 * MOST_CONNECTIONS):
            group.start_soon(ask)
    assert answers == [["a"]] * 3 * MOST_CONNECTIONS
    async with store.connections.pool.lend() as connection:
        counted = await connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'refdesk'")
        row = await counted.fetchone()
    assert row is not None
    assert row[0] <= MOST_CONNECTIONS
