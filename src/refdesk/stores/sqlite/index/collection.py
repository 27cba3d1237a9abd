"""The index of one collection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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


class CollectionIndex:
    """Finds the documents of one collection, in frozen parts and in what changed since, which is in memory.

    Searches may run in any number of threads, even during a change: each sees the index as the last finished change
    left it. Changes wait for each other.
    """

    def __init__(self, base: Sequence[Snapshot] = (), *, compact_above: int = COMPACT_ABOVE) -> None:
        """Make an index over what the frozen parts hold.

        Args:
            base: Made by `merge_snapshots`; each document is alive in at most one of them.
            compact_above: Space is reclaimed once more than this many rows, and more than half of all, are dead.
        """
        self._compact_above = compact_above
        self._base = tuple(base)
        self._documents = DocumentColumns()
        self._is_live: Mask = np.zeros(0, np.bool_)
        self._row_of: dict[int, int] = {}
        self._gone: set[int] = set()
        self._segments: tuple[Segment, ...] = ()
        self._passages: dict[str, PassageColumns] = {}
        self._changes = threading.Lock()
        self._publish()

    def apply(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace documents by key; a withdrawn one is dropped.

        Of several rows with the same key, the one with the highest `seq` counts. A document keeps its vectors, except
        those in a frozen part, which must be set anew. A row costs some 20 µs and a call some 0.3 ms, so it is best to
        pass many rows in one call.
        """
        latest = {row.key: row for row in sorted(rows, key=attrgetter("seq"))}
        with self._changes:
            self._gone.difference_update(latest)
            self._gone.update(key for key, row in latest.items() if row.state is State.WITHDRAWN)
            self._bury(latest)
            self._bury_frozen(list(latest))
            self._append([row for row in latest.values() if row.state is not State.WITHDRAWN])
            if len(self._is_live) - len(self._row_of) > max(self._compact_above, len(self._row_of)):
                self._compact()
            for passages in self._passages.values():
                passages.move({key: self._row_of.get(key, -1) for key in latest})
            self._publish()

    def set_vectors(self, model: str, dimensions: int, keys: Sequence[int], rows: Sequence[VectorRow]) -> None:
        """Give the documents of `keys` exactly the passages in `rows`, instead of those they had for this model.

        The passages of a document that is not in the index are kept until it is.
        """
        with self._changes:
            passages = self._passages.get(model)
            if passages is None or passages.dimensions != dimensions:
                passages = PassageColumns(dimensions, compact_above=self._compact_above)
                self._passages[model] = passages
            passages.replace(keys, rows, self._row_of)
            self._publish()

    def set_all_vectors(self, keys: Sequence[int], rows: Mapping[tuple[str, int], Sequence[VectorRow]]) -> None:
        """Give the documents of `keys` exactly these passages, by model and width, and none of any other model."""
        known = {(model, passages.dimensions): () for model, passages in self._passages.items()}
        for (model, dimensions), passages in {**known, **rows}.items():
            self.set_vectors(model, dimensions, keys, passages)

    def drop_model(self, model: str) -> None:
        """Forget every vector of a model that was set since the last part was frozen."""
        with self._changes:
            self._passages.pop(model, None)
            self._publish()

    def find(self, request: FindRequest) -> Found:
        """Return what matches; see `refdesk.protocols.Store.find`. Changes nothing."""
        return find(request, self.parts)

    @property
    def extent(self) -> int:
        """The most documents and passages that a search looks at."""
        return sum(
            part.documents.count + sum(len(passages.vectors) for passages in part.passages.values())
            for part in self.parts
        )

    @property
    def size(self) -> int:
        """How many documents changed since the last part was frozen, not counting those that are gone."""
        return len(self._row_of)

    @property
    def gone(self) -> list[int]:
        """Keys of documents that were withdrawn since the last part was frozen."""
        return sorted(self._gone)

    def _publish(self) -> None:
        changed = Snapshot(
            documents=self._documents.view(self._is_live),
            segments=self._segments,
            passages={model: passages.view for model, passages in self._passages.items()},
        )
        self.parts = (*self._base, changed)
        """Everything as it is now, the frozen parts first."""

    def _bury(self, keys: Iterable[int]) -> None:
        dead = [row for key in keys if (row := self._row_of.pop(key, None)) is not None]
        if dead:
            self._is_live = self._is_live.copy()
            self._is_live[dead] = False

    def _bury_frozen(self, keys: Sequence[int]) -> None:
        buried = [part.documents.bury(part.documents.find_rows(keys)) for part in self._base]
        self._base = tuple(replace(part, documents=each) for part, each in zip(self._base, buried, strict=True))

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
