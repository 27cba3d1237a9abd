"""Vectors by an HNSW graph: filtered pages are full and hold the nearest; and when the graph is not asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np
import psycopg
import pytest
from numpy import float32
from numpy.typing import NDArray

from refdesk.model import EmbeddedPassage, EmbeddingModel, FindRequest, HasAll, VectorQuery
from refdesk.protocols import Store
from refdesk.stores.postgres import Limits, open_store
from refdesk.stores.postgres.search import Searcher
from refdesk.stores.postgres.store import PostgresStore
from refdesk.stores.postgres.vectors import Model, choose_graph, get_exact_limit
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.engines.postgres_plans import explain
from tests.stores.samples import NOTES, embed, make_document, put

pytestmark = pytest.mark.engines

MODEL = EmbeddingModel("invented", 32)
DOCUMENTS, PASSAGES, QUERIES, PAGE = 5000, 4, 20, 10
RARE = HasAll("tags", ("rare",))


@dataclass(frozen=True)
class Space:
    """A store of documents with vectors around a few centres; one in a hundred is rare.

    Attributes:
        vectors: Shape `(documents, passages, dimensions)`, as the store keeps them.
        queries: Shape `(queries, dimensions)`.
    """

    store: Store
    url: str
    vectors: NDArray[float32]
    queries: NDArray[float32]

    def find_nearest(self, query: NDArray[float32], *, rare: bool) -> list[str]:
        cosines = (self.vectors @ query).max(axis=1)
        wanted = [n for n in np.argsort(-cosines, kind="stable").tolist() if not rare or is_rare(n)]
        return [f"d{n:04}" for n in wanted[:PAGE]]


def is_rare(number: int) -> bool:
    return number % 100 == 7


@pytest.fixture(scope="module")
async def space(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Space]:
    folder = tmp_path_factory.mktemp("space")
    url = get_store_url(folder)
    random = np.random.default_rng(7)
    centres = random.standard_normal((40, MODEL.dimensions))
    around = centres[random.integers(40, size=(DOCUMENTS, PASSAGES))]
    vectors = normalise(around + 0.6 * random.standard_normal(around.shape)).astype(np.float16).astype(float32)
    queries = normalise(centres[random.integers(40, size=QUERIES)] + 0.6 * random.standard_normal((QUERIES, 32)))
    async with open_store(url, limits=Limits(exact_passages=0)) as store:
        await fill(store, get_schema(folder), vectors)
        yield Space(store, url, vectors, queries.astype(float32))


def normalise(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


async def fill(store: Store, schema: str, vectors: NDArray[float32]) -> None:
    documents = [
        make_document(f"d{n:04}", f"w{n}", facets={"tags": ("rare",) if is_rare(n) else ("common",)})
        for n in range(len(vectors))
    ]
    for start in range(0, len(documents), 1000):
        await put(store, *documents[start : start + 1000])
    first = [EmbeddedPassage(n, n + 1, vector) for n, vector in enumerate(vectors[0])]
    assert await embed(store, documents[0], *first, model=MODEL)
    with get_server().connect(schema) as connection:
        load(connection, vectors)


def load(connection: psycopg.Connection, vectors: NDArray[float32]) -> None:
    """Store the vectors of all documents but the first at once: one by one the graph alone would take a minute."""
    ((index,),) = fetch(connection, "SELECT pg_get_indexdef('vectors_of_model_1'::regclass)")
    connection.execute("DROP INDEX vectors_of_model_1")
    keys = dict(connection.execute("SELECT id, key FROM documents").fetchall())
    with connection.cursor() as cursor, cursor.copy("COPY vectors FROM STDIN") as copy:
        for number, passages in enumerate(vectors[1:], 1):
            for place, vector in enumerate(passages):
                row = ("acme", keys[f"d{number:04}"], 1, place, place, place + 1, str(vector.tolist()))
                copy.write_row(row)
    connection.execute("UPDATE embeddings SET passages = (SELECT count(*) FROM vectors)")
    connection.execute(str(index).encode())


def ask(query: NDArray[float32], **changes: object) -> FindRequest:
    return replace(FindRequest(NOTES, vector=VectorQuery(query, MODEL.name), depth=PAGE), **changes)  # pyright: ignore[reportArgumentType]


def get_recall(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    hits = [len(set(mine) & set(right)) / len(right) for mine, right in zip(found, expected, strict=True)]
    return sum(hits) / len(hits)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rare", [False, True])
async def test_pages_from_the_graph_are_full_and_hold_the_nearest(space: Space, rare: bool) -> None:
    pages: list[list[str]] = []
    for query in space.queries:
        found = await space.store.find(ask(query, where=RARE if rare else None))
        pages.append([candidate.id for candidate in found.candidates])
        cosines = [candidate.cosine or 0.0 for candidate in found.candidates]
        assert cosines == sorted(cosines, reverse=True)
    assert all(len(page) == PAGE for page in pages)
    expected = [space.find_nearest(query, rare=rare) for query in space.queries]
    assert get_recall(pages, expected) >= 0.95


async def test_the_graph_is_walked_in_its_own_order_whatever_the_filter(space: Space) -> None:
    for where in (None, RARE):
        plan = await explain(space.store, ask(space.queries[0], where=where), Limits(exact_passages=1))
        assert "Index Scan using vectors_of_model_" in plan


async def test_cosines_and_passages_are_exact_though_the_graph_found_them(space: Space) -> None:
    query = space.queries[0]
    found = await space.store.find(ask(query))
    for candidate in found.candidates:
        cosines = space.vectors[int(candidate.id[1:])] @ query
        assert candidate.cosine == pytest.approx(float(cosines.max()), abs=1e-5)
        assert candidate.passage == (int(cosines.argmax()), int(cosines.argmax()) + 1)


async def test_comparing_all_and_asking_the_graph_find_the_same(space: Space) -> None:
    async with open_store(space.url, limits=Limits(DOCUMENTS * PASSAGES)) as exact:
        for query in space.queries[:5]:
            expected = [each.id for each in (await exact.find(ask(query, where=RARE))).candidates]
            assert expected == space.find_nearest(query, rare=True)


def test_small_collections_and_small_parts_of_large_graphs_are_compared_whole() -> None:
    assert get_exact_limit(Model(1, 384, 5_000, 5_000, 5_000), 5_000, PAGE, 10_000) is None
    assert get_exact_limit(Model(1, 384, 10_000_000, 20_000, 20_000), 20_000, PAGE, 10_000) is None
    assert get_exact_limit(Model(1, 5000, 10**6, 10**6, 10**6), 10**6, PAGE, 10_000) is None
    limit = get_exact_limit(Model(1, 384, 100_000, 100_000, 100_000), 100_000, PAGE, 10_000)
    assert limit == 10_000


def test_where_the_graph_is_the_cheaper_a_small_collection_is_not_compared_whole() -> None:
    usual = Limits().exact_passages
    for passages in (1000, 2000):
        assert get_exact_limit(Model(1, 384, passages, passages, passages), passages, 100, usual) is not None
    assert get_exact_limit(Model(1, 384, 500, 500, 500), 500, 100, usual) is None
    # Of a store of many, an org with as many would have the graph walk past everybody else's.
    assert get_exact_limit(Model(1, 384, 10_000, 1000, 1000), 1000, 100, usual) is None


def test_effort_is_honoured_and_never_below_the_depth() -> None:
    model = Model(1, 384, 10_000, 10_000, 10_000)
    efforts = [choose_graph(model, 10_000, depth, effort, 10**4).effort for depth, effort in ((10, 150), (120, 64))]
    assert efforts == [150, 120]
    assert choose_graph(model, 10_000, 5000, 200, 10**4).effort == 1000


async def test_the_larger_the_graph_the_more_of_it_is_held_in_view(space: Space) -> None:
    assert isinstance(space.store, PostgresStore)
    searcher, request = Searcher(space.store.connections, Limits(exact_passages=1)), ask(space.queries[0], effort=64)
    await searcher.find(request)
    graph = searcher.plan(request).graph
    assert graph is not None
    assert graph.effort == isqrt(DOCUMENTS * PASSAGES)
    for passages, effort in ((1000, 100), (100_000, 316), (10**7, 1000)):
        model = Model(1, 384, passages, passages, passages)
        assert choose_graph(model, passages, 100, 64, passages).effort == effort


def test_the_graph_may_be_walked_the_further_the_fewer_pass() -> None:
    model = Model(1, 384, 100_000, 100_000, 100_000)
    few, many = (choose_graph(model, 100_000, 100, None, wanted).scan for wanted in (1000, 100_000))
    assert few > many
