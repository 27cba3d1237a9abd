from __future__ import annotations

from math import log

import pytest

from refdesk.model import FindRequest, HasAny, State, TextQuery
from refdesk.stores.sqlite.index import CollectionIndex
from tests.stores.sqlite.index.corpus import COLLECTION, ask, find_ids, make_document, to_row


def index_texts(*texts: tuple[str, str]) -> CollectionIndex:
    index = CollectionIndex()
    index.apply([to_row(make_document(number, title=title, body=body)) for number, (title, body) in enumerate(texts)])
    return index


def find_phrase(index: CollectionIndex, *phrases: str) -> list[str]:
    return sorted(find_ids(index, FindRequest(COLLECTION, text=ask(phrases=phrases))))


def test_the_score_is_bm25_with_a_title_word_counted_twice() -> None:
    index = index_texts(("router", "reset the router"), ("", "phone"), ("", ""), ("", "a b c d e"))
    found = index.find(FindRequest(COLLECTION, text=ask("router")))
    frequency, length, mean_length = 3, 5, (5 + 1 + 0 + 5) / 4
    weight = log(1 + (4 - 1 + 0.5) / (1 + 0.5))
    expected = weight * frequency / (frequency + 1.2 * (1 - 0.4 + 0.4 * length / mean_length))
    assert [(each.id, each.lexical) for each in found.candidates] == [("d0", pytest.approx(expected, rel=1e-12))]


def test_a_filter_does_not_change_a_score() -> None:
    index = CollectionIndex()
    index.apply([to_row(make_document(each, body="red red blue", facets={"n": (str(each),)})) for each in range(5)])
    alone = index.find(FindRequest(COLLECTION, text=ask("red"), where=HasAny("n", ("3",)))).candidates
    among = index.find(FindRequest(COLLECTION, text=ask("red"))).candidates
    assert alone == tuple(each for each in among if each.id == "d3")


def test_withdrawn_and_replaced_documents_leave_no_trace_in_the_statistics() -> None:
    index = index_texts(("", "red"), ("", "blue blue blue"), ("", "red green"))
    index.apply([to_row(make_document(1, state=State.WITHDRAWN)), to_row(make_document(2, body="green"))])
    fresh = CollectionIndex()
    fresh.apply([to_row(make_document(0, body="red")), to_row(make_document(2, body="green"))])
    request = FindRequest(COLLECTION, text=ask("red", "green", "blue"))
    assert index.find(request) == fresh.find(request)


def test_superseded_documents_count_in_the_statistics() -> None:
    index, other = CollectionIndex(), CollectionIndex()
    rows = [to_row(make_document(each, body="red")) for each in range(2)]
    other.apply([*rows, to_row(make_document(2, body="blue"))])
    index.apply([*rows, to_row(make_document(2, body="blue", state=State.SUPERSEDED))])
    request = FindRequest(COLLECTION, text=ask("red"))
    assert index.find(request) == other.find(request)


def test_a_document_with_one_of_the_terms_matches_but_only_one_with_all_says_so() -> None:
    index = index_texts(("red", "blue"), ("", "red"), ("", "green"))
    found = index.find(FindRequest(COLLECTION, text=ask("red", "blue")))
    assert [(each.id, each.all_terms) for each in found.candidates] == [("d0", True), ("d1", False)]


def test_terms_that_nobody_has_find_nothing() -> None:
    assert index_texts(("red", "blue")).find(FindRequest(COLLECTION, text=ask("absent"))).total == 0


def test_a_phrase_must_stand_together_and_in_order() -> None:
    index = index_texts(("", "the new york times"), ("", "york new"), ("", "new old york"), ("New York", ""))
    assert find_phrase(index, "new york") == ["d0", "d3"]


def test_a_phrase_does_not_reach_from_title_to_body_or_into_the_next_document() -> None:
    index = index_texts(("new", "york"), ("", "new"), ("york", ""), ("", "new york"))
    assert find_phrase(index, "new york") == ["d3"]


def test_a_phrase_may_repeat_a_word() -> None:
    index = index_texts(("", "new york"), ("", "new new york"), ("", "new york new york"))
    assert find_phrase(index, "new new york") == ["d1"]


def test_of_several_phrases_each_must_occur_and_one_word_can_be_a_phrase() -> None:
    index = index_texts(("", "red car, blue house"), ("", "red car"), ("", "blue house"), ("red car", "house"))
    assert find_phrase(index, "red car", "house") == ["d0", "d3"]


def test_a_document_with_every_phrase_but_none_of_the_terms_does_not_match() -> None:
    index = index_texts(("", "red car"), ("", "red car fast"))
    assert find_ids(index, FindRequest(COLLECTION, text=ask("fast", phrases=("red car",)))) == ["d1"]


def test_words_of_a_phrase_add_to_the_score() -> None:
    index = index_texts(("", "red car and other things"), ("", "red car"))
    found = index.find(FindRequest(COLLECTION, text=ask(phrases=("red car",)))).candidates
    assert [each.id for each in found] == ["d1", "d0"]
    assert found[0].lexical > found[1].lexical > 0


def test_a_phrase_is_found_in_a_large_collection_by_either_way_of_looking() -> None:
    texts = [("", "common word " * 30 + ("rare " if each % 50 == 7 else "") + "common") for each in range(200)]
    index = index_texts(*texts)
    assert len(find_phrase(index, "rare common")) == 4
    assert index.find(FindRequest(COLLECTION, text=ask(phrases=("common word",)))).total == 200


def test_any_text_can_be_asked_for() -> None:
    index = index_texts(("\x00 \ud800", '\'; DROP TABLE "AND" OR NEAR(* ^:'), ("", ""))
    for text in ("\x00", "\ud800", '"', "AND OR NOT", "é" * 10_000, "*", "a:b", "NEAR(x"):
        assert index.find(FindRequest(COLLECTION, text=TextQuery((text,), ((text, text),)))).total == 0


def test_a_collection_of_empty_texts_has_no_words() -> None:
    index = index_texts(("red", ""), ("", ""))
    index.apply([to_row(make_document(0))])
    assert index.find(FindRequest(COLLECTION, text=ask("red"))).total == 0
