"""An in-process cache of the document data that searches need, valid as long as a document is unchanged.

Every search learns from the database which documents count, and in which version; cached data of exactly that version
is used, the rest is read. So no search ever uses stale data, and all of the cache may be discarded.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from refdesk.core.keeping.rows import decode_facets
from refdesk.core.writing.supersession import HEAD
from refdesk.model import State
from refdesk.stores.neo4j.rows import decode_instant

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from refdesk.model import Collection
    from refdesk.stores.neo4j.connections import Runner

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Tag: TypeAlias = tuple[int, int]
"""The numbers of the changes that last wrote a document and last set its vectors."""

MOST_ROWS = 20_000
"""Most documents in the cache, at about 4 kB each."""

_KEYED = (
    "UNWIND $ids AS id MATCH (d:Thing {space: $space, org: $org, toolset: $toolset, id: id}) "
    "WHERE d:Document AND d.state <> 'withdrawn' "
)
_GET_ROWS = (
    f"{_KEYED} RETURN d.id, d.written, d.modified_at, d.created_at, d.title_key, d.facets, d.terms, d.length, d.state, "
    "CASE d.state WHEN 'superseded' THEN d.data END, d.span_names, d.span_starts"
)
_GET_VECTORS = (
    f"{_KEYED} OPTIONAL MATCH (d)-[:HAS_PASSAGE]->(p:Passage {{model: $model}}) WHERE p.dimensions = $width "
    "WITH d, p ORDER BY p.number "
    "RETURN d.id, d.written, d.embedded, collect(p.start), collect(p.end), collect(p.half)"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A document as searches see it.

    Attributes:
        title_terms: The title's terms with two blanks around each, so that counting " term " finds every occurrence.
        body_terms: The same for the body.
        length: The weighted length, as `refdesk.core.search.bm25` counts it.
        starts: The earliest start of the date ranges of each name, as text that sorts.
        head_id: See `refdesk.model.Candidate`.
    """

    id: str
    written: int
    modified_at: datetime
    created_at: datetime
    title_key: str
    facets: Mapping[str, tuple[str, ...]]
    title_terms: str
    body_terms: str
    length: int
    state: State
    head_id: str | None
    starts: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A document's passages as embedded by one model: their offsets, and a row of the matrix for each."""

    places: tuple[tuple[int, int], ...]
    matrix: NDArray[float32]


class _Recent(Generic[K, V]):
    """A dictionary that evicts the least recently used values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)


class DocumentCache:
    """Reads the document data that searches need, from memory if the cached version is the one that counts."""

    def __init__(self, runner: Runner, namespace: str, most: int = MOST_ROWS) -> None:
        self._runner = runner
        self._namespace = namespace
        self._rows: _Recent[tuple[Collection, str], Row] = _Recent(most)
        self._vectors: _Recent[tuple[Collection, str, str], tuple[Tag, Vectors]] = _Recent(most)

    async def get_rows(self, collection: Collection, tags: Mapping[str, Tag]) -> dict[str, Row]:
        """Return the row of each document; if one was written meanwhile, its `written` differs from its tag."""
        rows: dict[str, Row] = {}
        for id, (written, _) in tags.items():
            row = self._rows.get((collection, id))
            if row is not None and row.written == written:
                rows[id] = row
        for values in await self._read(_GET_ROWS, collection, [id for id in tags if id not in rows]):
            row = _decode_row(values)
            rows[row.id] = row
            self._rows.put((collection, row.id), row)
        return rows

    async def get_vectors(
        self, collection: Collection, tags: Mapping[str, Tag], model: str, width: int
    ) -> dict[str, Vectors]:
        """Return the vectors of those documents that have vectors of the model."""
        known: dict[str, Vectors] = {}
        for id, tag in tags.items():
            kept = self._vectors.get((collection, id, model))
            if kept is not None and kept[0] == tag and kept[1].matrix.shape[1] == width:
                known[id] = kept[1]
        missing = [id for id in tags if id not in known]
        for id, written, embedded, *passages in await self._read(
            _GET_VECTORS, collection, missing, model=model, width=width
        ):
            known[id] = _decode_vectors(*passages, width=width)
            self._vectors.put((collection, id, model), ((written, embedded), known[id]))
        return {id: vectors for id, vectors in known.items() if vectors.places}

    async def _read(
        self, statement: str, collection: Collection, ids: Iterable[str], **parameters: object
    ) -> list[list[Any]]:
        wanted = list(ids)
        if not wanted:
            return []
        place = {"space": self._namespace, "org": collection.org, "toolset": collection.toolset}
        return await self._runner.run(statement, **place, ids=wanted, **parameters)


def _decode_row(values: list[Any]) -> Row:
    id, written, modified_at, created_at, title_key, facets, terms, length, state, data, names, starts = values
    title, body = (f"  {'  '.join(part.split())}  " for part in terms.split("\n"))
    instants = decode_instant(modified_at), decode_instant(created_at)
    head_id = None if data is None else str(json.loads(data).get(HEAD) or id)
    texts = title_key, decode_facets(facets), title, body
    # Of entries with the same name the last one wins, so the earliest start comes last.
    spans = dict(sorted(zip(names, starts, strict=True), key=lambda span: span[1], reverse=True))
    return Row(id, written, *instants, *texts, length, State(state), head_id, spans)


def _decode_vectors(starts: list[int], ends: list[int], halves: list[bytes], *, width: int) -> Vectors:
    matrix = np.frombuffer(b"".join(halves), "<f2").reshape(len(halves), width).astype(np.float32)
    return Vectors(tuple(zip(starts, ends, strict=True)), matrix)
