"""Reads documents and metadata, each in one round trip."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, LiteralString, Protocol

from refdesk.core.keeping.encoding import encode_instant, is_storable
from refdesk.core.keeping.rows import (
    decode_audit,
    decode_document,
    decode_link,
    decode_metadata,
    decode_revision,
)
from refdesk.model import Collection, CollectionStatistics, EmbeddedCount, State
from refdesk.stores.postgres.connections import ALL_ORGS, Scope, Statement
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.texts import unpack, unpack_versions

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Document, Link, Metadata, MetadataKey, Reference, Revision

_GET_DOCUMENTS = """
    SELECT id, version, state, created_at, modified_at, author, facets, spans, data, texts FROM documents
    WHERE org = %s AND toolset = %s AND id = ANY(%s::text[])
"""
_GET_REVISIONS = """
    WITH present AS (SELECT * FROM documents WHERE org = %s AND toolset = %s AND id = %s)
    SELECT recorded_at, version, state, created_at, modified_at, author, facets, spans, data, texts
    FROM revisions WHERE (org, document) IN (SELECT org, key FROM present)
    UNION ALL
    SELECT recorded_at, version, state, created_at, modified_at, author, facets, spans, data, texts FROM present
    ORDER BY version
"""
_GET_DIGESTS = (
    "SELECT id, encode(digest, 'hex') FROM documents WHERE org = %s AND toolset = %s AND state <> 'withdrawn'"
)
_GET_UNEMBEDDED = """
    SELECT id FROM entries
    WHERE org = %s AND toolset = %s AND NOT EXISTS (
        SELECT FROM vectors JOIN models ON models.key = model
        WHERE vectors.org = entries.org AND vectors.document = entries.document AND name = %s
    )
    ORDER BY id LIMIT %s
"""
_GET_UNEMBEDDED_SINCE = """
    SELECT id FROM documents
    WHERE org = %s AND toolset = %s AND written > %s AND state <> 'withdrawn' AND NOT EXISTS (
        SELECT FROM vectors JOIN models ON models.key = model
        WHERE vectors.org = documents.org AND vectors.document = documents.key AND name = %s
    )
    ORDER BY id LIMIT %s
"""
_GET_EMBEDDED = """
    SELECT id FROM documents
    WHERE org = %s AND toolset = %s AND id = ANY(%s::text[]) AND EXISTS (
        SELECT FROM vectors JOIN models ON models.key = model
        WHERE vectors.org = documents.org AND vectors.document = documents.key AND name = %s
    )
"""
_GET_LINKS = """
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at
    FROM links
    WHERE org = %(org)s AND source_toolset = %(toolset)s AND source_id = %(id)s
    UNION
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at
    FROM links
    WHERE org = %(org)s AND target_toolset = %(toolset)s AND target_id = %(id)s
    ORDER BY created_at, kind, source_toolset, source_id, target_toolset, target_id
"""
_GET_RECORD = "SELECT org, kind, name, due_at, value FROM records WHERE org = %s AND kind = %s AND name = %s"
_GET_RECORDS = """
    SELECT org, kind, name, due_at, value FROM records WHERE org = %s AND kind = %s AND name = ANY(%s::text[])
"""
_LIST_RECORDS = """
    SELECT org, kind, name, due_at, value FROM records
    WHERE kind = %s AND due_at <= %s
    ORDER BY due_at, org, name LIMIT %s
"""
_LIST_ALL_RECORDS = """
    SELECT org, kind, name, due_at, value FROM records
    WHERE kind = %s
    ORDER BY due_at, org, name LIMIT %s
"""
_LIST_RECORDS_OF_ORG = """
    SELECT org, kind, name, due_at, value FROM records
    WHERE org = %(org)s AND kind = %(kind)s AND (%(due_until)s::bigint IS NULL OR due_at <= %(due_until)s::bigint)
    ORDER BY due_at, name LIMIT %(limit)s
"""
_GET_AUDIT = """
    SELECT org, number, at, act, previous, digest FROM audit WHERE org = %s AND number > %s ORDER BY number LIMIT %s
"""
GET_LAST_AUDIT = """
    SELECT org, number, at, act, previous, digest FROM audit WHERE org = %s ORDER BY number DESC LIMIT 1
