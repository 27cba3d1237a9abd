"""Writes documents and metadata, in transactions that hold the namespace's lock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from refdesk.errors import ConflictError
from refdesk.model import Collection, State
from refdesk.stores.neo4j.rows import (
    CONTENT,
    DocumentRow,
    encode_audit,
    encode_instant,
    encode_key,
    encode_link,
    encode_metadata,
)

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import AuditEntry, EmbeddingModel, Link, Metadata, MetadataKey
    from refdesk.stores.neo4j.connections import Rows, Runner

T = TypeVar("T")

CHANGED = "The document changed since it was read: read it again and repeat the change."

BATCH = 500
"""Most nodes written by one statement."""

_SNAPSHOT = ", ".join(f".{name.strip()}" for name in f"space, org, toolset, id, recorded_at, {CONTENT}".split(","))
_KEYED = "UNWIND $keys AS key MATCH (d:Thing {space: $space, org: key.org, toolset: key.toolset, id: key.id}) "
_GET_STATES = f"{_KEYED} WHERE d:Document RETURN d.org, d.toolset, d.id, d.version, d.text_digest, d.state, d.length"
_KEEP_REVISIONS = (
    f"{_KEYED} CREATE (d)-[:HAD_VERSION]->(v:Revision) SET v = d {{{_SNAPSHOT}}}, "
    "v.body = CASE d.text_digest WHEN key.text_digest THEN null ELSE d.body END"
)
_PUT_DOCUMENTS = (
    "UNWIND $rows AS row MERGE (d:Thing {space: $space, org: row.org, toolset: row.toolset, id: row.id}) "
    "SET d:Document, d += row.properties, d.recorded_at = row.recorded_at, d.written = $seq + row.number, "
    "d.embedded = coalesce(d.embedded, 0)"
)
_ADVANCE = "MATCH (r:Refdesk {name: $name}) SET r.seq = r.seq + $count RETURN r.seq - $count"
_COUNT = (
    "UNWIND $collections AS row MERGE (c:Collection {space: $space, org: row.org, toolset: row.toolset}) "
    "SET c.living = coalesce(c.living, 0) + row.living, c.length = coalesce(c.length, 0) + row.length, "
    "c.changed = $changed"
)
_FORGET_VECTORS = f"{_KEYED} MATCH (d)-[:HAS_PASSAGE]->(p:Passage) DETACH DELETE p"
_FORGET_REVISIONS = f"{_KEYED} MATCH (d)-[:HAD_VERSION]->(v:Revision) DETACH DELETE v"
_PUT_VECTORS = (
    "UNWIND $documents AS document "
    "MATCH (d:Thing {{space: $space, org: document.org, toolset: document.toolset, id: document.id}}) "
    "WHERE d:Document AND d.text_digest = document.text_digest AND d.state <> 'withdrawn' "
    "WITH collect([d, document]) AS kept WHERE size(kept) > 0 "
    "MATCH (r:Refdesk {{name: $name}}) SET r.seq = r.seq + 1 "
    "WITH r.seq AS seq, kept UNWIND kept AS pair WITH seq, pair[0] AS d, pair[1] AS document SET d.embedded = seq "
    "WITH d, document "
    "CALL (d) {{ MATCH (d)-[:HAS_PASSAGE]->(p:Passage) WHERE p.model = $model DETACH DELETE p }} "
    "CALL (d, document) {{ UNWIND document.passages AS row "
    "CREATE (d)-[:HAS_PASSAGE]->(p:Passage:Passage{width} {{space: $space, org: d.org, toolset: d.toolset, "
    "model: $model, dimensions: $width, number: row.number, start: row.start, end: row.end, half: row.half, "
    "norm: row.norm}}) "
    "WITH p, row WHERE row.vector IS NOT NULL CALL db.create.setNodeVectorProperty(p, 'vector', row.vector) }} "
    "RETURN d.org, d.toolset, d.id, d.embedded"
)
_REMOVE_MODEL = (
    "MATCH (p:Passage {space: $space, model: $model})<-[:HAS_PASSAGE]-(d:Document) "
    "SET d.embedded = $seq + 1 DETACH DELETE p RETURN count(DISTINCT d)"
)
_PUT_LINKS = (
    "UNWIND $rows AS row "
    "MERGE (s:Thing {space: $space, org: row.org, toolset: row.source_toolset, id: row.source_id}) "
    "MERGE (t:Thing {space: $space, org: row.org, toolset: row.target_toolset, id: row.target_id}) "
    "MERGE (s)-[r:$(row.type) {kind: row.kind, org: row.org}]->(t) ON CREATE SET r.created_at = row.created_at"
)
_REMOVE_LINKS = (
    "UNWIND $rows AS row "
    "MATCH (s:Thing {space: $space, org: row.org, toolset: row.source_toolset, id: row.source_id})"
    "-[r {kind: row.kind, org: row.org}]->"
    "(t:Thing {space: $space, org: row.org, toolset: row.target_toolset, id: row.target_id}) "
    "DELETE r WITH s, t UNWIND [s, t] AS end WITH DISTINCT end "
    "WHERE NOT end:Document AND NOT EXISTS { (end)--() } DELETE end"
)
_GET_AUDITED = (
    "UNWIND $rows AS row MATCH (a:AuditEntry {space: $space, org: row.org, number: row.number}) RETURN a.number LIMIT 1"
)
_PUT_AUDIT = "UNWIND $rows AS row CREATE (a:AuditEntry {space: $space}) SET a += row"
_PUT_RECORDS = (
    "UNWIND $rows AS row MERGE (r:Record {space: $space, org: row.org, kind: row.kind, name: row.name}) "
    "SET r.value = row.value, r.due_at = row.due_at"
)
_REMOVE_RECORDS = (
    "UNWIND $keys AS key MATCH (r:Record {space: $space, org: key.org, kind: key.kind, name: key.name}) DELETE r"
)


class Writer(Protocol):
    """Runs statements in one transaction.

    Attributes:
        sequence: The number of the last change in it; 0 before the first.
    """

    sequence: int

    async def run(self, statement: str, **parameters: object) -> Rows:
        """See `Runner.run`."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where to write: the namespace, and the name of the node that is locked for it."""

    space: str
    name: str


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vectors of a document by one model; `passages` as `rows.encode_passages` returns them."""

    collection: Collection
    id: str
    text_digest: str
    passages: Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True)
class _Stored:
    version: int
    text_digest: str
    is_living: bool
    length: int


async def put_documents(
    runner: Writer, place: Place, rows: Sequence[DocumentRow], recorded_at: Sequence[datetime]
) -> None:
    """See `Transaction.put_documents`; `recorded_at` is when each was recorded."""
    if not rows:
        return
    stored = await _get_stored(runner, place, rows)
    _refuse_conflicts(rows, stored)
    seq = await _advance(runner, place, len(rows))
    values = _make_values(rows, recorded_at)
    for rows_once in _part_versions(rows):
        await _forget_vectors(runner, place, rows_once, stored)
        await _keep_revisions(runner, place, rows_once, stored)
        for batch in _batch(rows_once):
            await runner.run(_PUT_DOCUMENTS, space=place.space, rows=[values[id(row)] for row in batch], seq=seq)
        changes = _count_changes(rows_once, stored)
        await runner.run(_COUNT, space=place.space, collections=changes, changed=seq + len(rows))
        stored.update({_get_place(row): _remember(row) for row in rows_once})


async def put_vectors(
    runner: Writer, place: Place, model: EmbeddingModel, documents: Sequence[VectorRow]
) -> set[tuple[Collection, str]]:
    """Set the vectors of documents, each named once; return those whose text is still the one that was embedded."""
    kept: set[tuple[Collection, str]] = set()
    width = model.dimensions
    for batch in _batch_passages(documents):
        rows = [
            {**_name_place(each.collection, each.id), "text_digest": each.text_digest, "passages": each.passages}
            for each in batch
        ]
        statement = _PUT_VECTORS.format(width=width)
        found = await runner.run(
            statement, space=place.space, name=place.name, model=model.name, width=width, documents=rows
        )
        kept |= {(Collection(org, toolset), id) for org, toolset, id, _ in found}
        runner.sequence = max([runner.sequence, *(seq for *_, seq in found)])
    return kept


async def remove_vectors(runner: Writer, place: Place, model: str) -> int:
    """See `Transaction.remove_vectors`."""
    seq = await _advance(runner, place, 1)
    ((count,),) = await runner.run(_REMOVE_MODEL, space=place.space, model=model, seq=seq)
    return count


async def erase_documents(runner: Writer, place: Place, rows: Sequence[DocumentRow], recorded_at: datetime) -> None:
    """See `Transaction.erase_documents`; `recorded_at` is when they were recorded."""
    if not rows:
        return
    stored = await _get_stored(runner, place, rows)
    if any((old := stored.get(_get_place(row))) and row.version <= old.version for row in rows):
        raise ConflictError(CHANGED)
    seq = await _advance(runner, place, len(rows))
    values = _make_values(rows, [recorded_at] * len(rows))
    for batch in _batch(rows):
        keys = [_get_key(row) for row in batch]
        for statement in (_FORGET_VECTORS, _FORGET_REVISIONS):
            await runner.run(statement, space=place.space, keys=keys)
        await runner.run(_PUT_DOCUMENTS, space=place.space, rows=[values[id(row)] for row in batch], seq=seq)
    changes = _count_changes(rows, stored)
    await runner.run(_COUNT, space=place.space, collections=changes, changed=seq + len(rows))


async def put_links(runner: Runner, place: Place, links: Sequence[Link]) -> None:
    """See `Transaction.put_links`."""
    for rows in _batch([encode_link(link) for link in links]):
        await runner.run(_PUT_LINKS, space=place.space, rows=rows)


async def remove_links(runner: Runner, place: Place, links: Sequence[Link]) -> None:
    """See `Transaction.remove_links`. Things that are not documents go too once they have no links left."""
    for rows in _batch([encode_link(link) for link in links]):
        await runner.run(_REMOVE_LINKS, space=place.space, rows=rows)


async def put_audit(runner: Runner, place: Place, entries: Sequence[AuditEntry]) -> None:
    """See `Transaction.put_audit`."""
    rows = [encode_audit(entry) for entry in entries]
    if await runner.run(_GET_AUDITED, space=place.space, rows=rows):
        raise ConflictError("The audit log has an entry of that number: read it again and repeat the change.")
    for batch in _batch(rows):
        await runner.run(_PUT_AUDIT, space=place.space, rows=batch)


async def put_metadata(runner: Runner, place: Place, records: Sequence[Metadata]) -> None:
    """See `Transaction.put_metadata`."""
    for rows in _batch([encode_metadata(record) for record in records]):
        await runner.run(_PUT_RECORDS, space=place.space, rows=rows)


async def remove_metadata(runner: Runner, place: Place, keys: Sequence[MetadataKey]) -> None:
    """See `Transaction.remove_metadata`."""
    for batch in _batch(keys):
        await runner.run(_REMOVE_RECORDS, space=place.space, keys=[encode_key(key) for key in batch])


async def _advance(runner: Writer, place: Place, changes: int) -> int:
    """Reserve the next `changes` numbers of the change sequence; return the number before them."""
    ((seq,),) = await runner.run(_ADVANCE, name=place.name, count=changes)
    runner.sequence = seq + changes
    return seq


async def _get_stored(
    runner: Runner, place: Place, rows: Sequence[DocumentRow]
) -> dict[tuple[Collection, str], _Stored]:
    stored: dict[tuple[Collection, str], _Stored] = {}
    for batch in _batch(rows):
        found = await runner.run(_GET_STATES, space=place.space, keys=[_get_key(row) for row in batch])
        for org, toolset, id, version, text_digest, state, length in found:
            is_living = state != State.WITHDRAWN
            stored[Collection(org, toolset), id] = _Stored(version, text_digest, is_living, length if is_living else 0)
    return stored


def _make_values(rows: Sequence[DocumentRow], recorded_at: Sequence[datetime]) -> dict[int, dict[str, Any]]:
    """Return what `_PUT_DOCUMENTS` takes for each row, by the row's identity: rows may be equal."""
    numbered = enumerate(zip(rows, map(encode_instant, recorded_at), strict=True), 1)
    return {
        id(row): {**_get_key(row), "number": number, "properties": row.properties, "recorded_at": instant}
        for number, (row, instant) in numbered
    }


