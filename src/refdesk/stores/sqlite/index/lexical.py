"""Exact BM25, of every document at once or of the best only; and the documents that contain a phrase."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from refdesk.core.search.bm25 import K1, B, idf
from refdesk.stores.sqlite.index.columns import Floats, Integers, Mask, RowNumbers
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.frequent import FrequentTerms, Reaching, Spots, Weighed, guess_least
from refdesk.stores.sqlite.index.postings import BOUND_STEPS, Segment
from refdesk.stores.sqlite.index.terms import hash_term

if TYPE_CHECKING:
    from refdesk.model import TextQuery

DENSE = 8
"""If at least one in this many positions is wanted, a table of all is faster than a binary search for each."""

SAMPLE = 512
"""How many values are sampled to guess where the best of all begin."""

SPREAD_SHARE = 4
"""If at least one in this many rows has a term, all rows are scanned in one direction rather than only those."""

SCATTER_SHARE = 8
"""If fewer rows than one in this many of a term's are looked up, searching for each beats spreading postings out."""

MANY_DEAD = 64
"""If there are more dead rows than one in this many postings, the postings are scanned."""


RANK_SHARE = 2
"""If fewer rows than one in this many of a term's are looked up, counting bits beats spreading postings out."""

MEET_FROM, MEET_TERMS = 1 << 17, 6
"""Least postings of frequent terms, and most terms, for which bits are faster than adding up postings."""

MEET_SHARE = 16
"""Rows found by bits are looked at only if they are at most one in this many."""

GUESSED = 8
"""How many times as many rows as wanted should reach the guessed threshold, because their sums are rounded up."""


