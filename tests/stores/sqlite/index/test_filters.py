from __future__ import annotations

from datetime import timedelta

import pytest

from refdesk.model import And, DateRange, Filter, FindRequest, HasAll, HasAny, InState, Not, Or, Overlaps, State
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, START, ask, find_ids, make_document, to_row

DAY = timedelta(days=1)
ALL = ["d0", "d1", "d2", "d3"]


@pytest.fixture(scope="module")
def index() -> CollectionIndex:
    index = CollectionIndex()
    one_day, week = DateRange(START + DAY, START + DAY), DateRange(START + 2 * DAY, START + 9 * DAY)
    documents = [
        make_document(0, facets={"tag": ("Azure", "VM")}, date_ranges={"open": (one_day, week)}),
        make_document(1, facets={"tag": ("ａzure ",), "kind": ("x",)}, date_ranges={"shut": (one_day,)}),
        make_document(2, facets={"tag": ()}, state=State.SUPERSEDED),
        make_document(3, body="text"),
        make_document(4, facets={"tag": ("azure",)}, date_ranges={"open": (one_day,)}, state=State.WITHDRAWN),
    ]
    index.apply([to_row(document) for document in documents])
    return index


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (HasAll("tag", ("AZURE",)), ["d0", "d1"]),
        (HasAll("tag", ("azure", "vm")), ["d0"]),
        (HasAll("tag", ("azure", "unknown")), []),
        (HasAll("tag", ()), ALL),
        (HasAll("none", ("x",)), []),
        (HasAny("tag", ("vm", "unknown")), ["d0"]),
        (HasAny("tag", ()), []),
        (HasAny("none", ("x",)), []),
        (Overlaps(("open",)), ["d0"]),
        (Overlaps(("open", "shut"), START + DAY, START + DAY), ["d0", "d1"]),
        (Overlaps(("open",), START + timedelta(days=1, microseconds=1), START + timedelta(days=1, hours=23)), []),
        (Overlaps(("open",), since=START + 9 * DAY), ["d0"]),
        (Overlaps(("open",), since=START + timedelta(days=9, microseconds=1)), []),
        (Overlaps(("shut",), until=START + DAY), ["d1"]),
        (Overlaps(("shut",), until=START), []),
        (Overlaps(()), []),
        (InState((State.CURRENT,)), ["d0", "d1", "d3"]),
        (InState((State.SUPERSEDED, State.WITHDRAWN)), ["d2"]),
        (InState(()), []),
        (Not(HasAny("tag", ("azure",))), ["d2", "d3"]),
        (And(()), ALL),
        (Or(()), []),
        (Not(Or((HasAll("kind", ("x",)), And((HasAny("tag", ("vm",)), Overlaps(("open",))))))), ["d2", "d3"]),
    ],
)
def test_a_condition_lets_exactly_these_documents_pass(
    index: CollectionIndex, condition: Filter, expected: list[str]
) -> None:
    found = index.find(FindRequest(COLLECTION, where=condition))
    assert sorted(each.id for each in found.candidates) == expected
    assert found.total == len(expected)


def test_a_filter_takes_no_place_of_what_passes_it() -> None:
    index = CollectionIndex()
    documents = [make_document(each, title="red" * (each < 90), body="red blue green") for each in range(90)]
    documents += [make_document(each, body="red", facets={"tag": ("late",)}) for each in range(90, 95)]
    index.apply([to_row(document) for document in documents])
    request = FindRequest(COLLECTION, text=ask("red"), where=HasAny("tag", ("late",)), depth=5)
    assert find_ids(index, request) == ["d90", "d91", "d92", "d93", "d94"]