def _refuse_conflicts(rows: Iterable[DocumentRow], stored: dict[tuple[Collection, str], _Stored]) -> None:
    versions = {place: each.version for place, each in stored.items()}
    for row in rows:
        if row.version != versions.get(_get_place(row), 0) + 1:
            raise ConflictError(CHANGED)
        versions[_get_place(row)] = row.version


def _part_versions(rows: Iterable[DocumentRow]) -> list[list[DocumentRow]]:
    """Return the rows in rounds, in order, each with at most one version of any document."""
    rounds: defaultdict[int, list[DocumentRow]] = defaultdict(list)
    seen: Counter[tuple[Collection, str]] = Counter()
    for row in rows:
        rounds[seen[_get_place(row)]].append(row)
        seen[_get_place(row)] += 1
    return [rounds[number] for number in sorted(rounds)]


async def _keep_revisions(
    runner: Runner, place: Place, rows: Sequence[DocumentRow], stored: dict[tuple[Collection, str], _Stored]
) -> None:
    for batch in _batch([row for row in rows if _get_place(row) in stored]):
        keys = [{**_get_key(row), "text_digest": row.text_digest} for row in batch]
        await runner.run(_KEEP_REVISIONS, space=place.space, keys=keys)


async def _forget_vectors(
    runner: Runner, place: Place, rows: Sequence[DocumentRow], stored: dict[tuple[Collection, str], _Stored]
) -> None:
    reworded = [row for row in rows if (old := stored.get(_get_place(row))) and old.text_digest != row.text_digest]
    for batch in _batch(reworded):
        await runner.run(_FORGET_VECTORS, space=place.space, keys=[_get_key(row) for row in batch])


