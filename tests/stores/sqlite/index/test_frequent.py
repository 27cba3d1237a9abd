"""Frequent terms as bits: what they tell is what adding up tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import get_offsets
from refdesk.stores.sqlite.index.frequent import (
    HOLDER_SHARE,
    LEAST_ROWS,
    UNITS,
    FrequentTerms,
    Reaching,
    Spots,
    Weighed,
    guess_least,
)

COUNT = LEAST_ROWS + 37
SHARES = (0.3, 0.001, 0.1, 0.05, 0.2, 0.04)


@dataclass(frozen=True, slots=True)
class Postings:
    """Of each term of `SHARES`: its rows, and the bound of each of all rows, 0 where it does not occur."""

    frequent: FrequentTerms
    rows: list[NDArray[np.intp]]
    bounds: list[NDArray[np.uint8]]

    @property
    def places(self) -> list[int]:
        """Of the frequent ones."""
        return self.frequent.places.tolist()


@pytest.fixture(scope="module")
def postings() -> Postings:
    drawn = np.random.default_rng(7)
    rows = [np.flatnonzero(drawn.random(COUNT) < share) for share in SHARES]
    bounds = [np.zeros(COUNT, np.uint8) for _ in rows]
    for each, held in zip(bounds, rows, strict=True):
        each[held] = drawn.choice(np.array([110, 120, 150, 200], np.uint8), len(held), p=[0.5, 0.36, 0.1, 0.04])
    offsets = get_offsets(np.array([len(each) for each in rows], np.int64))
    values = np.concatenate([each[held] for each, held in zip(bounds, rows, strict=True)])
    frequent = FrequentTerms.of(COUNT, offsets, np.concatenate(rows).astype(np.int32), values)
    assert frequent is not None
    return Postings(frequent, rows, bounds)


def weigh(postings: Postings) -> tuple[list[Weighed], NDArray[np.float64]]:
    """Return the frequent terms with a weight each, and what they add up to by their bounds, by row."""
    weights = [1.0, 1.5, 2.0, 1.2, 2.2]
    terms, sums = list[Weighed](), np.zeros(COUNT)
    for number, (place, weight) in enumerate(zip(postings.places, weights, strict=True)):
        bounds, usual = postings.bounds[place], int(postings.frequent.usual[number])
        terms.append(Weighed(number, usual * weight, int(bounds.max()) * weight))
        sums += bounds * weight
    return terms, sums


def test_only_what_many_rows_contain_is_frequent(postings: Postings) -> None:
    assert postings.places == [0, 2, 3, 4, 5]
    assert postings.frequent.counts.tolist() == [len(postings.rows[place]) for place in (0, 2, 3, 4, 5)]


def test_a_small_segment_has_no_frequent_terms() -> None:
    rows, bounds = np.arange(100, dtype=np.int32), np.full(100, 9, np.uint8)
    assert FrequentTerms.of(LEAST_ROWS - 1, np.array([0, 100]), rows, bounds) is None
    assert FrequentTerms.of(100 * HOLDER_SHARE * 200, np.array([0, 100]), rows, bounds) is None


def test_all_rows_that_reach_so_much_are_found_and_few_others(postings: Postings) -> None:
    terms, sums = weigh(postings)
    for share in (0.3, 0.02, 0.001):
        least = float(np.quantile(sums, 1.0 - share))
        found = Reaching(postings.frequent, terms).find(least)
        assert np.isin(np.flatnonzero(sums >= least), found).all()
        assert (np.diff(found) > 0).all()
        highest = np.zeros(COUNT)
        for place, usual, term in zip(postings.places, postings.frequent.usual.tolist(), terms, strict=True):
            bounds = postings.bounds[place]
            highest += np.where(bounds > usual, term.most, np.where(bounds > 0, term.usual, 0.0))
        unit = sum(term.most for term in terms) / UNITS
        assert (highest[found] >= least - (len(terms) + 1) * unit).all()


def test_more_than_all_terms_add_is_reached_by_no_row(postings: Postings) -> None:
    terms, _ = weigh(postings)
    assert not len(Reaching(postings.frequent, terms).find(1.01 * sum(term.most for term in terms) * (1 + 5 / UNITS)))


def test_one_term_is_enough_where_it_adds_that_much(postings: Postings) -> None:
    terms, _ = weigh(postings)
    found = Reaching(postings.frequent, terms[:1]).find(terms[0].usual)
    assert found.tolist() == postings.rows[0].tolist()


def test_what_is_guessed_is_reached_by_about_as_many(postings: Postings) -> None:
    terms, _ = weigh(postings)
    for share in (0.05, 0.005):
        least = guess_least(postings.frequent, terms, COUNT, share)
        reaching = len(Reaching(postings.frequent, terms).find(least)) / COUNT
        assert share / 3 < reaching < 3 * share


def test_the_posting_of_a_row_is_told_by_its_bits(postings: Postings) -> None:
    asked = np.arange(0, COUNT, 3)
    for number, place in enumerate(postings.places):
        rows = postings.rows[place]
        ranks, is_held = postings.frequent.rank(number, Spots.of(asked))
        assert is_held.tolist() == np.isin(asked, rows).tolist()
        assert rows[ranks[is_held]].tolist() == asked[is_held].tolist()
