"""Merges the postings of several parts into one, some terms at a time: little is in memory besides the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Integers, Rows, Scalar, differs_from_previous, get_offsets
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.postings import GAPS, Segment

CHUNK = 1 << 21
"""How many positions are merged at a time."""

_LOW = np.int64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A segment of a part, and where its documents go.

    Attributes:
        new_rows: The new row of each of the part's rows, -1 for none.
        row_of: The row of each position in the segment, counted from the segment's first row.
        shifts: How far the positions of each row in the segment move; those of the dead go below 0.
    """

    segment: Segment
    new_rows: Rows
    row_of: Rows
    shifts: Integers

    @staticmethod
    def of(segment: Segment, documents: Documents, new_rows: Rows, new_starts: Integers) -> Source:
        """Return a segment as a source.

        Args:
            documents: Those of the part.
            new_rows: See `Source`.
            new_starts: Where the positions of each new row begin.
        """
        first = int(np.searchsorted(documents.starts, segment.base))
        at = slice(first, first + segment.size)
        sizes = documents.text_lengths[at] + GAPS
        moved = new_rows[at]
        shifts = np.append(new_starts, 0)[moved] - (documents.starts[at] - segment.base)
        # Positions take 32 bits, so whatever is moved by this much is below 0.
        shifts[moved < 0] = -(1 << 33)
        return Source(segment, new_rows, np.repeat(np.arange(segment.size, dtype=np.int32), sizes), shifts)

    def read_rows(self, terms: NDArray[np.uint64]) -> tuple[Integers, NDArray[np.float32]]:
        """Return the postings of some consecutive terms: the term's place and new row as one number, and frequency."""
        first, last = self._locate(terms)
        at = slice(int(self.segment.row_offsets[first]), int(self.segment.row_offsets[last]))
        keys = self.new_rows.take(self.segment.rows[at]).astype(np.int64)
        is_kept = keys >= 0
        keys += self._spread(terms, first, last, self.segment.row_offsets)
        frequencies = self.segment.frequencies[at]
        if not is_kept.all():
            keys, frequencies = keys[is_kept], frequencies[is_kept]
        return keys, frequencies

    def read_positions(self, terms: NDArray[np.uint64]) -> Integers:
        """Return the positions of some consecutive terms: the term's place and the new position as one number."""
        first, last = self._locate(terms)
        at = slice(int(self.segment.position_offsets[first]), int(self.segment.position_offsets[last]))
        keys: Integers = self.segment.positions[at].astype(np.int64)
        keys += self.shifts.take(self.row_of.take(keys))
        is_kept = keys >= 0
        keys += self._spread(terms, first, last, self.segment.position_offsets)
        kept: Integers = keys[is_kept]
        return kept

    def _locate(self, terms: NDArray[np.uint64]) -> tuple[int, int]:
        own = self.segment.terms
        return int(np.searchsorted(own, terms[:1])[0]), int(np.searchsorted(own, terms[-1:], side="right")[0])

    def _spread(self, terms: NDArray[np.uint64], first: int, last: int, offsets: Integers) -> Integers:
        """Return the place of each item's term, in the high bits."""
        places = np.searchsorted(terms, self.segment.terms[first:last]).astype(np.int64)
        return np.repeat(places << 32, np.diff(offsets[first : last + 1]))


def merge_sources(sources: Sequence[Source], size: int) -> Segment:
    """Return one segment of `size` rows; terms without any remaining row are left out."""
    held = [source.segment for source in sources]
    terms = np.concatenate([np.empty(0, np.uint64), *(segment.terms for segment in held)])
    terms.sort()
    terms = terms[differs_from_previous(terms)]
    postings = sum(len(segment.rows) for segment in held)
    rows, frequencies = _Filled(np.empty(postings, np.int32)), _Filled(np.empty(postings, np.float32))
    positions = _Filled(np.empty(sum(len(segment.positions) for segment in held), np.uint32))
    row_counts, position_counts = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    for at in _cut(held, terms):
        read = [source.read_rows(terms[at]) for source in sources]
        keys, values = np.concatenate([each for each, _ in read]), np.concatenate([each for _, each in read])
        order = np.argsort(keys, kind="stable")
        rows.add(keys.take(order) & _LOW)
        frequencies.add(values.take(order))
        row_counts[at] = np.bincount(keys >> 32, minlength=at.stop - at.start)
        keys = np.concatenate([source.read_positions(terms[at]) for source in sources])
        keys.sort(kind="stable")
        positions.add(keys & _LOW)
        position_counts[at] = np.bincount(keys >> 32, minlength=at.stop - at.start)
    is_left = row_counts > 0
    return Segment(
        base=0,
        terms=terms[is_left],
        row_offsets=get_offsets(row_counts[is_left]),
        rows=rows.view,
        frequencies=frequencies.view,
        position_offsets=get_offsets(position_counts[is_left]),
        positions=positions.view,
        size=size,
    )


class _Filled(Generic[Scalar]):
    """An array that is filled from its beginning."""

    def __init__(self, items: NDArray[Scalar]) -> None:
        self._items, self._count = items, 0

    def add(self, items: NDArray[Any]) -> None:
        self._items[self._count : self._count + len(items)] = items
        self._count += len(items)

    @property
    def view(self) -> NDArray[Scalar]:
        return self._items[: self._count]


def _cut(segments: Sequence[Segment], terms: NDArray[np.uint64]) -> Iterator[slice]:
    """Yield ranges of terms with about `CHUNK` positions each, at least one term."""
    counts = np.zeros(len(terms), np.int64)
    for segment in segments:
        counts[np.searchsorted(terms, segment.terms)] += np.diff(segment.position_offsets)
    ends = np.cumsum(counts)
    start = 0
    while start < len(terms):
        reached = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, reached + CHUNK, side="right")))
        yield slice(start, stop)
        start = stop
