"""Reads everything in pages, for migrations: each page continues in the order of a primary key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from psycopg.sql import SQL, Identifier

from refdesk.core.keeping.rows import decode_link, decode_metadata, decode_revision
from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel
from refdesk.stores.postgres.connections import ALL_ORGS, Connections, Scope, Statement
from refdesk.stores.postgres.rows import decode_sent
from refdesk.stores.postgres.texts import unpack_versions
from refdesk.stores.postgres.unlimited import connect_without_limits

if TYPE_CHECKING:
    from refdesk.core.keeping.rows import Columns
    from refdesk.model import Link, Metadata, MetadataKey, Revision
    from refdesk.protocols import DocumentVectors

# No key begins with an empty org, so every key comes after one of empty texts.
_LIST_DOCUMENTS = """
    SELECT org, toolset, id FROM documents WHERE (org, toolset, id) > (%s, %s, %s) ORDER BY org, toolset, id LIMIT %s
"""
_GET_HISTORIES = """
    WITH present AS (
        SELECT id, org, key, recorded_at, version, state, created_at, modified_at, author, facets, spans, data, texts
        FROM documents WHERE org = %s AND toolset = %s AND id = ANY(%s::text[])
    )
    SELECT present.id, revisions.recorded_at, revisions.version, revisions.state, revisions.created_at,
        revisions.modified_at, revisions.author, revisions.facets, revisions.spans, revisions.data, revisions.texts
    FROM revisions JOIN present ON present.org = revisions.org AND present.key = revisions.document
    UNION ALL
    SELECT id, recorded_at, version, state, created_at, modified_at, author, facets, spans, data, texts
    FROM present ORDER BY version
"""
_GET_VECTORS = """
    SELECT id, name, dimensions, first, last, halfvec_send(vector) FROM documents
    JOIN vectors ON vectors.org = documents.org AND document = documents.key
    JOIN models ON models.key = model
    WHERE documents.org = %s AND toolset = %s AND id = ANY(%s::text[]) ORDER BY name, number
"""
_LIST_LINKS = """
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at FROM links
    WHERE (org, source_toolset, source_id, kind, target_toolset, target_id) > (%s, %s, %s, %s, %s, %s)
    ORDER BY org, source_toolset, source_id, kind, target_toolset, target_id LIMIT %s
"""
_LIST_RECORDS = """
    SELECT org, kind, name, due_at, value FROM records
    WHERE (org, kind, name) > (%s, %s, %s) ORDER BY org, kind, name LIMIT %s
"""


_SEARCHED = ("documents", "entries", "spans", "vectors")


async def list_documents(
    connections: Connections, after: tuple[Collection, str] | None, limit: int
) -> list[tuple[Collection, str]]:
    """See `Archive.list_documents`."""
    key = (after[0].org, after[0].toolset, after[1]) if after else ("", "", "")
    (rows,) = await connections.read(ALL_ORGS, Statement(_LIST_DOCUMENTS, (*key, limit)))
    return [(Collection(org, toolset), id) for org, toolset, id in rows]


async def get_histories(connections: Connections, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
    """See `Archive.get_histories`."""
    statement = Statement(_GET_HISTORIES, (collection.org, collection.toolset, list(ids)))
    (rows,) = await connections.read(Scope(collection.org), statement)
    found: defaultdict[str, list[Columns]] = defaultdict(list)
    for id, *columns in rows:
        found[id].append(columns)
    return [[decode_revision(collection, id, row) for row in unpack_versions(found[id])] for id in ids]


async def get_vectors(connections: Connections, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
    """See `Archive.get_vectors`."""
    statement = Statement(_GET_VECTORS, (collection.org, collection.toolset, list(ids)))
    (rows,) = await connections.read(Scope(collection.org), statement)
    found: dict[str, dict[EmbeddingModel, list[EmbeddedPassage]]] = {id: {} for id in ids}
    for id, name, dimensions, first, last, sent in rows:
        passage = EmbeddedPassage(first, last, decode_sent(sent))
        found[id].setdefault(EmbeddingModel(name, dimensions), []).append(passage)
    return [list(found[id].items()) for id in ids]


async def list_links(connections: Connections, after: Link | None, limit: int) -> list[Link]:
    """See `Archive.list_links`."""
    key = ("",) * 6
    if after:
        source, target = after.source, after.target
        key = (after.org, source.toolset, source.id, after.kind, target.toolset, target.id)
    (rows,) = await connections.read(ALL_ORGS, Statement(_LIST_LINKS, (*key, limit)))
    return [decode_link(row) for row in rows]


async def list_audited_orgs(connections: Connections) -> list[str]:
    """See `Archive.list_audited_orgs`."""
    (rows,) = await connections.read(ALL_ORGS, Statement("SELECT DISTINCT org FROM audit ORDER BY org"))
    return [org for (org,) in rows]


async def list_all_metadata(connections: Connections, after: MetadataKey | None, limit: int) -> list[Metadata]:
    """See `Archive.list_all_metadata`."""
    key = (after.org, after.kind, after.name) if after else ("", "", "")
    (rows,) = await connections.read(ALL_ORGS, Statement(_LIST_RECORDS, (*key, limit)))
    return [decode_metadata(row) for row in rows]


async def analyze(connections: Connections) -> None:
    """Have the server collect statistics on what a load has written; does not wait for writers."""
    async with connect_without_limits(connections) as connection:
        for table in _SEARCHED:
            await connections.send_alone(connection, Statement(SQL("ANALYZE {}").format(Identifier(table))))