"""
# The planner takes the policies to leave few orgs, and would look up each by itself, which takes four times as long.
_JOIN_WHOLE_TABLES = Statement("SELECT set_config('enable_nestloop', 'off', true)")
_LIST_COLLECTIONS = "SELECT org, toolset, changes FROM collections JOIN orgs USING (org)"
_GET_CHANGE_MARK = "SELECT pg_current_snapshot()::text"
"""Says which transactions have ended: it differs after every commit, in whatever order transactions begin and end. A
sequence alone would miss one that took its number early and commits late."""

_COUNT_STATES = """
    SELECT org, toolset, state, count(*) FROM documents WHERE org = ANY(%s::text[]) GROUP BY org, toolset, state
"""
_COUNT_VECTORS = """
    SELECT documents.org, toolset, name, count(*) FROM vectors
    JOIN documents ON documents.org = vectors.org AND documents.key = vectors.document
    JOIN models ON models.key = model
    WHERE vectors.org = ANY(%s::text[]) AND number = 0 AND state <> 'withdrawn' GROUP BY documents.org, toolset, name
"""
_SIZE_ORGS = "SELECT org, sum(documents)::bigint FROM collections GROUP BY org ORDER BY org"
MOST_COUNTED = 500_000
"""About how many documents are counted at once: few enough for the time that a statement may take."""

_COUNT_EMBEDDED = """
    SELECT collections.org, toolset, collections.documents, coalesce(embedded, 0), changes
    FROM collections JOIN orgs USING (org) LEFT JOIN (
        SELECT org, toolset, embedded FROM embeddings JOIN models ON models.key = model WHERE name = %s
    ) AS embeddings USING (org, toolset)
    ORDER BY collections.org, toolset
