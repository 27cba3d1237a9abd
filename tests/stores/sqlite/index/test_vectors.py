from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from refdesk.model import FindRequest, HasAny, State, VectorQuery
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, ask, find_ids, make_document, to_row, to_vector_row

EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
NORTH_EAST = (0.7071, 0.7071)


def towards(vector: Sequence[float], model: str = "m") -> VectorQuery:
    return VectorQuery(np.asarray(vector, np.float32), model)


def make_index(vectors: Sequence[Sequence[float]]) -> CollectionIndex:
    index = CollectionIndex()
    index.apply([to_row(make_document(each, body="red", facets={"n": (str(each),)})) for each in range(len(vectors))])
    rows = [to_vector_row(key, vector) for key, vector in enumerate(vectors)]
    index.set_vectors("m", 2, range(len(vectors)), rows)
    return index


def test_the_nearest_documents_come_first_with_their_cosine() -> None:
    index = make_index([WEST, NORTH, NORTH_EAST, EAST])
    found = index.find(FindRequest(COLLECTION, vector=towards(EAST), depth=3))
    assert [each.id for each in found.candidates] == ["d3", "d2", "d1"]
    assert [each.cosine for each in found.candidates] == pytest.approx([1.0, 0.7071, 0.0], abs=1e-3)
    assert found.total == 0


def test_a_cosine_never_leaves_its_range() -> None:
    index = make_index([(1.001, 0.0), (-1.001, 0.0)])
    found = index.find(FindRequest(COLLECTION, vector=towards(EAST)))
    assert [each.cosine for each in found.candidates] == [1.0, -1.0]


def test_of_equally_near_documents_the_first_by_id_are_returned() -> None:
    index = make_index([NORTH] * 20 + [EAST])
    found = find_ids(index, FindRequest(COLLECTION, vector=towards(EAST), depth=4))
    assert found == ["d20", "d0", "d1", "d10"]


def test_the_best_passage_counts_and_is_named() -> None:
    index = make_index([NORTH, NORTH])
    rows = [
        *(to_vector_row(0, WEST, 0, 10), to_vector_row(0, EAST, 10, 25), to_vector_row(0, EAST, 25, 30)),
        *(to_vector_row(1, NORTH, 0, 7), to_vector_row(1, WEST, 7, 9)),
    ]
    index.set_vectors("m", 2, [0, 1], rows)
    found = index.find(FindRequest(COLLECTION, vector=towards(EAST)))
    assert [(each.id, each.cosine, each.passage) for each in found.candidates] == [
        ("d0", 1.0, (10, 25)),
        ("d1", 0.0, (0, 7)),
    ]


def test_candidates_of_either_list_carry_both_scores() -> None:
    index = make_index([EAST, WEST])
    index.apply([to_row(make_document(each, body="blue")) for each in (0, 2)])
    found = index.find(FindRequest(COLLECTION, text=ask("red"), vector=towards(EAST), depth=1))
    assert [(each.id, each.lexical > 0, each.cosine) for each in found.candidates] == [
        ("d1", True, -1.0),
        ("d0", False, 1.0),
    ]
    assert found.total == 1


def test_a_text_match_without_a_vector_has_no_cosine() -> None:
    index = make_index([EAST])
    index.apply([to_row(make_document(1, title="red"))])
    found = index.find(FindRequest(COLLECTION, text=ask("red"), vector=towards(EAST)))
    assert {each.id: each.cosine for each in found.candidates} == {"d0": 1.0, "d1": None}


def test_only_vectors_of_the_model_asked_for_are_compared() -> None:
    index = make_index([EAST, WEST])
    index.set_vectors("other", 3, [1], [to_vector_row(1, (0.0, 0.0, 1.0))])
    assert find_ids(index, FindRequest(COLLECTION, vector=towards((0.0, 0.0, 1.0), "other"))) == ["d1"]
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == ["d0", "d1"]
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST, "unknown"))) == []
    index.drop_model("m")
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == []


def test_a_filter_is_applied_before_the_nearest_are_chosen() -> None:
    index = make_index([EAST] * 30 + [WEST])
    request = FindRequest(COLLECTION, vector=towards(EAST), where=HasAny("n", ("30", "7")), depth=2)
    assert find_ids(index, request) == ["d7", "d30"]


def test_setting_vectors_replaces_those_there_were() -> None:
    index = make_index([EAST, WEST])
    index.set_vectors("m", 2, [0, 1], [to_vector_row(1, NORTH_EAST)])
    found = index.find(FindRequest(COLLECTION, vector=towards(EAST)))
    assert [each.id for each in found.candidates] == ["d1"]


def test_a_replaced_document_keeps_its_vectors_and_a_withdrawn_one_is_not_found() -> None:
    index = make_index([EAST, NORTH, WEST])
    index.apply([to_row(make_document(0, body="other")), to_row(make_document(1, state=State.WITHDRAWN))])
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == ["d0", "d2"]
    index.apply([to_row(make_document(1))])
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == ["d0", "d1", "d2"]


def test_vectors_may_come_before_their_document() -> None:
    index = CollectionIndex()
    index.set_vectors("m", 2, [0], [to_vector_row(0, EAST)])
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == []
    index.apply([to_row(make_document(0))])
    assert find_ids(index, FindRequest(COLLECTION, vector=towards(EAST))) == ["d0"]


def test_vectors_stay_right_when_space_is_reclaimed() -> None:
    index = CollectionIndex(compact_above=3)
    keys = range(10)
    index.apply([to_row(make_document(each)) for each in keys])
    for turn in range(7):
        rows = [to_vector_row(key, EAST if key == turn else WEST, turn, turn + key) for key in keys]
        index.set_vectors("m", 2, keys, rows)
        index.apply([to_row(make_document(each, body=str(turn))) for each in keys if each % 2])
        best = index.find(FindRequest(COLLECTION, vector=towards(EAST), depth=1)).candidates[0]
        assert (best.id, best.cosine, best.passage) == (f"d{turn}", 1.0, (turn, 2 * turn))


def test_cosines_are_those_of_the_stored_vectors_at_any_width() -> None:
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((300, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = CollectionIndex()
    index.apply([to_row(make_document(each)) for each in range(300)])
    index.set_vectors("m", 384, range(300), [to_vector_row(key, vector) for key, vector in enumerate(vectors)])
    found = index.find(FindRequest(COLLECTION, vector=towards(vectors[5].tolist()), depth=300)).candidates
    exact = vectors.astype(np.float16).astype(np.float64) @ vectors[5].astype(np.float64)
    assert [each.id for each in found] == [f"d{each}" for each in np.argsort(-exact)]
    assert [each.cosine for each in found] == pytest.approx(np.sort(exact)[::-1].tolist(), abs=1e-6)
