"""Reads everything in a namespace, page by page; see `Archive`. Pages are in order of org, toolset, id or the like."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel
from refdesk.stores.neo4j.rows import decode_link, decode_metadata

if TYPE_CHECKING:
    from refdesk.model import Link, Metadata, MetadataKey
    from refdesk.protocols import DocumentVectors
    from refdesk.stores.neo4j.connections import Runner

_LIST_DOCUMENTS = (
    "MATCH (d:Document {space: $space}) WITH d.org AS org, d.toolset AS toolset, d.id AS id "
    "WHERE org IS NOT NULL AND {later} RETURN org, toolset, id ORDER BY org, toolset, id LIMIT $limit"
)
_GET_VECTORS = (
    "MATCH (:Thing {space: $space, org: $org, toolset: $toolset, id: $id})-[:HAS_PASSAGE]->(p:Passage) "
    "RETURN p.model, p.dimensions, p.start, p.end, p.half ORDER BY p.model, p.number"
)
_LIST_LINKS = (
    "MATCH (s:Thing {space: $space})-[r]->(t:Thing) WHERE r.kind IS NOT NULL "
    "WITH r, s.toolset AS st, s.id AS si, t.toolset AS tt, t.id AS ti WHERE {later} "
    "RETURN r.org, st, si, r.kind, tt, ti, r.created_at ORDER BY r.org, st, si, r.kind, tt, ti LIMIT $limit"
)
_LIST_AUDITED = "MATCH (a:AuditEntry {space: $space, number: 1}) RETURN a.org ORDER BY a.org"
_LIST_RECORDS = (
    "MATCH (r:Record {space: $space}) WHERE {later} "
    "RETURN r.org, r.kind, r.name, r.due_at, r.value ORDER BY r.org, r.kind, r.name LIMIT $limit"
)


async def list_documents(
    runner: Runner, space: str, after: tuple[Collection, str] | None, limit: int
) -> list[tuple[Collection, str]]:
    """See `Archive.list_documents`."""
    place = None if after is None else (after[0].org, after[0].toolset, after[1])
    statement, parameters = _go_on(_LIST_DOCUMENTS, ("org", "toolset", "id"), place)
    rows = await runner.run(statement, space=space, limit=limit, **parameters)
    return [(Collection(org, toolset), id) for org, toolset, id in rows]


async def get_vectors(runner: Runner, space: str, collection: Collection, id: str) -> DocumentVectors:
    """Return a document's vectors; see `Archive.get_vectors`."""
    passages: defaultdict[EmbeddingModel, list[EmbeddedPassage]] = defaultdict(list)
    place = {"space": space, "org": collection.org, "toolset": collection.toolset, "id": id}
    for model, dimensions, start, end, half in await runner.run(_GET_VECTORS, **place):
        vector = np.frombuffer(half, "<f2").astype(np.float32)
        passages[EmbeddingModel(model, dimensions)].append(EmbeddedPassage(start, end, vector))
    return list(passages.items())


async def list_links(runner: Runner, space: str, after: Link | None, limit: int) -> list[Link]:
    """See `Archive.list_links`."""
    place = None
    if after is not None:
        source, target = after.source, after.target
        place = (after.org, source.toolset, source.id, after.kind, target.toolset, target.id)
    statement, parameters = _go_on(_LIST_LINKS, ("r.org", "st", "si", "r.kind", "tt", "ti"), place)
    rows = await runner.run(statement, space=space, limit=limit, **parameters)
    return [decode_link(org, values) for org, *values in rows]


async def list_audited_orgs(runner: Runner, space: str) -> list[str]:
    """See `Archive.list_audited_orgs`."""
    return [org for (org,) in await runner.run(_LIST_AUDITED, space=space)]


async def list_all_metadata(runner: Runner, space: str, after: MetadataKey | None, limit: int) -> list[Metadata]:
    """See `Archive.list_all_metadata`."""
    place = None if after is None else (after.org, after.kind, after.name)
    statement, parameters = _go_on(_LIST_RECORDS, ("r.org", "r.kind", "r.name"), place)
    rows = await runner.run(statement, space=space, limit=limit, **parameters)
    return [decode_metadata(row) for row in rows]


def _go_on(statement: str, names: tuple[str, ...], after: tuple[str, ...] | None) -> tuple[str, dict[str, object]]:
    """Return the statement and parameters for the page after an entry; without one, for the first page."""
    if after is None:
        return statement.replace("{later}", "true"), {}
    parameters = {f"after{number}": value for number, value in enumerate(after)}
    later = "false"
    for number, name in reversed(list(enumerate(names))):
        later = f"({name} > $after{number} OR ({name} = $after{number} AND {later}))"
    return statement.replace("{later}", later), dict(parameters)
