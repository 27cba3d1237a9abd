"""Exact BM25: of every document at once, or of the best alone; and the documents that hold a phrase."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from refdesk.core.search.bm25 import K1, B, idf
from refdesk.stores.sqlite.index.columns import Floats, Integers, Mask, RowNumbers, Rows
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.postings import BOUND_STEPS, Segment
from refdesk.stores.sqlite.index.terms import hash_term

if TYPE_CHECKING:
    from refdesk.model import TextQuery

DENSE = 8
"""From one in this many positions wanted, a table of all is faster than a binary search for each."""

MANY_DEAD = 64
"""With more dead rows than one in this many postings, the postings are looked through."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in words, with what scores depend on beyond one part of the index.

    Attributes:
        numbers: Of each term, those of phrases behind the others.
        weights: The idf of each.
        asked: How many of them are the question's own terms.
        phrases: The numbers of the terms of each phrase.
        mean_length: Of all documents.
    """

    numbers: NDArray[np.uint64]
    weights: Sequence[float]
    asked: int
    phrases: Sequence[NDArray[np.uint64]]
    mean_length: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What a question in words says of each row, dead ones included.

    Attributes:
        lexical: The BM25 score.
        has_all_terms: Whether every term occurs.
        matches: Whether some term occurs, and every phrase.
    """

    lexical: Floats
    has_all_terms: Mask
    matches: Mask


Part = tuple[Documents, Sequence[Segment]]


def make_question(text: TextQuery, parts: Sequence[Part]) -> Question:
    """Return the question as it is put to each part. Words of phrases count like terms; see `core.search.bm25`."""
    terms = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
    numbers = np.array([hash_term(term) for term in terms], np.uint64)
    living = sum(documents.living for documents, _ in parts)
    counts = [
        [_count_living(segment, place, documents) for place in segment.locate(numbers)]
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
    )


def score_rows(question: Question, part: Part) -> Scores:
    """Return the scores of all rows."""
    documents, segments = part
    lexical = np.zeros(documents.count)
    hits = np.zeros(documents.count, np.int32)
    places = [segment.locate(question.numbers) for segment in segments]
    for index, weight in enumerate(question.weights):
        for segment, each in zip(segments, places, strict=True):
            if each[index] < 0:
                continue
            at = segment.get_rows(each[index])
            rows = segment.rows[at]
            lexical[rows] += _weigh(weight, segment.frequencies[at], rows, question, documents)
            if index < question.asked:
                hits[rows] += 1
    matches = hits > 0 if question.asked else np.full(documents.count, bool(question.phrases))
    for phrase in question.phrases:
        matches &= _mark_phrase(phrase, documents, segments)
    return Scores(lexical, hits == question.asked, matches)


def score_some(question: Question, part: Part, rows: RowNumbers) -> tuple[Floats, Mask]:
    """Return the scores of some rows, and whether every term occurs in each; the same numbers as `score_rows`."""
    documents, segments = part
    lexical, hits, wanted = np.zeros(len(rows)), np.zeros(len(rows), np.int32), rows.astype(np.int32)
    places = [segment.locate(question.numbers) for segment in segments]
    for index, weight in enumerate(question.weights):
        for segment, each in zip(segments, places, strict=True):
            if each[index] < 0:
                continue
            at = segment.get_rows(each[index])
            held = segment.rows[at]
            found = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
            here = np.flatnonzero(held[found] == wanted)
            frequencies = segment.frequencies[at][found[here]]
            lexical[here] += _weigh(weight, frequencies, wanted[here], question, documents)
            if index < question.asked:
                hits[here] += 1
    return lexical, hits == question.asked


