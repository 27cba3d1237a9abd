"""Terms that many documents contain, as bits of rows: where they meet is seen 64 documents at a time."""

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
"""Of fewer documents no bits are kept: adding up their postings is fast."""

HOLDER_SHARE = 64
"""A term is frequent when one in so many documents contains it; its bits then take half as much room again as its
postings. With one in 32 the slowest question in twenty takes half as long again (measured at a million)."""

USUAL_SHARE = 0.85
"""Of this share of a term's postings none has a higher bound than its usual one."""

UNITS = 96
"""How finely a sum is told, by the most that all terms add; what each adds is rounded up, so a sum is at most one unit
a term too high."""

Words: TypeAlias = NDArray[np.uint64]
"""One bit a row: that of row r is bit r % 64 of word r // 64."""

_ONE, _LOW = np.uint64(1), np.uint64(63)


@dataclass(frozen=True, slots=True, eq=False)
class FrequentTerms:
    """The frequent terms of a segment.

    Attributes:
        places: Of each in the segment's terms, ascending.
        holders: Shape `(terms, words)`: which rows contain each.
        strong: The same, of those alone whose bound is above the usual one.
        before: The same shape: how many rows of the words before contain it.
        usual: The usual bound of each.
        counts: How many rows contain each.
        strengths: How many rows contain each strongly.
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
        """Return those of a segment of so many rows, `None` where it is small or has none.

        Args:
            offsets: The postings of term i are those from `offsets[i]` to `offsets[i + 1]`.
            rows: Of each posting, from 0.
            bounds: The same.
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
        """Return which of a term's postings those of some rows are; and which of the rows have one: others get any."""
        words = self.holders[number].take(spots.words)
        ranks = np.bitwise_count(words & spots.lower) + self.before[number].take(spots.words)
        return ranks, (words & spots.bits) != 0


@dataclass(frozen=True, slots=True, eq=False)
class Spots:
    """Where the bits of some rows stand: word, bit, and all bits below it."""

    words: RowNumbers
    bits: Words
    lower: Words

    @staticmethod
    def of(rows: RowNumbers) -> Spots:
        """Return those of some rows."""
        bits = _ONE << (rows.view(np.uint64) & _LOW)
        return Spots(rows >> 6, bits, bits - _ONE)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A frequent term of a question.

    Attributes:
        number: Which of the frequent terms.
        usual: What it adds to most scores at most.
        most: What it adds to any at most.
    """

    number: int
    usual: float
    most: float


def guess_least(frequent: FrequentTerms, terms: Sequence[Weighed], count: int, share: float) -> float:
    """Return what this share of so many rows would reach by these terms, were they independent of one another."""
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
    """Tells, for 64 rows at a time, whether the weights of terms add up to enough.

    A row reaches so much by the terms from one on if it does without that term, or contains it and reaches the rest by
    the others. That is rounded up to the next sum that the terms can have, so that few are different; what was found
    once is kept, for when less is asked for.
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
        """Return the rows, ascending, where what the terms add reaches `least`, which is above 0, and few others."""
        words = self._evaluate(0, max(int(least / self._unit), 1))
        return np.empty(0, np.intp) if words is None else _to_rows(words)

    def _evaluate(self, at: int, least: int) -> Words | None:
        """Return the rows that reach so much by the terms from one on, `None` where none does; `least` is above 0."""
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
    # What is empty is left out twice, and compared first: numpy finds what is true several times as fast as numbers.
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
