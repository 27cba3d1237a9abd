"""Several processes on one PostgreSQL store, and stores that cannot be opened."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from psycopg import sql

from refdesk.core.search.analysis import parse_query
from refdesk.errors import ConfigurationError, StoreError
from refdesk.model import FindRequest
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import (
    fetch,
    get_schema,
    get_server,
    get_store_url,
)
from tests.engines.postgres_worker import COUNTER, PATIENCE_SECONDS, running
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines


@contextmanager
def impatient(store: Store) -> Generator[None]:
    """Have a store wait for others' transactions no longer than 0.3 s, in the block alone: else whatever takes a slow
    machine longer would fail, too."""
    assert isinstance(store, PostgresStore)
    usual, store.connections.patience_seconds = store.connections.patience_seconds, 0.3
    try:
        yield
    finally:
        store.connections.patience_seconds = usual


async def test_four_processes_that_count_together_lose_no_count(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    with running(*[("increment", url, "25")] * 4) as workers:
        assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0] * 4
    async with open_store(url) as store:
        record = await store.get_metadata(COUNTER)
    assert record is not None
    assert record.value == {"n": 100}


async def test_processes_that_write_together_keep_the_counts_that_scores_are_made_of(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    with running(*[("write", url, name, "20") for name in ("left", "right")]) as workers:
        assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0] * 2
    written = [
        make_document(f"{name}-{n}", f"apple {name}", title=f"Note {n}")
        for name in ("left", "right")
        for n in range(20)
    ]
    async with open_store(url) as store, open_store(get_store_url(tmp_path / "alone")) as alone:
        await put(alone, *written)
        request = FindRequest(NOTES, parse_query("apple left note 7"))
        assert await store.find(request) == await alone.find(request)


def test_processes_that_start_together_on_an_empty_database_make_one_schema(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    with running(*[("look", url)] * 6) as workers:
        assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0] * 6
    with get_server().connect(get_schema(tmp_path)) as connection:
        steps = fetch(connection, "SELECT number FROM refdesk_migrations ORDER BY number")
        folder = resources.files("refdesk.stores") / "schema" / "postgres"
        assert steps == [(number,) for number in range(1, sum(1 for _ in folder.iterdir()) + 1)]


async def test_a_transaction_that_waits_too_long_for_anothers_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as first, open_store(url) as second:
        async with first.transaction() as transaction:
            await transaction.put_documents([make_document("held")])
            with impatient(second), pytest.raises(StoreError, match="held the store too long"):
                await put(second, make_document("late"))
        await put(second, make_document("after"))
        found = await first.get_documents(NOTES, ["held", "late", "after"])
        assert [document is not None for document in found] == [True, False, True]


async def test_a_transaction_that_waits_too_long_for_one_of_its_own_process_says_so(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:

        async def come_late() -> None:
            with impatient(store), pytest.raises(StoreError, match="held the store too long"):
                await put(store, make_document("late"))

        async with store.transaction() as transaction:
            await transaction.put_documents([make_document("held")])
            async with anyio.create_task_group() as group:
                group.start_soon(come_late)
        await put(store, make_document("after"))
        assert await find_ids(store, asking()) == ["after", "held"]


async def test_a_cancelled_transaction_is_undone_and_holds_nobody_up(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as store, open_store(url) as other:
        with anyio.CancelScope() as scope:
            async with store.transaction() as transaction:
                await transaction.put_documents([make_document("undone")])
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        await put(other, make_document("kept"))
        assert await find_ids(store, asking()) == ["kept"]


async def test_a_failure_that_is_caught_inside_a_transaction_does_not_let_it_commit_in_part(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, make_document("before"))

        async def write_on_after_a_failure() -> None:
            async with store.transaction() as transaction:
                await transaction.put_documents([make_document("lost")])
                with get_server().connect() as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                    )
                with pytest.raises(StoreError):
                    await transaction.get_digests(NOTES)

        with pytest.raises(StoreError, match="undone this transaction"):
            await write_on_after_a_failure()
        assert await find_ids(store, asking()) == ["before"]


async def test_a_store_of_a_newer_refdesk_is_refused(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url):
        pass
    with get_server().connect(get_schema(tmp_path)) as connection:
        connection.execute("INSERT INTO refdesk_migrations VALUES (9999, 'later', 0)")
    with pytest.raises(ConfigurationError, match="newer refdesk"):
        async with open_store(url):
            pass


async def test_another_programs_tables_are_left_alone(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    with get_server().connect(get_schema(tmp_path), role="refdesk") as connection:
        connection.execute("CREATE TABLE documents (mine text)")
        with pytest.raises(ConfigurationError, match="another program"):
            async with open_store(url):
                pass
        assert fetch(connection, "SELECT count(*) FROM documents") == [(0,)]


async def test_a_database_without_the_extension_is_refused_with_what_to_do(tmp_path: Path) -> None:
    server = get_server()
    with server.connect() as connection:
        connection.execute("CREATE DATABASE bare OWNER refdesk")
    with pytest.raises(ConfigurationError, match="CREATE EXTENSION vector"):
        async with open_store(server.get_url(database="bare")):
            pass


async def test_a_store_that_cannot_be_reached_is_refused_without_naming_secrets() -> None:
    server = get_server()
    url = f"postgresql://refdesk:s3cret@127.0.0.1:{server.port}/nothing-here"
    with pytest.raises(StoreError) as caught:
        async with open_store(url):
            pass
    for secret in ("s3cret", "127.0.0.1", str(server.port), "nothing-here"):
        assert secret not in caught.value.message


async def test_what_an_older_analysis_derived_is_made_anew(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    documents = [make_document(f"d{n}", f"apple number {n}", title="Pear", facets={"tags": ("x",)}) for n in range(7)]
    request = asking('"apple number" 3', facets=("tags",), title_contains="pea")
    async with open_store(url) as store:
        await put(store, *documents)
        before = await store.find(request)
    with get_server().connect(get_schema(tmp_path)) as connection:
        connection.execute("UPDATE counters SET value = 1 WHERE name = 'analysis'")
        for table in ("entries", "term_counts", "spans"):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    async with open_store(url) as store:
        assert await store.find(request) == before
        assert (before.total, len(before.candidates)) == (1, 7)
    with get_server().connect(get_schema(tmp_path)) as connection:
        connection.execute("UPDATE counters SET value = value + 1000 WHERE name = 'analysis'")
    with pytest.raises(ConfigurationError, match="newer refdesk"):
        async with open_store(url):
            pass