def find_best(
    question: Question, documents: Documents, segment: Segment, wanted: Mask | None, depth: int
) -> RowNumbers | None:
    """Return rows among which are the `depth` best of the wanted, ascending; ties of the last are among them.
    `None` where the segment has no bounds.

    Terms are taken rarest first. What the rest could add at most tells when no row with the rest alone can be among the
    best any more, and in the end which rows still can.

    Source: Turtle and Flood, "Query evaluation: strategies and optimizations" (1995).
    """
    bounds_of = segment.bounds
    if bounds_of is None:
        return None
    drift = max(question.mean_length / segment.mean_length, 1.0)
    shrink = min(question.mean_length / segment.mean_length, 1.0)
    terms = _order_terms(question, segment)
    scores, touched = _get_workspace(documents.count), list[Rows]()
    rest, step, edge = sum(weight for weight, _ in terms) * drift, 0.0, 0.0
    try:
        for weight, at in terms:
            if touched and edge > rest:
                break
            rows, bounds = segment.rows[at], bounds_of[at]
            if wanted is not None:
                passing = wanted[rows]
                rows, bounds = rows[passing], bounds[passing]
            scores[rows] += bounds * np.float32(weight * drift / BOUND_STEPS)
            touched.append(rows)
            rest -= weight * drift
            step += weight * drift / BOUND_STEPS
            # A bound is at most a step too high, and too high for a mean length that was another.
            edge = max(edge, (_get_nth(scores[rows], depth) / drift - step) * shrink * _SLACK)
        for rows in touched:
            edge = max(edge, (_get_nth(scores[rows], depth) / drift - step) * shrink * _SLACK)
        best = [np.empty(0, np.int32)]
        for rows in touched:
            best.append(rows[scores[rows] >= edge - max(rest, 0.0)])
            scores[best[-1]] = -np.inf
        return np.sort(np.concatenate(best)).astype(np.intp)
    finally:
        for rows in touched:
            scores[rows] = 0.0


_SLACK = 1.0 - 1e-5
"""Sums of 32 bits are a little off."""

_workspaces = threading.local()


def _get_workspace(count: int) -> NDArray[np.float32]:
    """Return zeros, this thread's own; whoever takes them puts them back as they were."""
    held: NDArray[np.float32] | None = getattr(_workspaces, "scores", None)
    if held is None or len(held) < count:
        held = np.zeros(max(count, 1024), np.float32)
        _workspaces.scores = held
    return held


def _order_terms(question: Question, segment: Segment) -> list[tuple[float, slice]]:
    """Return the idf and the postings of each term that occurs, rarest first."""
    places = segment.locate(question.numbers)
    terms = [
        (weight, segment.get_rows(place)) for weight, place in zip(question.weights, places, strict=True) if place >= 0
    ]
    return sorted(terms, key=lambda term: term[1].stop - term[1].start)


def _get_nth(values: NDArray[np.float32], depth: int) -> float:
    """Return the value that `depth` of them reach, 0.0 where they are fewer."""
    if len(values) < depth:
        return 0.0
    return float(np.partition(values, len(values) - depth)[len(values) - depth])


def _weigh(
    weight: float, frequencies: NDArray[np.float32], rows: Rows, question: Question, documents: Documents
) -> Floats:
    """Return what a term of this idf adds to the scores of rows.

    The operations and their order are those of `bm25.term_score`, so that scores equal to the last bit tie everywhere.
    """
    counted = frequencies.astype(np.float64)
    relative_lengths = documents.lengths[rows] / question.mean_length
    return weight * counted / (counted + K1 * (1.0 - B + B * relative_lengths))


def _count_living(segment: Segment, place: int, documents: Documents) -> int:
    if place < 0:
        return 0
    rows = segment.rows[segment.get_rows(place)]
    dead = documents.count - documents.living
    if not dead:
        return len(rows)
    if MANY_DEAD * dead > len(rows):
        return int(np.count_nonzero(documents.is_live[rows]))
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
    """Return the first positions of the runs that take one position from each list, in order, without a gap."""
    rarest = min(range(len(positions)), key=lambda each: len(positions[each]))
    starts = positions[rarest] - rarest
    for distance, others in sorted(enumerate(positions), key=lambda each: len(each[1])):
        starts = starts[_contains(others, starts + distance)]
    return starts


def _contains(positions: Integers, wanted: Integers) -> Mask:
    """Return which of `wanted` are among the positions, both ascending; `positions` are not empty."""
    if len(wanted) * DENSE > len(positions):
        return np.isin(wanted, positions, assume_unique=True, kind="table")
    places = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
    return positions[places] == wanted
