from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from refdesk.model import BEST_FIRST, FindRequest, SortBy, SortKey
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, START, ask, find_ids, make_document, to_row


def test_ties_come_newest_first_and_then_by_id_as_text() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(each, body="red")) for each in (9, 10, 100, 11)])
    index.apply([to_row(make_document(5, body="red", modified_at=START + timedelta(microseconds=1)))])
    assert find_ids(index, FindRequest(COLLECTION, text=ask("red"), order=BEST_FIRST)) == [
        *("d5", "d10", "d100", "d11", "d9"),
    ]


@pytest.mark.parametrize("depth", [1, 3, 7, 50])
def test_of_more_ties_than_are_asked_for_the_first_by_id_are_returned(depth: int) -> None:
    index = CollectionIndex()
    numbers = list(range(50))
    Random(1).shuffle(numbers)
    for number in numbers:
        index.apply([to_row(make_document(number, title="same", body="red"))])
    expected = sorted(f"d{number}" for number in numbers)
    for order in ((), BEST_FIRST, (SortKey("title"), SortKey("created"))):
        assert find_ids(index, FindRequest(COLLECTION, depth=depth, order=order)) == expected[:depth]
    by_id = (SortKey("id", descending=True),)
    assert find_ids(index, FindRequest(COLLECTION, depth=depth, order=by_id)) == expected[::-1][:depth]


def test_titles_are_compared_without_case() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(each, title=title)) for each, title in enumerate(("b", "A", "c", "B", "ａ"))])
    ordered = find_ids(index, FindRequest(COLLECTION, order=(SortKey("title"),)))
    assert ordered == ["d1", "d4", "d0", "d3", "d2"]
    backwards = find_ids(index, FindRequest(COLLECTION, order=(SortKey("title", descending=True),), depth=3))
    assert backwards == ["d2", "d0", "d3"]


@pytest.mark.parametrize(("by", "expected"), [("modified", ["d1", "d0"]), ("created", ["d0", "d1"])])
def test_instants_are_ordered_as_asked(by: SortBy, expected: list[str]) -> None:
    later = START + timedelta(days=1)
    index = CollectionIndex()
    index.apply([to_row(make_document(0, modified_at=later)), to_row(make_document(1, created_at=later))])
    assert find_ids(index, FindRequest(COLLECTION, order=(SortKey(by),))) == expected
    assert find_ids(index, FindRequest(COLLECTION, order=(SortKey(by, descending=True),))) == expected[::-1]


def test_documents_that_join_by_their_title_are_the_newest_and_come_behind_the_text_matches() -> None:
    index = CollectionIndex()
    days = {0: 3, 1: 1, 2: 2, 3: 2, 4: 9}
    titled = [make_document(each, title="Oh ApPles", modified_at=START + timedelta(days=days[each])) for each in days]
    index.apply([to_row(document) for document in (*titled[:4], make_document(5, body="red"))])
    request = FindRequest(COLLECTION, text=ask("red"), depth=2, title_contains="h ａppl")
    found = index.find(request)
    assert [(each.id, each.title_contains) for each in found.candidates] == [
        ("d5", False),
        ("d0", True),
        ("d2", True),
    ]
    assert found.total == 1


def test_documents_with_all_terms_can_come_before_those_that_score_higher() -> None:
    index = CollectionIndex()
    filler = "and many other words that make this text a long one"
    index.apply([to_row(make_document(0, title="red red red")), to_row(make_document(1, body=f"red blue {filler}"))])
    index.apply([to_row(make_document(each, body="blue")) for each in range(2, 9)])
    request = FindRequest(COLLECTION, text=ask("red", "blue"), depth=2)
    assert find_ids(index, request) == ["d0", "d1"]
    all_first = (SortKey("all_terms", descending=True), *BEST_FIRST)
    request = FindRequest(COLLECTION, text=ask("red", "blue"), depth=2, order=all_first)
    assert find_ids(index, request) == ["d1", "d0"]
