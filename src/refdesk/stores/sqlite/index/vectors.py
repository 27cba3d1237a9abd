"""The embeddings of one model: nearest documents, and the similarity of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Column, Integers, Mask, RowNumbers, Rows, expand_ranges, get_offsets
from refdesk.stores.sqlite.index.hnsw import Graph, is_available
from refdesk.stores.sqlite.index.rows import VectorRow

if TYPE_CHECKING:
    from refdesk.model import Vector

GATHER_SHARE = 4
"""When fewer than one in this many is wanted, copying those out beats comparing all (measured: at 15 to 25 %)."""

MIN_FETCH = 256
"""The graph is asked for at least so many passages: its recall grows with them (random ones: 0.83 to 0.94)."""

OVER_FETCH = 3
"""The graph is asked for this many times the passages that should be enough, given the share that is wanted."""

EXACT_FETCH = 8
"""Asking the graph for more than one passage in this many costs more than comparing all."""

Similarities: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """A snapshot of the passages. Those of a document are contiguous and form a group.

    Attributes:
        vectors: Shape `(passages, dimensions)`, unit length, contiguous.
        starts: Where each passage begins in the body; `ends` where it ends, in code points.
        group_starts: First passage of each group.
        group_sizes: How many it has, at least one.
        group_rows: Row of its document, -1 when there is none (any more).
        graph: Holds all but the newest of the passages, where there are so many that it pays.
        exact_below: Fewer wanted documents than this are all compared, graph or not.
    """

    vectors: Similarities
    starts: Rows
    ends: Rows
    group_starts: Integers
    group_sizes: Integers
    group_rows: Rows
    graph: Graph | None
    exact_below: int

    def find_groups_of(self, rows: RowNumbers, count: int) -> Integers:
        """Return the group of each row's document, -1 where it has none; there are `count` rows in all."""
        groups = np.full(count + 1, -1, np.int64)
        groups[self.group_rows] = np.arange(len(self.group_rows))
        return groups[rows]

    def find_nearest(
        self, wanted: Mask, query: Vector, depth: int, effort: int | None
    ) -> tuple[Integers, Similarities]:
        """Return groups among which are the `depth` nearest of the wanted documents, and their cosines, unordered.

        Args:
            wanted: One truth value per row.
            effort: The fewest passages requested from HNSW; `None` is `MIN_FETCH`.
        """
        is_wanted = np.append(wanted, np.False_)[self.group_rows]
        groups = self._search_graph(self.graph, is_wanted, query, depth, effort or MIN_FETCH) if self.graph else None
        if groups is None:
            groups = np.flatnonzero(is_wanted)
        return groups, self._compare_groups(groups, query)

    def find_best_passages(self, groups: Integers, query: Vector) -> tuple[Similarities, Integers]:
        """Return the cosine of each group's best passage and which it is; of equals the first."""
        sizes = self.group_sizes[groups]
        passages = expand_ranges(self.group_starts[groups], sizes)
        cosines = _compare(self.vectors[passages], query)
        offsets = get_offsets(sizes)[:-1]
        best = np.maximum.reduceat(cosines, offsets) if len(groups) else cosines
        at_best = np.flatnonzero(cosines == np.repeat(best, sizes))
        return best, passages[at_best[np.searchsorted(at_best, offsets)]]

    def _search_graph(self, graph: Graph, is_wanted: Mask, query: Vector, depth: int, effort: int) -> Integers | None:
        """Return groups near the query, or `None` where all of them must be compared to be right.

        The graph leads to the nearest of all documents. Only where it leads to `depth` that are wanted are they the
        nearest of those.
        """
        count = int(np.count_nonzero(is_wanted))
        fetch = max(effort, OVER_FETCH * depth * len(self.vectors) // max(count, 1))
        if count < self.exact_below or EXACT_FETCH * fetch > graph.size:
            return None
        # What is added from here on is compared twice, which does no harm.
        size = graph.size
        passages = graph.search(query, fetch)
        found = np.searchsorted(self.group_starts, passages[passages < len(self.vectors)], side="right") - 1
        near = np.unique(found[is_wanted[found]])
        first_newer = max(0, int(np.searchsorted(self.group_starts, size)) - 1)
        newer = first_newer + np.flatnonzero(is_wanted[first_newer:])
        return np.union1d(near, newer) if len(near) >= depth else None

    def _compare_groups(self, groups: Integers, query: Vector) -> Similarities:
        """Return the cosine of each group's best passage, in [-1, 1]."""
        if not len(groups):
            return np.empty(0, np.float32)
        sizes = self.group_sizes[groups]
        wanted = expand_ranges(self.group_starts[groups], sizes)
        cosines = self._compare_passages(wanted, query)
        if len(wanted) == len(groups):
            return cosines
        return np.maximum.reduceat(cosines, get_offsets(sizes)[:-1])

    def _compare_passages(self, passages: Integers, query: Vector) -> Similarities:
        if GATHER_SHARE * len(passages) < len(self.vectors):
            return _compare(self.vectors[passages], query)
        return _compare(self.vectors, query)[passages]


def _compare(vectors: Similarities, query: Vector) -> Similarities:
    """Return the cosine of each vector.

    One product per vector, in one thread: as fast as a product with the whole matrix in one thread (14 ms for
    100,000 of 384), while the threads of that one wait for each other (3.3 ms instead of 0.7 for 10,000), and equal
    vectors have equal cosines at any position.
    """
    return np.clip(np.vecdot(vectors, query), -1.0, 1.0)


class PassageColumns:
    """Gathers the passages of one model, document by document.

    A document whose passages are replaced gets a new group; the old one stays without a document until more than
    half of the passages are such, and more than `compact_above`.
    """

    def __init__(self, dimensions: int, *, compact_above: int, graph_above: int) -> None:
        self.dimensions = dimensions
        self._compact_above = compact_above
        self._graph_above = graph_above
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
        self._graph: Graph | None = None

    @property
    def view(self) -> Passages:
        """Return what has been gathered so far; stays as it is when more is."""
        return Passages(
            vectors=self._vectors.view,
            starts=self._starts.view,
            ends=self._ends.view,
            group_starts=self._group_starts.view,
            group_sizes=self._group_sizes.view,
            group_rows=self._group_rows,
            graph=self._graph,
            exact_below=self._graph_above // 5,
        )

    def replace(self, keys: Sequence[int], rows: Sequence[VectorRow], row_of: Mapping[int, int]) -> None:
        """Give the documents exactly these passages; `row_of` returns the row of a document by its key."""
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
        """Give documents another row, by key; -1 for none."""
        groups = [(self._group_of[key], row) for key, row in rows.items() if key in self._group_of]
        if groups:
            moved = self._group_rows.copy()
            at, to = zip(*groups, strict=True)
            moved[list(at)] = to
            self._group_rows = moved

    def extend_graph(self, limit: int) -> int:
        """Add at most `limit` passages to the graph, where one pays; return how many are still to be added."""
        if len(self._vectors) <= self._graph_above or not is_available():
            return 0
        size = self._graph.size if self._graph else 0
        added = self._vectors.view[size:][:limit]
        if len(added):
            self._graph = self._graph or Graph(self.dimensions)
            self._graph.extend(added)
        return len(self._vectors) - size - len(added)

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
        """Leave out the passages of groups that are no document's; the HNSW index is rebuilt."""
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
