"""The index of one collection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np

from refdesk.model import FindRequest, Found, State
from refdesk.stores.sqlite.index.columns import Mask, Rows
from refdesk.stores.sqlite.index.documents import DocumentColumns
from refdesk.stores.sqlite.index.postings import Segment, append_segment, build_segment, restore_tokens
from refdesk.stores.sqlite.index.rows import IndexRow, VectorRow
from refdesk.stores.sqlite.index.search import Snapshot, find
from refdesk.stores.sqlite.index.vectors import PassageColumns

COMPACT_ABOVE = 1024
GRAPH_ABOVE = 100_000


class CollectionIndex:
    """Finds the documents of one collection, in memory; made from the store's rows, and gone with the process.

    Searches may run in any number of threads, also beside a change: each sees the index as the last finished change
    left it. Changes wait for each other.
    """

    def __init__(self, *, compact_above: int = COMPACT_ABOVE, graph_above: int = GRAPH_ABOVE) -> None:
        """Make an empty index.

        Args:
            compact_above: Space is reclaimed once more than this many rows, and more than half of all, are dead.
            graph_above: Up to so many passages of a model, all are compared; see `extend_graphs`.
        """
        self._compact_above = compact_above
        self._graph_above = graph_above
        self._documents = DocumentColumns()
        self._is_live: Mask = np.zeros(0, np.bool_)
        self._row_of: dict[int, int] = {}
        self._segments: tuple[Segment, ...] = ()
        self._passages: dict[str, PassageColumns] = {}
        self._changes = threading.Lock()
        self._publish()

    def apply(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace documents by key; a withdrawn one is dropped.

        Of several rows with one key the one of the highest `seq` counts. A document's vectors stay with it.
        A row costs some 20 µs, a call some 0.3 ms, so many rows are best given in one call.
        """
        latest = {row.key: row for row in sorted(rows, key=attrgetter("seq"))}
        with self._changes:
            self._bury(latest)
            self._append([row for row in latest.values() if row.state is not State.WITHDRAWN])
            if len(self._is_live) - len(self._row_of) > max(self._compact_above, len(self._row_of)):
                self._compact()
            for passages in self._passages.values():
                passages.move({key: self._row_of.get(key, -1) for key in latest})
            self._publish()

    def set_vectors(self, model: str, dimensions: int, keys: Sequence[int], rows: Sequence[VectorRow]) -> None:
        """Give the documents of `keys` exactly the passages in `rows`, in place of those they had of this model.

        A document that is not in the index keeps its passages until it is.
        """
        with self._changes:
            passages = self._passages.get(model)
            if passages is None or passages.dimensions != dimensions:
                passages = PassageColumns(dimensions, compact_above=self._compact_above, graph_above=self._graph_above)
                self._passages[model] = passages
            passages.replace(keys, rows, self._row_of)
            self._publish()

    def drop_model(self, model: str) -> None:
        """Forget every vector of a model."""
        with self._changes:
            self._passages.pop(model, None)
            self._publish()

    def extend_graphs(self, limit: int = 64) -> int:
        """Make searches by vector faster where a model has more than `graph_above` passages.

        Adds at most `limit` passages (0 or more) of each such model to its graph, some 0.5 ms each. Searches take the
        graph as far as it goes and compare the rest; without the library (extra `hnsw`) they compare all, and this does
        nothing.

        Returns:
            How many passages are still to be added: call again, in a thread of no importance, until there are none.
        """
        with self._changes:
            waiting = sum(passages.extend_graph(limit) for passages in self._passages.values())
            if limit:
                self._publish()
            return waiting

    def find(self, request: FindRequest) -> Found:
        """Return what matches; see `refdesk.protocols.Store.find`. Changes nothing."""
        return find(request, self._snapshot)

    def _publish(self) -> None:
        self._snapshot = Snapshot(
            documents=self._documents.view(self._is_live),
            segments=self._segments,
            passages={model: passages.view for model, passages in self._passages.items()},
        )

    def _bury(self, keys: Iterable[int]) -> None:
        dead = [row for key in keys if (row := self._row_of.pop(key, None)) is not None]
        if dead:
            self._is_live = self._is_live.copy()
            self._is_live[dead] = False

    def _append(self, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        first = len(self._documents)
        self._row_of.update((row.key, number) for number, row in enumerate(rows, first))
        self._segments = append_segment(self._segments, build_segment(self._documents.extend(rows)))
        self._is_live = np.concatenate((self._is_live, np.ones(len(rows), np.bool_)))

    def _compact(self) -> None:
        """Renumber the live rows without gaps."""
        kept: Rows = np.flatnonzero(self._is_live).astype(np.int32)
        new_rows = dict(zip(kept.tolist(), range(len(kept)), strict=True))
        tokens = restore_tokens(self._segments, self._documents.positions)
        self._documents, stream = self._documents.renumber(kept, tokens)
        self._segments = (build_segment(stream),)
        self._is_live = np.ones(len(kept), np.bool_)
        self._row_of = {key: new_rows[row] for key, row in self._row_of.items()}
        for passages in self._passages.values():
            passages.move(self._row_of)
