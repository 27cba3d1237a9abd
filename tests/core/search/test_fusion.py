from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.core.search.fusion import absolute, convex, level, reciprocal_rank, weigh_vector
from refdesk.model import Candidate, TextQuery

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = TextQuery(("printer", "jam"))


def candidate(lexical: float = 0.0, cosine: float | None = None, *, all_terms: bool = False) -> Candidate:
    return Candidate("a", NOW, lexical, cosine, all_terms=all_terms)


def test_each_side_is_divided_by_its_best_and_weighted() -> None:
    assert convex([4.0, 2.0, 0.0], [0.4, 0.8, 0.2]) == pytest.approx([0.75, 0.75, 0.125])
    assert convex([4.0, 2.0], [0.4, 0.8], dense_weight=0.25) == pytest.approx([0.875, 0.625])


def test_a_vector_that_is_trusted_less_weighs_less_beside_words_and_never_alone() -> None:
    worded, near = candidate(4.0, 0.1), candidate(2.5, 0.9)
    full, less = absolute([worded, near], ASKED), absolute([worded, near], ASKED, trust=0.2)
    assert full[1] > full[0]
    assert less[0] > less[1]
    assert (
        absolute([candidate(0.0, 0.5), candidate(0.0, 0.9)], ASKED, trust=0.2)[0]
        < absolute([candidate(0.0, 0.9)], ASKED)[0]
    )


def test_without_vectors_words_alone_decide() -> None:
    assert convex([4.0, 2.0], [None, None]) == [1.0, 0.5]


def test_without_words_vectors_alone_decide() -> None:
    assert convex([0.0, 0.0], [0.3, 0.6]) == [0.5, 1.0]


def test_a_pending_vector_costs_nothing() -> None:
    pending, embedded = convex([4.0, 4.0], [None, 0.8])
    assert pending == embedded == 1.0


def test_a_negative_cosine_takes_nothing_away() -> None:
    assert convex([2.0, 1.0], [-0.9, 0.5]) == [0.5, 0.75]
    assert convex([2.0], [-0.5]) == [1.0]


def test_nothing_gives_nothing() -> None:
    assert convex([], []) == []
    assert convex([0.0], [None]) == [0.0]
    assert reciprocal_rank([]) == {}


sides = st.lists(st.tuples(st.floats(0, 50), st.none() | st.floats(-1, 1), st.booleans()), min_size=1, max_size=20)


@given(sides)
def test_scores_lie_between_zero_and_one(sides: list[tuple[float, float | None, bool]]) -> None:
    candidates = [candidate(lexical, cosine, all_terms=all_terms) for lexical, cosine, all_terms in sides]
    fused = convex([side[0] for side in sides], [side[1] for side in sides])
    assert all(0.0 <= score <= 1.0 + 1e-9 for score in [*fused, *absolute(candidates, ASKED)])


@given(sides)
def test_the_absolute_scale_keeps_the_order(sides: list[tuple[float, float | None, bool]]) -> None:
    candidates = [candidate(lexical, cosine, all_terms=all_terms) for lexical, cosine, all_terms in sides]
    fused = convex([side[0] for side in sides], [side[1] for side in sides])
    scaled = absolute(candidates, ASKED)
    order = sorted(range(len(sides)), key=fused.__getitem__)
    assert all(scaled[lower] <= scaled[higher] for lower, higher in pairwise(order))


def test_the_best_answer_to_something_unknown_scores_low() -> None:
    [unknown, _] = absolute([candidate(0.9, 0.2), candidate(0.3, 0.1)], ASKED)
    [known, _] = absolute([candidate(4.0, 0.65), candidate(0.3, 0.1)], ASKED)
    assert unknown < 0.3 < 0.6 < known < 1.0


def test_a_document_with_every_word_is_known_without_a_vector() -> None:
    assert absolute([candidate(0.4, all_terms=True)], ASKED) == [1.0]


def test_no_word_in_common_is_not_every_word() -> None:
    [score] = absolute([candidate(0.0, 0.1, all_terms=True)], TextQuery(()))
    assert score == pytest.approx(0.1)


def test_first_in_every_list_scores_one() -> None:
    scores = reciprocal_rank([["a", "b"], ["a", "c"]])
    assert scores["a"] == pytest.approx(1.0)
    assert scores["b"] == pytest.approx((1 / 62) / (2 / 61))


def test_weights_tell_lists_apart() -> None:
    scores = reciprocal_rank([["a"], ["b"]], weights=[0.6, 0.4])
    assert scores == pytest.approx({"a": 0.6, "b": 0.4})


def test_a_small_constant_lets_the_first_places_stand_out() -> None:
    far, near = (reciprocal_rank([["a", "b"]], k=k)["b"] for k in (1, 60))
    assert far == pytest.approx(2 / 3)
    assert near == pytest.approx(61 / 62)


def test_an_entry_that_cannot_be_in_a_list_is_not_held_against_it() -> None:
    scores = reciprocal_rank([["pending", "a"], ["a"]], absent={"pending": [1], "elsewhere": [0]})
    assert scores["pending"] == pytest.approx(1.0)
    assert "elsewhere" not in scores


def test_an_entry_found_in_a_list_it_should_not_be_in_still_scores_at_most_one() -> None:
    assert reciprocal_rank([["a"], ["a"]], absent={"a": [1]})["a"] == pytest.approx(1.0)


def test_an_empty_list_is_in_play_for_nobody() -> None:
    assert reciprocal_rank([["a"], []])["a"] == pytest.approx(1.0)


def test_what_rises_is_levelled_and_what_falls_stays() -> None:
    assert level([0.9, 0.5, 0.7, 0.3]) == pytest.approx([0.9, 0.6, 0.6, 0.3])
    assert level([0.1, 0.2, 0.6]) == pytest.approx([0.3, 0.3, 0.3])
    assert level([]) == []


def test_words_of_which_few_are_known_count_less_beside_the_vector() -> None:
    words, meaning = candidate(0.4, 0.5), candidate(0.1, 0.6)
    found = [words, meaning]
    by_words, by_meaning = absolute(found, ASKED)
    assert by_words > by_meaning
    by_words, better = absolute(found, ASKED, weigh_vector(found, ASKED))
    assert by_words < better == pytest.approx(max(absolute(found, ASKED)))


def test_words_that_are_known_count_in_full() -> None:
    assert weigh_vector([candidate(2.6, 0.5), candidate(0.1, 0.6)], ASKED) == 0.5
    assert weigh_vector([candidate(0.2, 0.5, all_terms=True)], ASKED) == 0.5
    assert weigh_vector([candidate(0.0, 0.5)], ASKED) == 1.0
    assert weigh_vector([], ASKED) == 1.0


def test_without_vectors_the_weight_of_words_does_not_matter() -> None:
    found = [candidate(0.4), candidate(0.1)]
    assert absolute(found, ASKED, weigh_vector(found, ASKED)) == pytest.approx(absolute(found, ASKED))
