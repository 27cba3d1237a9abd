"""Reads everything in a namespace, page by page; see `Archive`. Pages are in order of org, toolset, id or the like.

The statements order by all properties of an index and ask for a seek in it, so that a page is read off it and nothing
else is: the server would rather read all of it in order.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel
from refdesk.stores.neo4j.rows import decode_link, decode_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refdesk.model import Link, Metadata, MetadataKey
    from refdesk.protocols import DocumentVectors
    from refdesk.stores.neo4j.connections import Rows, Runner

_LIST_DOCUMENTS = (
    "MATCH (d:Thing) USING INDEX SEEK d:Thing(space, org, toolset, id) "
    "WHERE d.space = $space AND {later} AND d:Document "
    "RETURN d.org, d.toolset, d.id ORDER BY d.space, d.org, d.toolset, d.id LIMIT $limit"
)
_LIST_LINKS = (
    "MATCH (s:Thing)-[r]->(t:Thing) USING INDEX SEEK s:Thing(space, org, toolset, id) "
    "WHERE s.space = $space AND {later} "
    "RETURN s.org, s.toolset, s.id, r.kind, t.toolset, t.id, r.created_at "
    "ORDER BY s.space, s.org, s.toolset, s.id, r.kind, t.toolset, t.id LIMIT $limit"
)
_LIST_RECORDS = (
    "MATCH (r:Record) USING INDEX SEEK r:Record(space, org, kind, name) WHERE r.space = $space AND {later} "
    "RETURN r.org, r.kind, r.name, r.due_at, r.value ORDER BY r.space, r.org, r.kind, r.name LIMIT $limit"
)
_LIST_AUDITED = (
    "MATCH (a:AuditEntry) USING INDEX SEEK a:AuditEntry(space, org, number) "
    "WHERE a.space = $space AND a.org >= '' AND a.number = 1 RETURN a.org ORDER BY a.org"
)
_GET_VECTORS = (
    "UNWIND $ids AS id "
    "MATCH (:Thing {space: $space, org: $org, toolset: $toolset, id: id})-[:HAS_PASSAGE]->(p:Passage) "
    "RETURN id, p.model, p.dimensions, p.start, p.end, p.half ORDER BY p.model, p.number"
)


async def list_documents(
    runner: Runner, space: str, after: tuple[Collection, str] | None, limit: int
) -> list[tuple[Collection, str]]:
    """See `Archive.list_documents`."""
    place = None if after is None else (after[0].org, after[0].toolset, after[1])
    rows = await _list(runner, space, _LIST_DOCUMENTS, ("d.org", "d.toolset", "d.id"), place, limit)
    return [(Collection(org, toolset), id) for org, toolset, id in rows]


async def get_vectors(runner: Runner, space: str, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
    """See `Archive.get_vectors`."""
    found: defaultdict[str, dict[EmbeddingModel, list[EmbeddedPassage]]] = defaultdict(dict)
    place = {"space": space, "org": collection.org, "toolset": collection.toolset, "ids": list(dict.fromkeys(ids))}
    for id, model, dimensions, start, end, half in await runner.run(_GET_VECTORS, **place):
        vector = np.frombuffer(half, "<f2").astype(np.float32)
        passages = found[id].setdefault(EmbeddingModel(model, dimensions), [])
        passages.append(EmbeddedPassage(start, end, vector))
    return [list(found[id].items()) for id in ids]


async def list_links(runner: Runner, space: str, after: Link | None, limit: int) -> list[Link]:
    """See `Archive.list_links`."""
    place = None
    if after is not None:
        source, target = after.source, after.target
        place = (after.org, source.toolset, source.id, after.kind, target.toolset, target.id)
    names = ("s.org", "s.toolset", "s.id", "r.kind", "t.toolset", "t.id")
    rows = await _list(runner, space, _LIST_LINKS, names, place, limit)
    return [decode_link(org, values) for org, *values in rows]


async def list_audited_orgs(runner: Runner, space: str) -> list[str]:
    """See `Archive.list_audited_orgs`."""
    return [org for (org,) in await runner.run(_LIST_AUDITED, space=space)]


async def list_all_metadata(runner: Runner, space: str, after: MetadataKey | None, limit: int) -> list[Metadata]:
    """See `Archive.list_all_metadata`."""
    place = None if after is None else (after.org, after.kind, after.name)
    rows = await _list(runner, space, _LIST_RECORDS, ("r.org", "r.kind", "r.name"), place, limit)
    return [decode_metadata(row) for row in rows]


async def _list(
    runner: Runner, space: str, statement: str, names: Sequence[str], after: Sequence[str] | None, limit: int
) -> Rows:
    """Return the rows of the first `limit` entries after one, or of the first of all."""
    rows: Rows = []
    for later, parameters in _part(names, after):
        text = statement.replace("{later}", later)
        rows += await runner.run(text, space=space, limit=limit - len(rows), **parameters)
        if len(rows) >= limit:
            break
    return rows


def _part(names: Sequence[str], after: Sequence[str] | None) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield conditions, each with its parameters, that one after another hold for the entries after one, in order.

    Each is a single range of an index by `names`; the server would scan the whole index for all of them at once.
    """
    if after is None:
        yield " AND ".join(f"{name} >= ''" for name in names), {}
        return
    for end in reversed(range(len(names))):
        parts = [f"{name} = $after{number}" for number, name in enumerate(names[:end])]
        parts += [f"{names[end]} > $after{end}", *(f"{name} >= ''" for name in names[end + 1 :])]
        yield " AND ".join(parts), {f"after{number}": after[number] for number in range(end + 1)}
