"""The in-memory search indexes of this process: derived from the tables and caught up before each search.

An index remembers the last change it has seen of its collection. A search compares that number with the collection's
own, reads what was written since, by whichever process, and only then asks the index. What cannot be trusted (an index
ahead of its collection, an error half way, text analysed by another version or damaged on the disk) is made anew.
"""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import anyio

from refdesk.core.keeping.encoding import decode_instant
from refdesk.core.keeping.rows import decode_date_ranges, decode_facets
from refdesk.core.writing.supersession import HEAD
from refdesk.model import Collection, State
from refdesk.stores.sqlite.hnsw import Grower
from refdesk.stores.sqlite.index import ANALYSIS_VERSION, CollectionIndex, IndexRow, VectorRow, encode_terms
from refdesk.stores.sqlite.reads import get_collection
from refdesk.stores.sqlite.rows import RenewedTerms

if TYPE_CHECKING:
    from refdesk.model import FindRequest, Found
    from refdesk.stores.sqlite.connections import Readers
    from refdesk.stores.sqlite.driver import Connection, Row

T = TypeVar("T")

MAX_COLLECTIONS = 64
"""How many collections one process keeps an index of; the one unused for longest goes first."""

BATCH = 1000
"""Documents read and indexed at a time, so that a large collection is never in memory twice."""

MAX_RENEWED = 5 * BATCH
"""Texts analysed anew that are kept to be written back; further ones are analysed again by the next process."""

_GET_WRITTEN = """
    SELECT key, written, id, state, created_at, modified_at, title, facets, spans, analysis, terms_check, terms,
        CASE state WHEN 'superseded' THEN coalesce(nullif(data ->> :head, ''), id) END
    FROM documents WHERE collection = :collection AND written > :seen ORDER BY written
"""
_GET_CHANGED_KEYS = """
    SELECT key FROM documents WHERE collection = :collection AND written > :seen
    UNION
    SELECT key FROM documents WHERE collection = :collection AND embedded > 0 AND embedded > :seen
"""
_GET_MODEL = "SELECT key, dimensions FROM models WHERE name = ?"
_GET_EMBEDDED_KEYS = """
    SELECT DISTINCT document FROM vectors JOIN documents ON documents.key = vectors.document
    WHERE model = ? AND collection = ? AND state <> 'withdrawn'
"""
# A blob of another length than the model's is damage: that document counts as not embedded until it is embedded again.
_GET_VECTORS = """
    SELECT document, first, last, vector FROM vectors JOIN documents ON documents.key = vectors.document
    WHERE document IN (SELECT value FROM json_each(:keys)) AND model = :model AND state <> 'withdrawn'
    AND length(vector) = 2 * :dimensions ORDER BY document, vectors.key
"""


@dataclass(slots=True)
class _KeptIndex:
    """An index, the last change it has seen, and the models (with their widths) whose vectors it holds."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    index: CollectionIndex = field(default_factory=CollectionIndex)
    seen: int = 0
    models: dict[str, int] = field(default_factory=dict[str, int])

    def reset(self) -> None:
        self.index, self.seen, self.models = CollectionIndex(), 0, {}


class DerivedIndexes:
    """One index for each collection that was searched lately."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._kept: OrderedDict[Collection, _KeptIndex] = OrderedDict()
        self._renewed: list[RenewedTerms] = []
        self._grower = Grower()

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        kept = self._get(request.collection)
        async with kept.lock:
            return await self._readers.run(self._find, kept, request)

    def take_renewed(self) -> list[RenewedTerms]:
        """Return the texts analysed again since the last call, to be written back."""
        renewed, self._renewed = self._renewed, []
        return renewed

    def close(self) -> None:
        """Stop background work."""
        self._grower.close()

    def _get(self, collection: Collection) -> _KeptIndex:
        kept = self._kept.setdefault(collection, _KeptIndex())
        self._kept.move_to_end(collection)
        if len(self._kept) > MAX_COLLECTIONS:
            self._kept.popitem(last=False)
        return kept

    def _find(self, connection: Connection, kept: _KeptIndex, request: FindRequest) -> Found:
        try:
            key = self._catch_up(connection, kept, request.collection)
            if request.vector is not None and request.vector.model not in kept.models:
                _load_model(connection, kept, key, request.vector.model)
        except BaseException:
            kept.reset()
            raise
        found = kept.index.find(request)
        if request.vector is not None:
            self._grower.grow(kept.index)
        return found

    def _catch_up(self, connection: Connection, kept: _KeptIndex, collection: Collection) -> int:
        """Show the index every commit made so far; return the collection's number."""
        key, changed = get_collection(connection, collection) or (0, 0)
        if changed < kept.seen:
            kept.reset()
        if changed == kept.seen:
            return key
        for batch in _batch(
            connection.stream(_GET_WRITTEN, {"collection": key, "seen": kept.seen, "head": HEAD}), BATCH
        ):
            kept.index.apply([self._make_row(connection, row) for row in batch])
        if kept.models:
            _reload_vectors(connection, kept, key)
        kept.seen = changed
        return key

    def _make_row(self, connection: Connection, row: Row) -> IndexRow:
        key, written, id, state, created_at, modified_at, title, facets, spans, analysis, check, terms, head_id = row
        if analysis != ANALYSIS_VERSION or zlib.crc32(terms) != check:
            terms = self._renew(connection, key, written)
        return IndexRow(
            key=key,
            seq=written,
            id=id,
            state=State(state),
            created_at=decode_instant(created_at),
            modified_at=decode_instant(modified_at),
            title=title,
            facets=decode_facets(facets),
            date_ranges=decode_date_ranges(spans),
            terms=terms,
            head_id=head_id,
        )

    def _renew(self, connection: Connection, key: int, written: int) -> bytes:
        ((title, body),) = connection.execute("SELECT title, body FROM documents WHERE key = ?", (key,))
        terms = encode_terms(title, body)
        if len(self._renewed) < MAX_RENEWED:
            self._renewed.append(RenewedTerms(key, written, terms, ANALYSIS_VERSION))
        return terms


def _load_model(connection: Connection, kept: _KeptIndex, collection: int, name: str) -> None:
    model = connection.get_row(_GET_MODEL, (name,))
    if model is None:
        return
    keys = [row[0] for row in connection.stream(_GET_EMBEDDED_KEYS, (model[0], collection))]
    _load_vectors(connection, kept, name, model, keys)
    kept.models[name] = model[1]


def _reload_vectors(connection: Connection, kept: _KeptIndex, collection: int) -> None:
    """Give the documents changed since `kept.seen` the vectors they have now, of every model in memory."""
    bindings = {"collection": collection, "seen": kept.seen}
    keys = [row[0] for row in connection.stream(_GET_CHANGED_KEYS, bindings)]
    for name, dimensions in list(kept.models.items()):
        model = connection.get_row(_GET_MODEL, (name,))
        if model is not None and model[1] == dimensions:
            _load_vectors(connection, kept, name, model, keys)
        else:
            kept.index.drop_model(name)
            del kept.models[name]


def _load_vectors(connection: Connection, kept: _KeptIndex, name: str, model: Row, keys: Sequence[int]) -> None:
    model_key, dimensions = model
    for batch in _batch(keys, BATCH):
        bindings = {"keys": json.dumps(batch), "model": model_key, "dimensions": dimensions}
        rows = [VectorRow(*row) for row in connection.stream(_GET_VECTORS, bindings)]
        kept.index.set_vectors(name, dimensions, batch, rows)


def _batch(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
