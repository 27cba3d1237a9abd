"""An in-process cache of what searches need of documents, valid as long as a document is unchanged.

Every search learns from the database which version of which document counts; what is kept of that very version is
used, the rest is read. So nothing here is ever stale, and all of it may be thrown away.
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
"""The changes that wrote a document, and that set its vectors last."""

MOST_ROWS = 20_000
"""Documents that are kept, some 4 kB each."""

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
        title_terms: Its terms with two blanks around each, so that " term " is found once for each time it occurs.
        body_terms: The same of the body.
        length: Weighted, as `refdesk.core.search.bm25` counts it.
        starts: The first start of the date ranges of each name, as text that sorts.
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
    """A document's passages of one model: their offsets, and a row of the matrix for each."""

    places: tuple[tuple[int, int], ...]
    matrix: NDArray[float32]


class _Recent(Generic[K, V]):
    """A dictionary that forgets what was unused for longest."""

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
    """Reads what searches need of documents, from memory where it is the version that counts."""

    def __init__(self, runner: Runner, namespace: str, most: int = MOST_ROWS) -> None:
        self._runner = runner
        self._namespace = namespace
        self._rows: _Recent[tuple[Collection, str], Row] = _Recent(most)
        self._vectors: _Recent[tuple[Collection, str, str], tuple[Tag, Vectors]] = _Recent(most)

    async def get_rows(self, collection: Collection, tags: Mapping[str, Tag]) -> dict[str, Row]:
        """Return the row of each document; one that was written meanwhile has another `written` than its tag."""
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
        """Return the vectors of those documents that have any of the model."""
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
    # The later of two entries of one name counts, so the earliest comes last.
    spans = dict(sorted(zip(names, starts, strict=True), key=lambda span: span[1], reverse=True))
    return Row(id, written, *instants, *texts, length, State(state), head_id, spans)


def _decode_vectors(starts: list[int], ends: list[int], halves: list[bytes], *, width: int) -> Vectors:
    matrix = np.frombuffer(b"".join(halves), "<f2").reshape(len(halves), width).astype(np.float32)
    return Vectors(tuple(zip(starts, ends, strict=True)), matrix)
