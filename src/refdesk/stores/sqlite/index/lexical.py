"""Exact BM25 of all documents at once, and phrase matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refdesk.core.search.bm25 import K1, B, idf
from refdesk.model import TextQuery
from refdesk.stores.sqlite.index.columns import Floats, Integers, Mask, Rows
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.postings import Segment
from refdesk.stores.sqlite.index.terms import hash_term

DENSE = 8
"""From one in this many positions wanted, a table of all is faster than a binary search for each."""


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


def score_rows(text: TextQuery, documents: Documents, segments: Sequence[Segment]) -> Scores:
    """Return the scores of all rows. Words of phrases count like terms; see `refdesk.core.search.bm25`."""
    terms = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
    numbers = np.array([hash_term(term) for term in terms], np.uint64)
    places = [segment.locate(numbers) for segment in segments]
    lexical = np.zeros(documents.count)
    hits = np.zeros(documents.count, np.int32)
    for index in range(len(terms)):
        found = [(segment, each[index]) for segment, each in zip(segments, places, strict=True) if each[index] >= 0]
        _add_term(lexical, hits, found, documents, counts=index < len(text.terms))
    matches = hits > 0 if text.terms else np.full(documents.count, bool(text.phrases))
    for phrase in text.phrases:
        matches &= _mark_phrase(phrase, documents, segments)
    return Scores(lexical, hits == len(text.terms), matches)


def _add_term(
    lexical: Floats,
    hits: NDArray[np.int32],
    found: Sequence[tuple[Segment, int]],
    documents: Documents,
    *,
    counts: bool,
) -> None:
    """Add what one term gives to the scores of the rows that hold it.

    The operations and their order are those of `bm25.term_score`, so that scores equal to the last bit tie everywhere.
    """
    frequency = sum(_count_living(segment.rows[segment.get_rows(place)], documents) for segment, place in found)
    weight = idf(documents.living, frequency)
    for segment, place in found:
        at = segment.get_rows(place)
        rows, frequencies = segment.rows[at], segment.frequencies[at].astype(np.float64)
        relative_lengths = documents.lengths[rows] / documents.mean_length
        lexical[rows] += weight * frequencies / (frequencies + K1 * (1.0 - B + B * relative_lengths))
        if counts:
            hits[rows] += 1


def _count_living(rows: Rows, documents: Documents) -> int:
    if documents.living == documents.count:
        return len(rows)
    return int(np.count_nonzero(documents.is_live[rows]))


def _mark_phrase(phrase: Sequence[str], documents: Documents, segments: Sequence[Segment]) -> Mask:
    numbers = np.array([hash_term(term) for term in phrase], np.uint64)
    mask = np.zeros(documents.count, np.bool_)
    for segment in segments:
        places = segment.locate(numbers)
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
