"""The vectors of one model: which documents are nearest, and how near a document is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.binary import TOP, USUAL_SHARE, Codes, select_least
from refdesk.stores.sqlite.index.columns import Column, Integers, RowNumbers, Rows, expand_ranges, get_offsets
from refdesk.stores.sqlite.index.passing import Passing
from refdesk.stores.sqlite.index.rows import VectorRow

if TYPE_CHECKING:
    from refdesk.model import Vector

CODES_FROM = 4096
"""Least number of passages for which codes are made: fewer are compared as fast without."""

EXACT_BELOW = 2048
"""If no more documents than this are wanted, or no more than one in `EXACT_SHARE`, all are compared exactly."""

EXACT_SHARE = 100

SIFT_SHARE = 3
"""If at most one in this many is wanted, only those are compared by code; else all nearby are, and then filtered."""

OVER_FETCH, SIFTED_FETCH = 4, 8
"""How many times as many passages as wanted documents survive the comparison of codes, at least. The second applies
under a filter, which may leave so few that some of the nearest are hardly nearer than the rest; a bit per component
cannot tell those apart."""

LOOKED_AT = 10
"""Among how many times as many passages as survive they are looked for, at least: the nearest ten may be in fewer
clusters than the next hundred."""

GROWTH = 4

PIECE = 512
"""Vectors converted and compared at a time: what is computed from them stays in the processor's cache."""

GATHER_SHARE = 4
"""If fewer than one in this many is wanted, copying those out beats comparing all (measured: at 15 to 25 %)."""

Similarities: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """The passages as they were at one time. Those of one document are adjacent and form a group.

    Attributes:
        vectors: Shape `(passages, dimensions)`, unit length, contiguous.
        starts: Where each passage begins in the body; `ends` where it ends, in code points.
        group_starts: First passage of each group, ascending.
        group_sizes: How many passages it has, at least one.
        group_rows: Row of its document, -1 if there is none (any more).
        group_of_row: The inverse, -1 for a document without a group; `None` if it has not been computed.
        codes: Of all vectors, if there are enough for codes to pay.
    """

    vectors: NDArray[np.float16] | Similarities
    starts: Rows
    ends: Rows
    group_starts: Integers
    group_sizes: Integers
    group_rows: Rows
    group_of_row: Rows | None = None
    codes: Codes | None = None

    def find_groups_of(self, rows: RowNumbers, count: int) -> Integers:
        """Return the group of each row's document, -1 where it has none; there are `count` rows in all."""
        if self.group_of_row is not None:
            return self.group_of_row[rows].astype(np.int64)
        groups = np.full(count + 1, -1, np.int64)
        groups[self.group_rows] = np.arange(len(self.group_rows))
        return groups[rows]

    @property
    def are_single(self) -> bool:
        """Whether each group is one passage, with the groups in the order of passages."""
        return len(self.group_starts) == len(self.vectors)

    def find_nearest(
        self, wanted: Passing, query: Vector, depth: int, effort: int | None
    ) -> tuple[Integers, Similarities]:
        """Return groups that include the `depth` nearest of the wanted documents, and their cosines, unordered.

        Args:
            wanted: Rows of documents.
            effort: Raises how many passages are compared exactly, if not all are.
        """
        if self.codes is not None and len(query) == self.vectors.shape[1]:
            found = self._search_codes(self.codes, wanted, query, depth, effort or 0)
            if found is not None:
                return found
        groups = self._select_groups(wanted)
        return groups, self._compare_groups(groups, query)

    def _select_groups(self, wanted: Passing) -> Integers:
        """Return the groups of some documents."""
        if wanted.is_everything:
            return np.flatnonzero(self.group_rows >= 0)
        if wanted.has_rows and self.group_of_row is not None:
            groups = self.group_of_row.take(wanted.rows)
            return groups[groups >= 0].astype(np.int64)
        return np.flatnonzero(np.append(wanted.mask, np.False_)[self.group_rows])

    def find_best_passages(self, groups: Integers, query: Vector) -> tuple[Similarities, Integers]:
        """Return the cosine of each group's best passage and which it is; of equal ones the first."""
        if self.are_single:
            return self._compare_some(groups, query), groups
        sizes = self.group_sizes[groups]
        passages = expand_ranges(self.group_starts[groups], sizes)
        cosines = self._compare_some(passages, query)
        offsets = get_offsets(sizes)[:-1]
        best = np.maximum.reduceat(cosines, offsets) if len(groups) else cosines
        at_best = np.flatnonzero(cosines == np.repeat(best, sizes))
        return best, passages[at_best[np.searchsorted(at_best, offsets)]]

    def _search_codes(
        self, codes: Codes, wanted: Passing, query: Vector, depth: int, effort: int
    ) -> tuple[Integers, Similarities] | None:
        """Return groups near the query with their cosines, or `None` if all that are wanted must be compared."""
        groups = len(self.group_rows)
        count = groups if wanted.is_everything else wanted.count
        if count <= max(EXACT_BELOW, groups // EXACT_SHARE):
            return None
        over_fetch = OVER_FETCH if wanted.is_everything else SIFTED_FETCH
        survivors = max(codes.survivors, over_fetch * max(depth, effort))
        enough = LOOKED_AT * survivors * len(codes.centres) * groups // (len(self.vectors) * count)
        probes = max(codes.count_probes(groups / count), enough)
        few = self._find_passages(wanted) if SIFT_SHARE * count <= groups else None
        centres = codes.compare_centres(query)
        while True:
            passages, differing = codes.find_near(query, centres, probes, few)
            if few is None and not wanted.is_everything:
                kept = np.flatnonzero(wanted.mask.take(self.group_rows.take(self._find_groups(passages))))
                passages, differing = passages.take(kept), differing.take(kept)
            chosen, cosines = self._compare_nearest(passages, differing, query, survivors)
            found, starts = self._gather_groups(chosen)
            if len(found) < min(depth, count):
                if probes >= len(codes.centres) and survivors >= len(passages):
                    return None
                probes, survivors = GROWTH * probes, GROWTH * survivors
            elif not wanted.is_everything and codes.are_far(chosen.take(_find_highest(cosines)), centres, probes):
                probes *= 2
            else:
                return found, np.maximum.reduceat(cosines, starts)

    def _compare_nearest(
        self, passages: Rows | Integers, differing: NDArray[np.uint16], query: Vector, survivors: int
    ) -> tuple[Integers, Similarities]:
        """Return the passages whose codes differ least, ascending, and their cosines.

        There are at least `survivors` of them, if there are as many. If nothing is near, codes hardly say what is
        nearer: as long as one of the nearest differs more than is usual among them, twice as many are compared.
        """
        while True:
            least = select_least(differing, survivors)
            least = least.take(np.argsort(passages.take(least)))
            chosen: Integers = passages.take(least).astype(np.int64)
            cosines, differ = self._compare_some(chosen, query), differing.take(least)
            highest = differ.take(_find_highest(cosines))
            if len(chosen) == len(passages) or not (highest > np.sort(differ)[len(differ) // USUAL_SHARE]).any():
                return chosen, cosines
            survivors *= 2

    def _find_passages(self, wanted: Passing) -> Integers:
        """Return the passages of some documents."""
        groups = self._select_groups(wanted)
        return groups if self.are_single else expand_ranges(self.group_starts[groups], self.group_sizes[groups])

    def _gather_groups(self, passages: Integers) -> tuple[Integers, RowNumbers]:
        """Return the groups of some passages, which ascend, and where the passages of each begin."""
        if self.are_single:
            return passages, np.arange(len(passages))
        return np.unique(self._find_groups(passages), return_index=True)

    def _find_groups(self, passages: Rows | Integers) -> Integers:
        if self.are_single:
            return passages.astype(np.int64, copy=False)
        return np.searchsorted(self.group_starts, passages, side="right") - 1

    def _compare_groups(self, groups: Integers, query: Vector) -> Similarities:
        """Return the cosine of each group's best passage, in [-1, 1]."""
        if not len(groups) or self.are_single:
            return self._compare_passages(groups, query)
        sizes = self.group_sizes[groups]
        wanted = expand_ranges(self.group_starts[groups], sizes)
        cosines = self._compare_passages(wanted, query)
        return np.maximum.reduceat(cosines, get_offsets(sizes)[:-1])

    def _compare_passages(self, passages: Integers, query: Vector) -> Similarities:
        if self.vectors.dtype != np.float32 or GATHER_SHARE * len(passages) < len(self.vectors):
            return self._compare_some(passages, query)
        return _compare(self.vectors, query)[passages]

    def _compare_some(self, passages: Integers | Rows, query: Vector) -> Similarities:
        pieces = [passages[start : start + PIECE] for start in range(0, len(passages), PIECE)]
        compared = [_compare(self.vectors.take(piece, axis=0), query) for piece in pieces]
        if len(compared) == 1:
            return compared[0]
        return np.concatenate(compared) if compared else np.empty(0, np.float32)


def _find_highest(cosines: Similarities) -> RowNumbers:
    """Return where the `TOP` highest are, or all if there are fewer."""
    return np.argpartition(cosines, -TOP)[-TOP:] if len(cosines) > TOP else np.arange(len(cosines))


def _compare(vectors: NDArray[np.float16] | Similarities, query: Vector) -> Similarities:
    """Return the cosine of each vector.

    One product per vector, in one thread: this is as fast as a product with the whole matrix in one thread (14 ms for
    100,000 of 384), whereas the threads of the latter wait for each other (3.3 ms instead of 0.7 for 10,000), and equal
    vectors get equal cosines wherever they are.
    """
    if vectors.dtype == np.float16:
        vectors, query = widen(vectors.view(np.int16)), query * WIDENED
    return np.vecdot(vectors, query).clip(-1.0, 1.0)


WIDENED = np.float32(2.0**112)
"""How many times larger the numbers given to `widen` are than those it returns."""


def widen(halves: NDArray[np.int16]) -> Similarities:
    """Return 32-bit floats exactly `WIDENED` times smaller than the 16-bit floats that are given by their bits.

    The bits are moved to where the wider kind has them, and the exponent is left unadjusted. This takes a third of the
    time of numpy's conversion, and as no bit is lost, products are the same to the last bit.
    """
    bits = halves.astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x70000001)
    return bits.view(np.float32)


class PassageColumns:
    """Gathers the passages of one model, document by document.

    A document whose passages are replaced gets a new group; the old one stays, without a document, until more than half
    of the passages are in such groups, and more than `compact_above`.
    """

    def __init__(self, dimensions: int, *, compact_above: int) -> None:
        self.dimensions = dimensions
        self._compact_above = compact_above
        self._clear()

    def _clear(self) -> None:
        self._vectors = Column(np.float32, self.dimensions)
        self._starts = Column(np.int32)
        self._ends = Column(np.int32)
        self._group_starts = Column(np.int64)
        self._group_sizes = Column(np.int64)
        self._group_rows: Rows = np.empty(0, np.int32)
        self._group_of: dict[int, int] = {}
        self._dead = 0

    @property
    def view(self) -> Passages:
        """Return what has been gathered so far; it does not change when more is gathered."""
        return Passages(
            vectors=self._vectors.view,
            starts=self._starts.view,
            ends=self._ends.view,
            group_starts=self._group_starts.view,
            group_sizes=self._group_sizes.view,
            group_rows=self._group_rows,
        )

    def replace(self, keys: Sequence[int], rows: Sequence[VectorRow], row_of: Mapping[int, int]) -> None:
        """Give the documents exactly these passages; `row_of` maps the key of a document to its row."""
        held: dict[int, list[VectorRow]] = {key: [] for key in keys}
        for row in rows:
            held.setdefault(row.key, []).append(row)
        group_rows = self._group_rows.copy()
        for key in self._group_of.keys() & held.keys():
            group = self._group_of.pop(key)
            group_rows[group] = -1
            self._dead += int(self._group_sizes.view[group])
        self._group_rows = group_rows
        self._append({key: passages for key, passages in held.items() if passages}, row_of)
        if self._dead > max(self._compact_above, len(self._vectors) // 2):
            self._compact()

    def move(self, rows: Mapping[int, int]) -> None:
        """Move documents to other rows, by key; -1 for none."""
        groups = [(self._group_of[key], row) for key, row in rows.items() if key in self._group_of]
        if groups:
            moved = self._group_rows.copy()
            at, to = zip(*groups, strict=True)
            moved[list(at)] = to
            self._group_rows = moved

    def _append(self, held: Mapping[int, Sequence[VectorRow]], row_of: Mapping[int, int]) -> None:
        rows = [row for passages in held.values() for row in passages]
        sizes = np.array([len(passages) for passages in held.values()], np.int64)
        self._group_of.update(zip(held, range(len(self._group_rows), len(self._group_rows) + len(held)), strict=True))
        added = np.array([row_of.get(key, -1) for key in held], np.int32)
        self._group_rows = np.concatenate((self._group_rows, added))
        self._group_starts.extend(len(self._vectors) + get_offsets(sizes)[:-1])
        self._group_sizes.extend(sizes)
        self._vectors.extend(np.frombuffer(b"".join(row.vector for row in rows), "<f2"))
        self._starts.extend([row.start for row in rows])
        self._ends.extend([row.end for row in rows])

    def _compact(self) -> None:
        """Remove the passages of groups that have no document."""
        old, group_of = self.view, self._group_of
        groups = np.array(sorted(group_of.values()), np.int64)
        sizes = old.group_sizes[groups]
        kept = expand_ranges(old.group_starts[groups], sizes)
        self._clear()
        self._vectors.extend(old.vectors[kept])
        self._starts.extend(old.starts[kept])
        self._ends.extend(old.ends[kept])
        self._group_starts.extend(get_offsets(sizes)[:-1])
        self._group_sizes.extend(sizes)
        self._group_rows = old.group_rows[groups]
        new_numbers = dict(zip(groups.tolist(), range(len(groups)), strict=True))
        self._group_of = {key: new_numbers[group] for key, group in group_of.items()}