"""
_LIST_MODELS = "SELECT DISTINCT name FROM embeddings JOIN models ON models.key = model WHERE passages > 0"


class Statements(Protocol):
    """What runs statements: either the pool, where each call sees a snapshot of its own, or one transaction."""

    async def read(self, scope: Scope, *statements: Statement) -> list[list[Row]]:
        """Return the rows of each statement, all as of one moment."""
        ...


async def get_documents(source: Statements, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
    """See `Reader.get_documents`."""
    asked = [id for id in ids if is_storable(id)]
    rows = await _read(source, collection, _GET_DOCUMENTS, asked) if asked else []
    found = {row[0]: decode_document(collection, row[0], unpack(row[1:])) for row in rows}
    return [found.get(id) for id in ids]


async def get_revisions(source: Statements, collection: Collection, id: str) -> list[Revision]:
    """See `Reader.get_revisions`."""
    rows = await _read(source, collection, _GET_REVISIONS, id)
    return [decode_revision(collection, id, row) for row in unpack_versions(rows)]


async def get_digests(source: Statements, collection: Collection) -> dict[str, str]:
    """See `Reader.get_digests`."""
    return {row[0]: row[1] for row in await _read(source, collection, _GET_DIGESTS)}


async def get_unembedded(source: Statements, collection: Collection, model: str, limit: int, since: str) -> list[str]:
    """See `Reader.get_unembedded`."""
    if since:
        rows = await _read(source, collection, _GET_UNEMBEDDED_SINCE, int(since), model, limit)
    else:
        rows = await _read(source, collection, _GET_UNEMBEDDED, model, limit)
    return [id for (id,) in rows]


async def get_embedded(source: Statements, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
    """See `Reader.get_embedded`."""
    asked = [id for id in ids if is_storable(id)]
    return frozenset(id for (id,) in await _read(source, collection, _GET_EMBEDDED, asked, model))


async def get_links(source: Statements, org: str, reference: Reference) -> list[Link]:
    """See `Reader.get_links`."""
    values: dict[str, object] = {"org": org, "toolset": reference.toolset, "id": reference.id}
    (rows,) = await source.read(Scope(org), Statement(_GET_LINKS, values))
    return [decode_link(row) for row in rows]


async def get_metadata(source: Statements, key: MetadataKey) -> Metadata | None:
    """See `Reader.get_metadata`."""
    (rows,) = await source.read(Scope(key.org), Statement(_GET_RECORD, (key.org, key.kind, key.name)))
    return decode_metadata(rows[0]) if rows else None


async def get_many_metadata(source: Statements, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
    """See `Reader.get_many_metadata`; one round trip for each org."""
    every: list[list[Row]] = []
    for org in dict.fromkeys(key.org for key in keys):
        every += await source.read(Scope(org), *ask_for_metadata([key for key in keys if key.org == org]))
    return match_metadata(keys, every)


def ask_for_metadata(keys: Sequence[MetadataKey]) -> list[Statement]:
    """Return the statements that read these records of an org."""
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        names[key.org, key.kind].append(key.name)
    return [Statement(_GET_RECORDS, (*place, some)) for place, some in names.items()]


def match_metadata(keys: Sequence[MetadataKey], every: Sequence[Sequence[Row]]) -> list[Metadata | None]:
    """Return the record of each key from the rows that `ask_for_metadata` gave."""
    found = {record.key: record for rows in every for record in map(decode_metadata, rows)}
    return [found.get(key) for key in keys]


async def list_metadata(
    source: Statements, kind: str, org: str | None, due_until: datetime | None, limit: int
) -> list[Metadata]:
    """See `Reader.list_metadata`."""
    due = None if due_until is None else encode_instant(due_until)
    if org is not None:
        values: dict[str, object] = {"org": org, "kind": kind, "due_until": due, "limit": limit}
        statement = Statement(_LIST_RECORDS_OF_ORG, values)
    elif due is None:
        statement = Statement(_LIST_ALL_RECORDS, (kind, limit))
    else:
        statement = Statement(_LIST_RECORDS, (kind, due, limit))
    (rows,) = await source.read(ALL_ORGS if org is None else Scope(org), statement)
    return [decode_metadata(row) for row in rows]


async def get_audit(source: Statements, org: str, after: int, limit: int) -> list[AuditEntry]:
    """See `Reader.get_audit`."""
    (rows,) = await source.read(Scope(org), Statement(_GET_AUDIT, (org, after, limit)))
    return [decode_audit(row) for row in rows]


async def get_last_audit(source: Statements, org: str) -> AuditEntry | None:
    """See `Reader.get_last_audit`."""
    (rows,) = await source.read(Scope(org), Statement(GET_LAST_AUDIT, (org,)))
    return decode_audit(rows[0]) if rows else None


async def list_collections(source: Statements) -> dict[Collection, str]:
    """See `Store.list_collections`; all those of an org have the same mark, the last number of its change sequence."""
    _, rows = await source.read(ALL_ORGS, _JOIN_WHOLE_TABLES, Statement(_LIST_COLLECTIONS))
    return {Collection(org, toolset): str(changes) for org, toolset, changes in rows}


async def get_change_mark(source: Statements) -> str:
    """See `Store.get_change_mark`."""
    (((snapshot,),),) = await source.read(ALL_ORGS, Statement(_GET_CHANGE_MARK))
    return str(snapshot)


async def get_statistics(source: Statements, org: str | None) -> list[CollectionStatistics]:
    """See `Store.get_statistics`."""
    documents: defaultdict[Collection, dict[State, int]] = defaultdict(lambda: dict.fromkeys(State, 0))
    embedded: defaultdict[Collection, dict[str, int]] = defaultdict(dict)
    groups = [[org]] if org is not None else await _group_orgs(source)
    for orgs in groups:
        states, models = await source.read(
            ALL_ORGS, Statement(_COUNT_STATES, (orgs,)), Statement(_COUNT_VECTORS, (orgs,))
        )
        for owner, toolset, state, count in states:
            documents[Collection(owner, toolset)][State(state)] = count
        for owner, toolset, model, count in models:
            embedded[Collection(owner, toolset)][model] = count
    return [CollectionStatistics(each, documents[each], embedded[each]) for each in sorted(documents)]


async def _group_orgs(source: Statements) -> list[list[str]]:
    """Return all orgs, in groups that have about `MOST_COUNTED` documents together, or one org that has more."""
    groups, counted = [list[str]()], 0
    (rows,) = await source.read(ALL_ORGS, Statement(_SIZE_ORGS))
    for org, size in rows:
        if groups[-1] and counted + size > MOST_COUNTED:
            groups.append([])
            counted = 0
        groups[-1].append(org)
        counted += size
    return groups


async def count_embedded(source: Statements, model: str) -> list[EmbeddedCount]:
    """See `Store.count_embedded`."""
    _, rows = await source.read(ALL_ORGS, _JOIN_WHOLE_TABLES, Statement(_COUNT_EMBEDDED, (model,)))
    return [
        EmbeddedCount(Collection(org, toolset), documents, embedded, str(changes))
        for org, toolset, documents, embedded, changes in rows
    ]


async def list_models(source: Statements) -> list[str]:
    """See `Store.list_models`."""
    (rows,) = await source.read(ALL_ORGS, Statement(_LIST_MODELS))
    return sorted(name for (name,) in rows)


async def _read(source: Statements, collection: Collection, text: LiteralString, *values: object) -> list[Row]:
    (rows,) = await source.read(Scope(collection.org), Statement(text, (collection.org, collection.toolset, *values)))
    return rows
