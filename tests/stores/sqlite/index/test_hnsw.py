from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from refdesk.model import FindRequest, HasAny, State, VectorQuery
from refdesk.stores.sqlite.index import CollectionIndex
from refdesk.stores.sqlite.index.hnsw import Graph, is_available
from tests.stores.sqlite.index.corpus import COLLECTION, find_ids, make_document, to_row, to_vector_row

COUNT, WIDTH = 4000, 32

pytestmark = pytest.mark.skipif(not is_available(), reason="the extra hnsw is not installed")


def make_vectors(seed: int, count: int) -> NDArray[np.float32]:
    """Return unit vectors in 40 clusters, as texts of a few subjects have them."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((40, WIDTH))
    vectors = centres[generator.integers(0, 40, count)] + 0.6 * generator.standard_normal((count, WIDTH))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_pair() -> tuple[CollectionIndex, CollectionIndex]:
    """Return an index with a graph, and one that compares everything, of the same documents."""
    pair = CollectionIndex(graph_above=1000, compact_above=100_000), CollectionIndex()
    for index in pair:
        index.apply([to_row(make_document(each, facets={"half": (str(each % 2),)})) for each in range(COUNT)])
        set_vectors(index, np.arange(COUNT), seed=1)
    build_graph(pair[0])
    return pair


def set_vectors(index: CollectionIndex, keys: NDArray[np.int64], seed: int) -> None:
    rows = [
        to_vector_row(key, vector) for key, vector in zip(keys.tolist(), make_vectors(seed, len(keys)), strict=True)
    ]
    index.set_vectors("m", WIDTH, keys.tolist(), rows)


def build_graph(index: CollectionIndex) -> None:
    while index.extend_graphs(1000):
        pass


def get_recall(pair: tuple[CollectionIndex, CollectionIndex], where: HasAny | None = None) -> float:
    """Return the share of the truly nearest ten that the graph finds, over fifty questions."""
    shares: list[float] = []
    for vector in make_vectors(99, 50):
        request = FindRequest(COLLECTION, vector=VectorQuery(vector, "m"), where=where, depth=10)
        found, nearest = (find_ids(index, request) for index in pair)
        assert len(found) == 10
        shares.append(len(set(found) & set(nearest)) / 10)
    return float(np.mean(shares))


def test_a_graph_finds_nearly_all_of_the_nearest_with_and_without_a_filter() -> None:
    pair = make_pair()
    assert get_recall(pair) >= 0.95
    assert get_recall(pair, HasAny("half", ("1",))) >= 0.95


def test_a_graph_finds_nearly_all_of_the_nearest_after_changes() -> None:
    pair = make_pair()
    for index in pair:
        index.apply([to_row(make_document(each, state=State.WITHDRAWN)) for each in range(0, COUNT, 5)])
        set_vectors(index, np.arange(1, COUNT, 5), seed=2)
        index.apply([to_row(make_document(each, facets={"half": ("0",)})) for each in range(2, COUNT, 5)])
    assert get_recall(pair) >= 0.95
    build_graph(pair[0])
    assert get_recall(pair) >= 0.95
    assert get_recall(pair, HasAny("half", ("0",))) >= 0.95


def test_under_a_selective_filter_the_answer_is_exact() -> None:
    pair = make_pair()
    for index in pair:
        index.apply([to_row(make_document(each, facets={"few": ("x",)})) for each in range(7, COUNT, 80)])
    assert get_recall(pair, HasAny("few", ("x",))) == 1.0


def test_under_a_filter_that_only_far_documents_pass_the_answer_is_exact() -> None:
    pair = make_pair()
    vectors, wanted = make_vectors(1, COUNT), make_vectors(98, 1)[0]
    far = np.flatnonzero(vectors @ wanted < 0).tolist()
    for index in pair:
        index.apply([to_row(make_document(each, facets={"far": ("x",)})) for each in far])
    assert len(far) > COUNT // 4
    request = FindRequest(COLLECTION, vector=VectorQuery(wanted, "m"), where=HasAny("far", ("x",)), depth=10)
    found, nearest = (find_ids(index, request) for index in pair)
    assert found == nearest


def test_passages_that_are_not_in_the_graph_yet_are_found() -> None:
    pair = make_pair()
    wanted = make_vectors(3, 1)
    for index in pair:
        index.apply([to_row(make_document(COUNT))])
        index.set_vectors("m", WIDTH, [COUNT], [to_vector_row(COUNT, wanted[0])])
    request = FindRequest(COLLECTION, vector=VectorQuery(wanted[0], "m"), depth=1)
    assert find_ids(pair[0], request) == [f"d{COUNT}"]


def test_a_graph_that_is_not_begun_has_everything_before_it() -> None:
    index = CollectionIndex(graph_above=10)
    set_vectors(index, np.arange(30), seed=1)
    assert [index.extend_graphs(limit) for limit in (0, 20, 0, 20, 0)] == [30, 10, 10, 0, 0]


def test_with_more_effort_a_graph_finds_more() -> None:
    index = make_pair()[0]
    answers = {
        effort: [
            index.find(FindRequest(COLLECTION, vector=VectorQuery(vector, "m"), depth=1, effort=effort))
            for vector in make_vectors(97, 50)
        ]
        for effort in (1, 200)
    }
    hasty, thorough = (sum(found.candidates[0].cosine or 0.0 for found in each) for each in answers.values())
    assert hasty < thorough


def test_few_passages_are_never_put_into_a_graph() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(0))])
    index.set_vectors("m", WIDTH, [0], [to_vector_row(0, make_vectors(1, 1)[0])])
    assert index.extend_graphs() == 0


def test_a_graph_names_passages_by_their_place() -> None:
    graph, vectors = Graph(WIDTH), make_vectors(5, 30)
    graph.extend(vectors[:10])
    graph.extend(vectors[10:])
    assert graph.size == 30
    assert [int(graph.search(vectors[each], 1)[0]) for each in (0, 9, 10, 29)] == [0, 9, 10, 29]


def test_a_model_can_be_loaded_after_a_graph() -> None:
    script = (
        "import anyio\n"
        "from refdesk.embedders.local import LocalEmbedder\n"
        "from refdesk.stores.sqlite.index.hnsw import Graph\n"
        "Graph(8)\n"
        "anyio.run(LocalEmbedder().load)\n"
        "print('loaded')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr
