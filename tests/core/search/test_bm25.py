from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refdesk.core.search.bm25 import K1, B, idf, term_score


def test_the_score_is_that_of_the_formula() -> None:
    assert term_score(3, 30, 20, 2.0) == pytest.approx(2.0 * 3 / (3 + 1.2 * (0.6 + 0.4 * 1.5)))
    assert idf(10, 2) == pytest.approx(log(1 + 8.5 / 2.5))


def test_a_term_in_every_document_still_counts_a_little() -> None:
    assert 0.0 < idf(1000, 1000) < 0.001


@given(st.integers(1, 10**9), st.data())
def test_rarer_terms_weigh_more(documents: int, data: st.DataObject) -> None:
    frequency = data.draw(st.integers(0, documents - 1))
    assert idf(documents, frequency) > idf(documents, frequency + 1) > 0.0


lengths = st.floats(1.0, 1e6)


@given(st.floats(0.5, 1e4), lengths, lengths, st.floats(0.01, 20.0))
def test_a_score_stays_below_its_idf_and_grows_with_repetition(
    tf: float, length: float, mean: float, weight: float
) -> None:
    assert 0.0 < term_score(tf, length, mean, weight) < term_score(tf * 2, length, mean, weight) < weight


@given(st.floats(0.5, 1e4), st.floats(1.0, 1e5), st.floats(1.0, 1e5))
def test_a_longer_document_scores_less(tf: float, length: float, mean: float) -> None:
    assert term_score(tf, length * 2, mean, 1.0) < term_score(tf, length, mean, 1.0)


def test_an_absent_term_adds_nothing() -> None:
    assert term_score(0, 10, 10, 2.0) == 0.0


def test_a_collection_without_text_divides_by_nothing() -> None:
    assert term_score(1, 0, 0, 1.0) == pytest.approx(1 / (1 + K1 * (1 - B + B)))
