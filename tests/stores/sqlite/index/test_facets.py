from __future__ import annotations

from refdesk.model import FacetCount, FindRequest, HasAny
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, ask, make_document, to_row


def test_a_value_is_counted_once_per_document_in_its_most_frequent_spelling() -> None:
    index = CollectionIndex()
    tags = [("azure", "AZURE"), ("Azure",), ("Azure", "vm"), ("sql",), ()]
    index.apply([to_row(make_document(each, facets={"tag": values})) for each, values in enumerate(tags)])
    found = index.find(FindRequest(COLLECTION, facets=("tag", "none"), depth=1))
    assert found.facets == {"tag": (FacetCount("Azure", 3), FacetCount("sql", 1), FacetCount("vm", 1)), "none": ()}


def test_of_spellings_used_equally_often_the_first_as_text_is_shown() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(each, facets={"tag": (tag,)})) for each, tag in enumerate(("vm", "VM", "Vm"))])
    assert index.find(FindRequest(COLLECTION, facets=("tag",))).facets == {"tag": (FacetCount("VM", 3),)}


def test_facets_count_everything_that_matches_and_nothing_else() -> None:
    index = CollectionIndex()
    index.apply(
        [
            to_row(make_document(each, body="red" if each % 3 else "blue", facets={"parity": (str(each % 2),)}))
            for each in range(100)
        ]
    )
    request = FindRequest(COLLECTION, text=ask("red"), facets=("parity",), depth=1)
    assert index.find(request).facets == {"parity": (FacetCount("0", 33), FacetCount("1", 33))}
    odd = FindRequest(COLLECTION, text=ask("red"), where=HasAny("parity", ("1",)), facets=("parity",))
    assert index.find(odd).facets == {"parity": (FacetCount("1", 33),)}


def test_counts_are_the_same_whether_few_documents_match_or_many() -> None:
    index = CollectionIndex()
    facets = {"tag": ("a", "A", "b")}
    index.apply([to_row(make_document(each, body="rare" * (each % 70 == 3), facets=facets)) for each in range(350)])
    found = index.find(FindRequest(COLLECTION, text=ask("rare"), facets=("tag",)))
    assert found.facets == {"tag": (FacetCount("A", 5), FacetCount("b", 5))}


def test_values_of_replaced_documents_are_not_counted() -> None:
    index = CollectionIndex(compact_above=2)
    for round in range(6):
        index.apply([to_row(make_document(each, facets={"tag": (f"round {round}", "all")})) for each in range(2)])
    found = index.find(FindRequest(COLLECTION, facets=("tag",)))
    assert found.facets == {"tag": (FacetCount("all", 2), FacetCount("round 5", 2))}