def _count_changes(
    rows: Iterable[DocumentRow], stored: dict[tuple[Collection, str], _Stored]
) -> list[dict[str, object]]:
    """Return by how much the number of living documents and their weighted length grow in each collection."""
    living: Counter[Collection] = Counter()
    length: Counter[Collection] = Counter()
    for row in rows:
        old = stored.get(_get_place(row), _Stored(0, "", is_living=False, length=0))
        living[row.collection] += (row.state is not State.WITHDRAWN) - old.is_living
        length[row.collection] += row.length - old.length
    return [
        {"org": each.org, "toolset": each.toolset, "living": living[each], "length": length[each]} for each in living
    ]


def _remember(row: DocumentRow) -> _Stored:
    return _Stored(row.version, row.text_digest, row.state is not State.WITHDRAWN, row.length)


def _get_place(row: DocumentRow) -> tuple[Collection, str]:
    return row.collection, row.id


def _get_key(row: DocumentRow) -> dict[str, Any]:
    return _name_place(row.collection, row.id)


def _name_place(collection: Collection, id: str) -> dict[str, Any]:
    return {"org": collection.org, "toolset": collection.toolset, "id": id}


def _batch_passages(documents: Iterable[VectorRow]) -> Iterator[list[VectorRow]]:
    """Yield the documents in lists of at most `BATCH` passages, or of one document."""
    batch, passages = list[VectorRow](), 0
    for document in documents:
        if batch and passages + len(document.passages) > BATCH:
            yield batch
            batch, passages = [], 0
        batch.append(document)
        passages += len(document.passages)
    if batch:
        yield batch


def _batch(values: Sequence[T]) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, BATCH)):
        yield batch