@dataclass(frozen=True, slots=True)
class Question:
    """A keyword query, with what scores depend on beyond one part of the index.

    Attributes:
        numbers: The number of each term; terms of phrases come last.
        weights: The idf of each term.
        asked: How many of them are terms of the query itself.
        phrases: The numbers of the terms of each phrase.
        mean_length: Of all documents.
        places: The place of each term in each segment; see `Segment.locate`.
    """

    numbers: NDArray[np.uint64]
    weights: Sequence[float]
    asked: int
    phrases: Sequence[NDArray[np.uint64]]
    mean_length: float
    places: Mapping[Segment, Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The result of a keyword query for each row, dead ones included.

    Attributes:
        lexical: The BM25 score.
        has_all_terms: Whether every term occurs.
        matches: Whether some term occurs, and every phrase.
    """

    lexical: Floats
    has_all_terms: Mask
    matches: Mask


Part = tuple[Documents, Sequence[Segment]]
Bounds = NDArray[np.uint8]
Floats32 = NDArray[np.float32]


def make_question(text: TextQuery, parts: Sequence[Part]) -> Question:
    """Return the query as it is put to each part. Words of phrases count like terms; see `core.search.bm25`."""
    terms = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
    numbers = np.array([hash_term(term) for term in terms], np.uint64)
    living = sum(documents.living for documents, _ in parts)
    places = {segment: segment.locate(numbers) for _, segments in parts for segment in segments}
    counts = [
        [_count_living(segment, place, documents) for place in places[segment]]
        for documents, segments in parts
        for segment in segments
    ]
    length = sum(documents.total_length for documents, _ in parts)
    return Question(
        numbers=numbers,
        weights=[idf(living, sum(each[index] for each in counts)) for index in range(len(terms))],
        asked=len(text.terms),
        phrases=[np.array([hash_term(term) for term in phrase], np.uint64) for phrase in text.phrases],
        mean_length=length / max(living, 1) or 1.0,
        places=places,
    )


def score_rows(question: Question, part: Part) -> Scores:
    """Return the scores of all rows."""
    documents, segments = part
    lexical = np.zeros(documents.count)
    hits = np.zeros(documents.count, np.int32)
    places = [question.places[segment] for segment in segments]
    for index, weight in enumerate(question.weights):
        for segment, each in zip(segments, places, strict=True):
            if each[index] < 0:
                continue
            at = segment.get_rows(each[index])
            rows = segment.rows[at].astype(np.intp)
            lexical[rows] += _weigh(weight, segment.frequencies[at], documents.lengths[rows], question.mean_length)
            if index < question.asked:
                hits[rows] += 1
    matches = hits > 0 if question.asked else np.full(documents.count, bool(question.phrases))
    for phrase in question.phrases:
        matches &= _mark_phrase(phrase, documents, segments)
    return Scores(lexical, hits == question.asked, matches)


def score_some(question: Question, part: Part, rows: RowNumbers) -> tuple[Floats, Mask]:
    """Return the scores of some rows, and whether every term occurs in each; the same numbers as `score_rows`."""
    documents, segments = part
    wanted = rows.astype(np.int32)
    frequencies = np.zeros((len(question.weights), len(rows)), np.float32)
    for segment in segments:
        for held, place in zip(frequencies, question.places[segment], strict=True):
            if place >= 0:
                held += segment.find_frequencies(place, wanted)
    lexical = np.zeros(len(rows))
    weights = np.array(question.weights, np.float64)[:, np.newaxis]
    for each in _weigh(weights, frequencies, documents.lengths[rows], question.mean_length):
        lexical += each
    return lexical, np.all(frequencies[: question.asked] > 0.0, axis=0, keepdims=True)[0]


def find_best(
    question: Question, documents: Documents, segment: Segment, wanted: Mask | None, depth: int
) -> RowNumbers | None:
    """Return rows, ascending, that include the `depth` best wanted ones and ties of the last; `None` without bounds.

    Terms are taken rarest first. The most that the remaining terms could add says when no row that contains only those
    can be among the best any more; from then on the remaining terms are looked up only for the rows that still can be.
    If that point would come late, because all remaining terms are frequent, their bits show which rows they alone can
    bring among the best.

    Source: Turtle and Flood, "Query evaluation: strategies and optimizations" (1995).
    """
    if segment.bounds is None:
        return None
    return np.sort(_Search(question, segment, depth, documents.count).find(wanted))


@dataclass(frozen=True, slots=True)
class _Term:
    """A term that occurs.

    Attributes:
        at: Its postings.
        step: What one step of a bound adds to a score.
        most: The most that the term adds to a score.
        frequent: Which of the segment's frequent terms it is, -1 if it is none.
    """

    at: slice
    step: float
    most: float
    frequent: int

    @property
    def count(self) -> int:
        """How many rows contain it."""
        return self.at.stop - self.at.start


class _Search:
    """Finds the best rows by the bounds of their postings.

    A bound is at most a step too high. If the mean length has changed since the bounds were computed, a sum of bounds
    times `_drift` is never too low, and the sum less its steps, times `_shrink`, is never too high.
    """

    def __init__(self, question: Question, segment: Segment, depth: int, count: int) -> None:
        self._segment, self._depth, self._scores = segment, depth, _get_workspace(count)[:count]
        change = question.mean_length / segment.mean_length
        self._drift, self._shrink = max(change, 1.0), min(change, 1.0) * _SLACK
        self._terms = _order_terms(question, segment, self._drift)
        self._rest = [*accumulate((term.most for term in reversed(self._terms)), initial=0.0)][::-1]
        self._edge, self._steps, self._taken = 0.0, 0.0, 0

    def find(self, wanted: Mask | None) -> RowNumbers:
        """Return the rows that can be among the best, each once.

        Bounds are added up, term by term, until the remaining terms alone can bring no row among the best, or until all
        remaining terms are frequent and their bits show which rows they can bring there.
        """
        touched: list[RowNumbers] = []
        met, sums = np.empty(0, np.intp), np.empty(0, np.float32)
        first_frequent = sum(term.frequent < 0 for term in self._terms)
        try:
            for number, term in enumerate(self._terms):
                if self._edge > self._rest[number]:
                    break
                reaching = self._meet(self._terms[number:], wanted) if number == first_frequent else None
                if reaching is not None:
                    met, sums = reaching
                    touched.append(met)
                    break
                touched.append(self._add(term, wanted))
            rows, values = self._collect(touched)
        finally:
            self._clear(touched)
        rows = self._narrow(rows, values)
        return np.concatenate((rows, met.take(self._find_near(sums)))) if len(met) else rows

    def _meet(self, terms: Sequence[_Term], wanted: Mask | None) -> tuple[RowNumbers, Floats32] | None:
        """Return the rows that can be among the best by these frequent terms alone, and the sums of all their bounds.

        In the workspace these rows are set so low that they are not found again.

        The threshold is guessed; if what is found shows that it was too high, the search is repeated with what is known
        then. `None` if bits take longer than adding up postings.
        """
        frequent, count = self._segment.frequent, len(self._scores)
        if frequent is None or len(terms) > MEET_TERMS or sum(term.count for term in terms) < MEET_FROM:
            return None
        weighed = [
            Weighed(term.frequent, int(frequent.usual[term.frequent]) * term.step * self._drift, term.most)
            for term in terms
        ]
        passing = count if wanted is None else int(np.count_nonzero(wanted))
        steps = self._steps + sum(term.step for term in terms)
        enough = max(self._edge, guess_least(frequent, weighed, count, GUESSED * self._depth / max(passing, 1)))
        reaching = Reaching(frequent, weighed)
        while enough > 0.0:
            rows = reaching.find(enough)
            if wanted is not None:
                rows = rows.compress(wanted.take(rows))
            if MEET_SHARE * len(rows) > count:
                break
            sums, spots = self._scores.take(rows), Spots.of(rows)
            for term in terms:
                sums += self._read(term, spots)
            self._raise_edge(sums, steps)
            if self._edge >= enough:
                self._scores[rows] = -np.inf
                return rows, sums
            enough = self._edge
        return None

    def _narrow(self, rows: RowNumbers, values: Floats32) -> RowNumbers:
        """Return what is left of some rows once the terms that were not added are looked up for them."""
        while True:
            self._raise_edge(values)
            near = self._find_near(values)
            rows, values = rows.take(near), values.take(near)
            if self._taken == len(self._terms):
                return rows
            term = self._terms[self._taken]
            self._taken += 1
            self._steps += term.step
            values += self._look_up(term, rows)

    def _add(self, term: _Term, wanted: Mask | None) -> RowNumbers:
        """Add the bounds of a term, and return the rows they belong to."""
        rows, bounds = self._get_postings(term)
        if wanted is not None:
            passing = np.flatnonzero(wanted.take(rows))
            rows, bounds = rows.take(passing), bounds.take(passing)
        np.add.at(self._scores, rows, bounds * np.float32(term.step))
        self._steps += term.step
        self._taken += 1
        if self._rest[0] - self._rest[self._taken] > self._rest[self._taken]:
            self._raise_edge(self._scores.take(rows))
        return rows

    def _is_spread(self, touched: Sequence[RowNumbers]) -> bool:
        """Whether so many rows were touched that looking at all of them is as fast."""
        return SPREAD_SHARE * sum(map(len, touched)) > len(self._scores)

    def _clear(self, touched: Sequence[RowNumbers]) -> None:
        if self._is_spread(touched):
            self._scores.fill(0.0)
        else:
            for rows in touched:
                self._scores[rows] = 0.0

    def _collect(self, touched: Sequence[RowNumbers]) -> tuple[RowNumbers, Floats32]:
        if self._is_spread(touched):
            self._raise_edge(self._scores)
            near = self._find_near(self._scores)
            return near, self._scores.take(near)
        rows, values = [np.empty(0, np.intp)], [np.empty(0, np.float32)]
        for number, each in enumerate(reversed(touched)):
            held = self._scores.take(each)
            # The rows of the term that was added last have been looked at already.
            if number:
                self._raise_edge(held)
            near = self._find_near(held)
            rows.append(each.take(near))
            values.append(held.take(near))
            self._scores[rows[-1]] = -np.inf
        return np.concatenate(rows), np.concatenate(values)

    def _look_up(self, term: _Term, rows: RowNumbers) -> Floats32:
        """Return the most that a term adds to each of some rows."""
        if term.frequent >= 0 and RANK_SHARE * len(rows) < term.count:
            return self._read(term, Spots.of(rows))
        if SCATTER_SHARE * len(rows) < term.count:
            held, wanted = self._segment.rows[term.at], rows.astype(np.int32)
            found = np.searchsorted(held, wanted)
            bounds = cast("Bounds", self._segment.bounds)[term.at].take(found, mode="clip")
            return bounds * (held.take(found, mode="clip") == wanted) * np.float32(term.step)
        touched, bounds = self._get_postings(term)
        self._scores[touched] = bounds * np.float32(term.step)
        values = self._scores.take(rows)
        self._scores[touched] = 0.0
        return values

    def _get_postings(self, term: _Term) -> tuple[RowNumbers, Bounds]:
        # Numbers as wide as addresses: with others, numpy takes twice as long to gather and to scatter.
        return self._segment.rows[term.at].astype(np.intp), cast("Bounds", self._segment.bounds)[term.at]

    def _read(self, term: _Term, spots: Spots) -> Floats32:
        """Return the most that a frequent term adds to each of some rows."""
        ranks, is_held = cast("FrequentTerms", self._segment.frequent).rank(term.frequent, spots)
        bounds = cast("Bounds", self._segment.bounds)[term.at].take(ranks, mode="clip")
        return bounds * is_held * np.float32(term.step)

    def _raise_edge(self, values: Floats32, steps: float | None = None) -> None:
        """Raise the lower bound of the last best score by what some rows have; sums may be too high by `steps`."""
        if len(values) >= self._depth:
            above = self._steps if steps is None else steps
            self._edge = max(self._edge, (_get_nth(values, self._depth) - above) * self._shrink)

    def _find_near(self, values: Floats32) -> RowNumbers:
        """Return where the sums are that can still become one of the best."""
        least = (self._edge - self._rest[self._taken]) / self._drift
        return np.flatnonzero(values >= np.float32(least * _SLACK) if least > 0.0 else values > 0.0)


def _get_nth(values: Floats32, depth: int) -> float:
    """Return the value that exactly `depth` values reach, apart from ties; there must be at least so many.

    Selecting by `np.partition` takes up to fifty times as long if many values are equal.
    """
    stride = len(values) // (SAMPLE + depth)
    if stride > 1:
        sample = np.sort(values[::stride])
        high = values.take(np.flatnonzero(values >= sample[-(2 * depth // stride + 8)]))
        values = high if len(high) >= depth else values
    return float(np.sort(values)[-depth])


_SLACK = 1.0 - 1e-5
"""Allows for the rounding of sums in 32 bits."""

_workspaces = threading.local()


def _get_workspace(count: int) -> Floats32:
    """Return zeros that belong to this thread; whoever takes them leaves them zeros again."""
    held: Floats32 | None = getattr(_workspaces, "scores", None)
    if held is None or len(held) < count:
        held = np.zeros(max(count, 1024), np.float32)
        _workspaces.scores = held
    return held


def _order_terms(question: Question, segment: Segment, drift: float) -> list[_Term]:
    """Return the terms that occur, rarest first."""
    terms: list[_Term] = []
    for weight, place in zip(question.weights, question.places[segment], strict=True):
        if place >= 0:
            step, peak = weight / BOUND_STEPS, int(cast("Bounds", segment.peaks)[place])
            at, frequent = segment.get_rows(place), segment.find_frequent(place)
            terms.append(_Term(at, step, step * peak * drift, frequent))
    return sorted(terms, key=lambda term: term.count)


def _weigh(weight: float | Floats, frequencies: Floats32, lengths: Floats, mean_length: float) -> Floats:
    """Return what a term of this idf adds to the scores of rows of these lengths.

    The operations and their order are those of `bm25.term_score`, so that scores are equal to the last bit and tie
    everywhere.
    """
    counted = frequencies.astype(np.float64)
    relative_lengths = lengths / mean_length
    return weight * counted / (counted + K1 * (1.0 - B + B * relative_lengths))


def _count_living(segment: Segment, place: int, documents: Documents) -> int:
    if place < 0:
        return 0
    at = segment.get_rows(place)
    dead = documents.count - documents.living
    if not dead:
        return at.stop - at.start
    rows = segment.rows[at]
    if MANY_DEAD * dead > len(rows):
        return int(np.count_nonzero(documents.is_live.take(rows)))
    buried = np.flatnonzero(~documents.is_live).astype(np.int32)
    found = np.minimum(np.searchsorted(rows, buried), len(rows) - 1)
    return len(rows) - int(np.count_nonzero(rows[found] == buried))


def _mark_phrase(phrase: NDArray[np.uint64], documents: Documents, segments: Sequence[Segment]) -> Mask:
    mask = np.zeros(documents.count, np.bool_)
    for segment in segments:
        places = segment.locate(phrase)
        if -1 not in places:
            positions = _find_adjacent([segment.get_positions(place) for place in places])
            mask[np.searchsorted(documents.starts, positions, side="right") - 1] = True
    return mask


def _find_adjacent(positions: Sequence[Integers]) -> Integers:
    """Return the first position of each run that takes one position from each list, in order and without gaps."""
    rarest = min(range(len(positions)), key=lambda each: len(positions[each]))
    starts = positions[rarest] - rarest
    for distance, others in sorted(enumerate(positions), key=lambda each: len(each[1])):
        starts = starts[_contains(others, starts + distance)]
    return starts


def _contains(positions: Integers, wanted: Integers) -> Mask:
    """Return which of `wanted` are among the positions; both ascend, and `positions` must not be empty."""
    if len(wanted) * DENSE > len(positions):
        return np.isin(wanted, positions, assume_unique=True, kind="table")
    places = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return positions[places] == wanted
