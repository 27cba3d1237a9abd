from __future__ import annotations

import threading

import numpy as np
import pytest

from refdesk.model import BEST_FIRST, FacetCount, FindRequest, Found, HasAll, Not, SortKey, State, VectorQuery
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, ask, find_ids, make_document, to_row, to_vector_row

EVERYTHING = FindRequest(COLLECTION, order=(SortKey("id"),))


def test_an_empty_index_finds_nothing_however_it_is_asked() -> None:
    index = CollectionIndex()
    index.apply([])
    index.set_vectors("m", 2, [], [])
    index.drop_model("unknown")
    request = FindRequest(
        COLLECTION,
        text=ask("red", phrases=("red car",)),
        vector=VectorQuery(np.array([1, 0], np.float32), "m"),
        where=Not(HasAll("tag", ("x",))),
        order=BEST_FIRST,
        facets=("tag",),
    )
    assert index.find(request) == Found((), 0, {"tag": ()})
    assert index.find(EVERYTHING) == Found((), 0)


def test_an_index_whose_documents_were_all_withdrawn_finds_nothing() -> None:
    index = CollectionIndex(compact_above=0)
    index.apply([to_row(make_document(each, body="red", facets={"tag": ("x",)})) for each in range(3)])
    index.set_vectors("m", 2, range(3), [to_vector_row(key, (1, 0)) for key in range(3)])
    index.apply([to_row(make_document(each, state=State.WITHDRAWN)) for each in range(3)])
    vector = VectorQuery(np.array([1, 0], np.float32), "m")
    assert index.find(FindRequest(COLLECTION, ask("red"), vector, facets=("tag",))) == Found((), 0, {"tag": ()})


def test_the_row_of_the_highest_change_counts_wherever_it_stands() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(0, title="new"), seq=2), to_row(make_document(0, title="old"), seq=1)])
    assert find_ids(index, FindRequest(COLLECTION, text=ask("new"))) == ["d0"]
    assert find_ids(index, FindRequest(COLLECTION, text=ask("old"))) == []


def test_a_document_keeps_its_key_when_its_id_is_another() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(1), key=5)])
    index.apply([to_row(make_document(2), key=5)])
    assert find_ids(index, EVERYTHING) == ["d2"]


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
def test_documents_are_found_whatever_the_size_of_the_batches_they_came_in(batch: int) -> None:
    index = CollectionIndex(compact_above=20)
    rows = [to_row(make_document(each % 40, body=f"red w{each}", facets={"n": ("x",)})) for each in range(120)]
    for start in range(0, len(rows), batch):
        index.apply(rows[start : start + batch])
    found = index.find(FindRequest(COLLECTION, text=ask("red", phrases=("red",)), facets=("n",)))
    assert (found.total, found.facets) == (40, {"n": (FacetCount("x", 40),)})
    assert find_ids(index, FindRequest(COLLECTION, text=ask("w90"))) == ["d10"]
    assert find_ids(index, FindRequest(COLLECTION, text=ask("w10"))) == []


def test_searches_beside_changes_see_a_state_between_two_changes() -> None:
    index = CollectionIndex(compact_above=20)
    vector = VectorQuery(np.array([1, 0], np.float32), "m")
    done = threading.Event()

    def change() -> None:
        for turn in range(150):
            index.apply([to_row(make_document(each, body=f"red v{turn}")) for each in range(4)])
            index.set_vectors("m", 2, range(4), [to_vector_row(key, (1, 0), turn, turn) for key in range(4)])
        done.set()

    index.apply([to_row(make_document(each, body="red")) for each in range(4)])
    index.set_vectors("m", 2, range(4), [to_vector_row(key, (1, 0)) for key in range(4)])
    writer = threading.Thread(target=change)
    writer.start()
    answers: list[Found] = []
    while not done.is_set():
        answers.append(index.find(FindRequest(COLLECTION, ask("red"), vector, facets=("tag",))))
    writer.join(timeout=120)
    for found in answers:
        assert [each.id for each in found.candidates] == ["d0", "d1", "d2", "d3"]
        assert len({(each.lexical, each.cosine, each.passage) for each in found.candidates}) == 1
