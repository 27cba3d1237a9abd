"""Terms that many documents contain, as bitmaps over rows: 64 documents at a time are tested for several terms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Integers, RowNumbers

if TYPE_CHECKING:
    from refdesk.stores.sqlite.index.columns import Rows

LEAST_ROWS = 1 << 14
"""For fewer documents no bits are kept: adding up their postings is fast."""

HOLDER_SHARE = 64
"""A term is frequent if at least one in this many documents contains it; its bits then take half as much room again as
its postings. With one in 32 the slowest query in twenty takes half as long again (measured at a million)."""

USUAL_SHARE = 0.85
"""The share of a term's postings of which none has a higher bound than the term's usual one."""

UNITS = 96
"""Into how many units the most that all terms can add is divided. What each term adds is rounded up to units, so a sum
is too high by at most one unit per term."""

Words: TypeAlias = NDArray[np.uint64]
"""One bit per row: that of row r is bit r % 64 of word r // 64."""

_ONE, _LOW = np.uint64(1), np.uint64(63)


@dataclass(frozen=True, slots=True, eq=False)
class FrequentTerms:
    """The frequent terms of a segment.

    Attributes:
        places: The place of each in the segment's terms, ascending.
        holders: Shape `(terms, words)`: which rows contain each.
        strong: The same, but only those whose bound is above the usual one.
        before: The same shape: how many rows of the preceding words contain it.
        usual: The usual bound of each.
        counts: How many rows contain each.
        strengths: How many rows contain each with a bound above its usual one.
    """

    places: Integers
    holders: Words
    strong: Words
    before: Rows
    usual: NDArray[np.uint8]
    counts: Integers
    strengths: Integers

    @staticmethod
    def of(count: int, offsets: Integers, rows: Rows, bounds: NDArray[np.uint8]) -> FrequentTerms | None:
        """Return those of a segment of `count` rows; `None` if it is small or has none.

        Args:
            offsets: The postings of term i are those from `offsets[i]` to `offsets[i + 1]`.
            rows: The row of each posting, from 0.
            bounds: The bound of each posting.
        """
        counts = np.diff(offsets)
        places = np.flatnonzero(HOLDER_SHARE * counts >= count)
        if count < LEAST_ROWS or not len(places):
            return None
        words = -(-count // 64)
        holders, strong = np.empty((len(places), words), np.uint64), np.empty((len(places), words), np.uint64)
        before, usual = np.empty((len(places), words), np.int32), np.empty(len(places), np.uint8)
        strengths = np.empty(len(places), np.int64)
        for at, place in enumerate(places):
            own = slice(offsets[place], offsets[place + 1])
            held, values = rows[own], bounds[own]
            usual[at] = np.partition(values, int(USUAL_SHARE * len(values)))[int(USUAL_SHARE * len(values))]
            stronger = held[values > usual[at]]
            strengths[at] = len(stronger)
            holders[at], strong[at] = _to_words(held, words), _to_words(stronger, words)
            held_each = np.bitwise_count(holders[at])
            before[at] = np.cumsum(held_each, dtype=np.int32) - held_each
        return FrequentTerms(places.astype(np.int64), holders, strong, before, usual, counts[places], strengths)

    def rank(self, number: int, spots: Spots) -> tuple[Integers, NDArray[np.bool_]]:
        """Return which of a term's postings belong to some rows, and which of the rows have one: the others get any."""
        words = self.holders[number].take(spots.words)
        ranks = np.bitwise_count(words & spots.lower) + self.before[number].take(spots.words)
        return ranks, (words & spots.bits) != 0


@dataclass(frozen=True, slots=True, eq=False)
class Spots:
    """Where the bits of some rows are: word, bit, and all bits below it."""

    words: RowNumbers
    bits: Words
    lower: Words

    @staticmethod
    def of(rows: RowNumbers) -> Spots:
        """Return the spots of some rows."""
        bits = _ONE << (rows.view(np.uint64) & _LOW)
        return Spots(rows >> 6, bits, bits - _ONE)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A frequent term of a query.

    Attributes:
        number: Which of the frequent terms.
        usual: The most that it adds to most scores.
        most: The most that it adds to any score.
    """

    number: int
    usual: float
    most: float


def guess_least(frequent: FrequentTerms, terms: Sequence[Weighed], count: int, share: float) -> float:
    """Return the score that this share of `count` rows would reach by these terms if those were independent."""
    unit = sum(term.most for term in terms) / UNITS
    odds = np.ones(1)
    for term in terms:
        holding, strong = int(frequent.counts[term.number]) / count, int(frequent.strengths[term.number]) / count
        usual, most = int(term.usual / unit), int(term.most / unit)
        more = np.zeros(len(odds) + most)
        more[: len(odds)] = odds * (1.0 - holding)
        more[usual : usual + len(odds)] += odds * (holding - strong)
        more[most:] += odds * strong
        odds = more
    reaching = np.cumsum(odds[::-1])[::-1]
    return (int(np.count_nonzero(reaching >= share)) - 1) * unit


class Reaching:
    """Finds, 64 rows at a time, where the weights of terms add up to enough.

    A row reaches a sum by the terms from a given one on if it does so without that term, or if it contains it and
    reaches the rest of the sum by the others. Sums are rounded up to the next one that the terms can have, so that
    there are few different ones; what was found is kept, for when a lower sum is asked for.
    """

    def __init__(self, frequent: FrequentTerms, terms: Sequence[Weighed]) -> None:
        self._frequent = frequent
        self._unit = sum(term.most for term in terms) / UNITS
        self._terms = [
            (term.number, int(term.usual / self._unit) + 1, int(term.most / self._unit) + 1) for term in terms
        ]
        self._sums: list[list[int]] = [[0]]
        for _, usual, most in reversed(self._terms):
            self._sums.insert(0, sorted({each + more for more in (0, usual, most) for each in self._sums[0]}))
        self._known: dict[tuple[int, int], Words | None] = {}

    def find(self, least: float) -> RowNumbers:
        """Return the rows, ascending, in which the terms add up to at least `least`, above 0, and a few others."""
        words = self._evaluate(0, max(int(least / self._unit), 1))
        return np.empty(0, np.intp) if words is None else _to_rows(words)

    def _evaluate(self, at: int, least: int) -> Words | None:
        """Return the rows that reach `least` by the terms from `at` on, `None` if none does; `least` is above 0."""
        place = bisect_left(self._sums[at], least)
        if place == len(self._sums[at]):
            return None
        key = at, self._sums[at][place]
        if key not in self._known:
            self._known[key] = self._combine(at, key[1])
        return self._known[key]

    def _combine(self, at: int, least: int) -> Words | None:
        number, usual, most = self._terms[at]
        found = self._evaluate(at + 1, least)
        for rows, weight in ((self._frequent.holders[number], usual), (self._frequent.strong[number], most)):
            if weight >= least:
                return rows if found is None else rows | found
            having = self._evaluate(at + 1, least - weight)
            if having is not None:
                found = rows & having if found is None else found | (rows & having)
        return found


def _to_rows(words: Words) -> RowNumbers:
    """Return the rows whose bits are set, ascending."""
    # Empty words, then empty bytes, are left out; compared with 0 first, as numpy finds truth values several times as
    # fast as numbers.
    at = np.flatnonzero(words != 0)
    eighths = words.take(at).astype("<u8", copy=False).view(np.uint8)
    held = np.flatnonzero(eighths != 0)
    places = np.flatnonzero(np.unpackbits(eighths.take(held), bitorder="little").view(np.bool_))
    held = held.take(places >> 3)
    return (at.take(held >> 3) << 6) | ((held & 7) << 3) | (places & 7)


def _to_words(rows: Rows, words: int) -> Words:
    marks = np.zeros(64 * words, np.bool_)
    marks[rows] = True
    packed: Words = np.packbits(marks, bitorder="little").view("<u8").astype(np.uint64)
    return packed
