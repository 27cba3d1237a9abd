"""Graphs are built at the end of a load, or by whoever opens the store next; what is found never depends on them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import psycopg
import pytest
from psycopg import sql

from refdesk.model import EmbeddingModel
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.postgres import Limits, hnsw, open_store
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.lexical import MOST_UNCOUNTED
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.engines.postgres_worker import PATIENCE_SECONDS, running
from tests.stores.samples import MODEL, NOTES, asking, embed, find_ids, make_document, near, passage, put, revise

pytestmark = pytest.mark.engines

GRAPH = "vectors_of_model_1"
BY_GRAPH = Limits(exact_passages=0)
NOBODY = Scope("")
NOTES_SCOPE = Scope(NOTES.org)


def connect(folder: Path) -> psycopg.Connection:
    return get_server().connect(get_schema(folder))


def get_graphs(folder: Path) -> list[str]:
    """Return the names of the graphs that searches can use."""
    with connect(folder) as connection:
        rows = fetch(
            connection,
            "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "WHERE indrelid = 'vectors'::regclass AND NOT indisprimary AND indisvalid AND indisready ORDER BY relname",
        )
    return [str(name) for (name,) in rows]


def drop_graph(folder: Path) -> None:
    with connect(folder) as connection:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(GRAPH)))


async def write(store: Store, *numbers: int, model: EmbeddingModel = MODEL) -> None:
    for number in numbers:
        document = make_document(f"d{number}", "apple")
        await put(store, document)
        assert await embed(store, document, passage((1, number, 0, 0)), model=model)


async def build(store: Store) -> None:
    """Return when the graphs are there that were missing when the store was opened."""
    assert isinstance(store, PostgresStore)
    await store.graphs.wait()


async def test_there_is_no_graph_while_a_load_goes_on_and_one_of_each_model_after_it(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await write(store, 1)
        assert get_graphs(tmp_path) == [GRAPH]
        async with store.loading():
            await write(store, 2, 3)
            await write(store, 4, model=EmbeddingModel("other", 4))
            assert get_graphs(tmp_path) == []
        assert get_graphs(tmp_path) == [GRAPH, "vectors_of_model_2"]


async def test_a_load_that_fails_leaves_graphs_nevertheless(tmp_path: Path) -> None:
    async def load_and_fail(store: Store) -> None:
        async with store.loading():
            await write(store, 1)
            raise LookupError

    async with open_store(get_store_url(tmp_path)) as store:
        with pytest.raises(LookupError):
            await load_and_fail(store)
        assert get_graphs(tmp_path) == [GRAPH]


async def test_a_load_that_is_cancelled_leaves_them_to_the_next_to_open_the_store(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as store:
        with anyio.CancelScope() as scope:
            async with store.loading():
                await write(store, 1)
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert get_graphs(tmp_path) == []
        await write(store, 2, model=EmbeddingModel("later", 4))
        assert get_graphs(tmp_path) == ["vectors_of_model_2"]
    async with open_store(url) as store:
        await build(store)
        assert get_graphs(tmp_path) == [GRAPH, "vectors_of_model_2"]


@pytest.mark.timeout(1200)
async def test_a_killed_load_loses_nothing_and_the_next_to_open_the_store_builds_the_graph(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    with running(("load", url)) as (worker,):
        assert worker.stdout is not None
        written = [int(worker.stdout.readline()) for _ in range(20)]
        assert get_graphs(tmp_path) == []
        worker.kill()
        worker.wait(PATIENCE_SECONDS)
    async with open_store(url, limits=BY_GRAPH) as store:
        await build(store)
        assert get_graphs(tmp_path) == [GRAPH]
        ids = {f"d{number}" for number in written}
        assert ids <= set(await find_ids(store, asking("apple", depth=1000)))
        assert ids <= set(await find_ids(store, asking(vector=near((1, 7, 0, 0)), depth=1000)))


async def test_a_load_that_is_resumed_builds_a_graph_once_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, built = get_store_url(tmp_path), list[list[str]]()

    async def build_and_tell(connections: Connections) -> bool:
        is_done = await build_graphs(connections)
        built.append(get_graphs(tmp_path))
        return is_done

    build_graphs = hnsw.build
    monkeypatch.setattr(hnsw, "build", build_and_tell)
    async with open_store(url) as store:
        await write(store, 1)
    drop_graph(tmp_path)
    async with open_store(url) as store, store.loading():
        await write(store, 2)
    assert built == [[GRAPH]]


async def test_processes_that_open_a_store_together_build_a_graph_once(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as store:
        await write(store, *range(40))
    drop_graph(tmp_path)
    with running(*[("build", url)] * 4) as workers:
        # To build what another has just built would fail.
        assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0] * 4
    assert get_graphs(tmp_path) == [GRAPH]


async def test_searches_find_the_same_while_the_graph_is_missing(tmp_path: Path) -> None:
    random, reference = Random(3), MemoryStore()
    async with open_store(get_store_url(tmp_path), limits=BY_GRAPH) as store:
        for number in range(120):
            document = make_document(f"d{number}", facets={"tags": ("rare" if number % 10 == 3 else "common",)})
            direction = [random.gauss(0, 1) for _ in range(4)]
            for each in (store, reference):
                await put(each, document)
                await embed(each, document, passage(direction))
        drop_graph(tmp_path)
        for _ in range(10):
            request = asking(vector=near([random.gauss(0, 1) for _ in range(4)]), depth=5)
            assert await find_ids(store, request) == await find_ids(reference, request)


async def test_counts_of_vectors_are_right_whatever_a_transaction_does_with_them(tmp_path: Path) -> None:
    other = EmbeddingModel("other", 4)
    document, reworded = make_document("a", "apple"), make_document("b", "pear")
    async with open_store(get_store_url(tmp_path)) as store:
        async with store.transaction() as transaction:
            await transaction.put_documents([document, reworded])
            for model in (MODEL, other):
                for each in (document, reworded):
                    passages = [passage((1, 2, 0, 0)), passage((1, 3, 0, 0), 1, 2)]
                    assert await transaction.put_vectors(NOTES, each.id, model, each.text_digest, passages)
            assert await transaction.put_vectors(NOTES, "a", MODEL, document.text_digest, passages[:1])
            await transaction.put_documents([revise(reworded, body="plum")])
        with connect(tmp_path) as connection:
            assert fetch(connection, "SELECT model, passages FROM embeddings ORDER BY model") == [(1, 1), (2, 2)]
        async with store.transaction() as transaction:
            assert await transaction.put_vectors(NOTES, "a", other, document.text_digest, passages)
            assert await transaction.remove_vectors(other.name) == 1
            assert await transaction.put_vectors(NOTES, "a", other, document.text_digest, passages)
        with connect(tmp_path) as connection:
            assert fetch(connection, "SELECT model, passages FROM embeddings ORDER BY model") == [(1, 1), (3, 2)]


async def test_a_graph_of_another_schema_is_none_of_ours(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        async with open_store(get_store_url(folder)) as store:
            await write(store, 1)
    drop_graph(own)
    url = get_server().get_url(f"{get_schema(own)},{get_schema(other)}")
    async with open_store(url) as store:
        await build(store)
        assert get_graphs(own) == [GRAPH]
        drop_graph(own)
        async with store.transaction() as transaction:
            assert await transaction.remove_vectors(MODEL.name) == 1
    assert get_graphs(other) == [GRAPH]


async def test_terms_are_counted_once_at_the_end_of_a_load(tmp_path: Path) -> None:
    counted = Statement("SELECT (SELECT count(*) FROM term_counts), (SELECT uncounted FROM collections)")
    documents = [make_document(f"{number:03}", f"apple word{number}") for number in range(MOST_UNCOUNTED + 2)]
    async with open_store(get_store_url(tmp_path)) as store:
        assert isinstance(store, PostgresStore)
        async with store.loading():
            await put(store, *documents)
            assert await store.connections.read(NOTES_SCOPE, counted) == [[(0, len(documents))]]
            assert await find_ids(store, asking("word7")) == ["007"]
        ((terms, uncounted),) = (await store.connections.read(NOTES_SCOPE, counted))[0]
        assert (terms > 0, uncounted) == (True, 0)
        assert await find_ids(store, asking("word7")) == ["007"]
