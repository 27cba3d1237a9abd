"""Postings (which documents contain a term, how often and where) in immutable segments that are merged.

A token's position is its place in one numbering of all tokens of the index (see `Documents.starts`), with a gap between
a document's title and body and another after each document, so that two tokens are adjacent in a text exactly when
their positions differ by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from refdesk.core.search.bm25 import K1, TITLE_WEIGHT, B
from refdesk.stores.sqlite.index.columns import (
    Floats,
    Integers,
    Rows,
    Scalar,
    differs_from_previous,
    expand_ranges,
    get_offsets,
)
from refdesk.stores.sqlite.index.frequent import HOLDER_SHARE, FrequentTerms, Spots

MERGE_RATIO = 8
"""This keeps segments few (at most six at 100,000 rows), while each row is rewritten some eight times for each factor
of eight by which the index grows."""

BOUND_STEPS = 255
_PIECE = 1 << 18

_FEW = 512
"""For no more rows than this, searching for each is as fast as counting bits."""

GAPS = 2
"""Positions of a document that hold no token: one after its title, one after its body."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenStream:
    """The tokens of consecutive documents.

    Attributes:
        first_row: Row of the first document.
        first_position: Position of its first token.
        tokens: Numbers of the terms of each document, title before body, one document after another.
        title_lengths: Per document, how many of its tokens are the title's.
        lengths: Per document, how many tokens it has.
    """

    first_row: int
    first_position: int
    tokens: NDArray[np.uint64]
    title_lengths: Integers
    lengths: Integers

    @property
    def size(self) -> int:
        """How many positions it takes."""
        return int(self.lengths.sum()) + GAPS * len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The postings of consecutive rows: for each term its rows, ascending, and its positions, ascending.

    Attributes:
        base: Where its positions count from. They are 32 bits wide, which limits a segment to four billion tokens.
        terms: Numbers of the terms, ascending.
        row_offsets: `rows[row_offsets[i]:row_offsets[i + 1]]` are those of `terms[i]`.
        frequencies: Parallel to `rows`: occurrences in the body plus `TITLE_WEIGHT` times those in the title.
        position_offsets: The same for `positions`.
        size: How many rows it was made from.
        bounds: Parallel to `rows`: see `with_bounds`; `None` if they were not computed.
        peaks: The highest bound of each term.
        mean_length: Of the documents, when `bounds` were computed.
        frequent: The frequent terms, if bounds were computed.
    """

    base: int
    terms: NDArray[np.uint64]
    row_offsets: Integers
    rows: Rows
    frequencies: NDArray[np.float32]
    position_offsets: Integers
    positions: NDArray[np.uint32]
    size: int
    bounds: NDArray[np.uint8] | None = None
    peaks: NDArray[np.uint8] | None = None
    mean_length: float = 1.0
    frequent: FrequentTerms | None = None

    def with_bounds(self, lengths: Floats, mean_length: float) -> Segment:
        """Return the same with the most that each posting adds to a score, in steps of 1/`BOUND_STEPS` of the idf.

        It is rounded up, so it is at most a step too high as long as documents have this mean length.
        """
        bounds = np.empty(len(self.rows), np.uint8)
        for start in range(0, len(bounds), _PIECE):
            at = slice(start, start + _PIECE)
            frequencies = self.frequencies[at].astype(np.float64)
            relative_lengths = lengths[self.rows[at]] / mean_length
            saturated = frequencies / (frequencies + K1 * (1.0 - B + B * relative_lengths))
            bounds[at] = np.ceil(saturated * BOUND_STEPS)
        peaks = np.maximum.reduceat(bounds, self.row_offsets[:-1]) if len(bounds) else bounds
        frequent = FrequentTerms.of(len(lengths), self.row_offsets, self.rows, bounds)
        return replace(self, bounds=bounds, peaks=peaks, mean_length=mean_length, frequent=frequent)

    def locate(self, terms: NDArray[np.uint64]) -> list[int]:
        """Return the place of each term in `self.terms`, -1 if it does not occur."""
        if not len(self.terms):
            return [-1] * len(terms)
        places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return np.where(self.terms[places] == terms, places, -1).tolist()

    def get_rows(self, place: int) -> slice:
        """Return the range of the rows of the term at `place`."""
        return slice(int(self.row_offsets[place]), int(self.row_offsets[place + 1]))

    def find_frequent(self, place: int) -> int:
        """Return which of the frequent terms the term at `place` is, -1 if it is none of them."""
        at = self.get_rows(place)
        if self.frequent is None or HOLDER_SHARE * (at.stop - at.start) < self.size:
            return -1
        return int(np.searchsorted(self.frequent.places, place))

    def find_frequencies(self, place: int, wanted: Rows) -> NDArray[np.float32]:
        """Return the frequency of the term at `place` in each of some rows, 0.0 if it does not occur."""
        at = self.get_rows(place)
        number = self.find_frequent(place) if len(wanted) > _FEW else -1
        if self.frequent and number >= 0:
            ranks, is_held = self.frequent.rank(number, Spots.of(wanted.astype(np.intp)))
            return self.frequencies[at].take(ranks, mode="clip") * is_held
        rows = self.rows[at]
        found = np.searchsorted(rows, wanted)
        return self.frequencies[at].take(found, mode="clip") * (rows.take(found, mode="clip") == wanted)

    def get_positions(self, place: int) -> Integers:
        """Return the positions of the term at `place`, counted from the start of the index."""
        start, end = self.position_offsets[place : place + 2]
        return self.positions[start:end].astype(np.int64) + self.base


def build_segment(stream: TokenStream) -> Segment:
    """Return the postings of a stream."""
    order = _sort_tokens(stream.tokens)
    sorted_tokens = stream.tokens[order]
    starts_term = differs_from_previous(sorted_tokens)
    rows, weights, positions = _describe_tokens(stream)
    rows, weights = rows[order], weights[order]
    starts_posting = starts_term | differs_from_previous(rows)
    postings, term_starts = np.flatnonzero(starts_posting), np.flatnonzero(starts_term)
    return Segment(
        base=stream.first_position,
        terms=sorted_tokens[term_starts],
        row_offsets=np.append(np.searchsorted(postings, term_starts), len(postings)),
        rows=(rows[postings] + stream.first_row).astype(np.int32),
        frequencies=np.add.reduceat(weights, postings) if len(postings) else weights,
        position_offsets=np.append(term_starts, len(order)),
        positions=positions[order],
        size=len(stream.lengths),
    )


def _sort_tokens(tokens: NDArray[np.uint64]) -> Integers:
    """Return the stable order of the tokens.

    Sorting plain numbers is several times faster than an argsort (measured: 0.6 s against 1.7 s for 13 million), so a
    token's place is packed into its low bits. If the high bits alone do not distinguish two terms, the slow way is
    taken.
    """
    low = np.uint64(max(len(tokens), 1).bit_length())
    packed = (tokens >> low << low) | np.arange(len(tokens), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << low) - np.uint64(1))).astype(np.int64)
    ordered = tokens[order]
    return order if bool((ordered[1:] >= ordered[:-1]).all()) else np.argsort(tokens, kind="stable")


def _describe_tokens(stream: TokenStream) -> tuple[Rows, NDArray[np.float32], NDArray[np.uint32]]:
    """Return row, weight and position of each token, the first two counted from the start of the stream."""
    count = len(stream.lengths)
    parts = np.stack((stream.title_lengths, stream.lengths - stream.title_lengths), axis=1).ravel()
    rows = np.repeat(np.arange(count, dtype=np.int32), stream.lengths)
    weights = np.repeat(np.tile(np.array([TITLE_WEIGHT, 1], np.float32), count), parts)
    positions = np.arange(len(stream.tokens)) + np.repeat(np.arange(2 * count), parts)
    return rows, weights, positions.astype(np.uint32)


def append_segment(segments: Sequence[Segment], segment: Segment) -> tuple[Segment, ...]:
    """Return the segments with one more, merged so that each has more than `MERGE_RATIO` times the rows of the next."""
    kept = list(segments)
    while kept and MERGE_RATIO * segment.size >= kept[-1].size:
        segment = merge_segments(kept.pop(), segment)
    return (*kept, segment)


def merge_segments(first: Segment, second: Segment) -> Segment:
    """Return one segment with the postings of two, of which `second` has the higher rows."""
    terms = np.concatenate((first.terms, second.terms))
    terms.sort()
    terms = terms[differs_from_previous(terms)]
    places = (np.searchsorted(terms, first.terms), np.searchsorted(terms, second.terms))
    row_runs = _interleave(len(terms), places, (first.row_offsets, second.row_offsets))
    position_runs = _interleave(len(terms), places, (first.position_offsets, second.position_offsets))
    moved = second.positions + np.uint32(second.base - first.base)
    return Segment(
        base=first.base,
        terms=terms,
        row_offsets=row_runs.offsets,
        rows=row_runs.fill(first.rows, second.rows),
        frequencies=row_runs.fill(first.frequencies, second.frequencies),
        position_offsets=position_runs.offsets,
        positions=position_runs.fill(first.positions, moved),
        size=first.size + second.size,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Interleaving:
    """Where the items of two lists of runs go when each run of the second is put after that of the first."""

    offsets: Integers
    from_first: Integers
    from_second: Integers

    def fill(self, first: NDArray[Scalar], second: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the items of both, in their places."""
        merged = np.empty(len(first) + len(second), first.dtype)
        merged[self.from_first] = first
        merged[self.from_second] = second
        return merged


def _interleave(count: int, places: tuple[Integers, Integers], offsets: tuple[Integers, Integers]) -> _Interleaving:
    lengths = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
    for each, at, edges in zip(lengths, places, offsets, strict=True):
        each[at] = np.diff(edges)
    merged = get_offsets(lengths[0] + lengths[1])
    starts = merged[:-1]
    return _Interleaving(
        offsets=merged,
        from_first=expand_ranges(starts, lengths[0]),
        from_second=expand_ranges(starts + lengths[0], lengths[1]),
    )


def restore_tokens(segments: Iterable[Segment], size: int) -> NDArray[np.uint64]:
    """Return the term number at each of `size` positions, 0 in the gaps: the inverse of `build_segment`."""
    tokens = np.zeros(size, np.uint64)
    for segment in segments:
        positions = segment.positions.astype(np.int64) + segment.base
        tokens[positions] = np.repeat(segment.terms, np.diff(segment.position_offsets))
    return tokens
