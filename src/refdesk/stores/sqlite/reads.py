"""Reads documents and metadata: each function runs in one thread hop, in a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache

from refdesk.core.keeping.encoding import encode_instant
from refdesk.core.keeping.rows import (
    decode_audit,
    decode_document,
    decode_link,
    decode_metadata,
    decode_revision,
    restore_bodies,
)
from refdesk.model import (
    AuditEntry,
    Collection,
    Document,
    Link,
    Metadata,
    MetadataKey,
    Reference,
    Revision,
)
from refdesk.stores.sqlite.checksums import require_row, require_version
from refdesk.stores.sqlite.driver import Connection, Row

_GET_COLLECTION = "SELECT key, changed FROM collections WHERE org = ? AND toolset = ?"
_GET_DOCUMENT = """
    SELECT recorded_at, version, state, created_at, modified_at, author, title, facets, spans, body, data, checksum
    FROM documents WHERE collection = ? AND id = ?
"""
_GET_REVISIONS = """
    SELECT recorded_at, version, state, created_at, modified_at, author, title, facets, spans, body, data, checksum
    FROM revisions WHERE document = :key
    UNION ALL
    SELECT recorded_at, version, state, created_at, modified_at, author, title, facets, spans, body, data, checksum
    FROM documents WHERE key = :key
    ORDER BY version
"""
_GET_DIGESTS = "SELECT id, digest FROM documents WHERE collection = ? AND state <> 'withdrawn'"
_GET_UNEMBEDDED = """
    SELECT id FROM documents
    WHERE collection = ? AND state <> 'withdrawn' AND NOT EXISTS (
        SELECT 1 FROM vectors
        WHERE vectors.document = documents.key AND vectors.model = (SELECT key FROM models WHERE name = ?)
    )
    ORDER BY id LIMIT ?
"""
# Few documents are written after a mark, but the index by id would lead through all of them.
_GET_UNEMBEDDED_SINCE = """
    SELECT id FROM documents INDEXED BY documents_by_written
    WHERE collection = ? AND written > ? AND state <> 'withdrawn' AND NOT EXISTS (
        SELECT 1 FROM vectors
        WHERE vectors.document = documents.key AND vectors.model = (SELECT key FROM models WHERE name = ?)
    )
    ORDER BY id LIMIT ?
"""
_GET_EMBEDDED = """
    SELECT id FROM documents WHERE collection = ? AND id IN (SELECT value FROM json_each(?)) AND EXISTS (
        SELECT 1 FROM vectors
        WHERE vectors.document = documents.key AND vectors.model = (SELECT key FROM models WHERE name = ?)
    )
"""
# Without the index's name SQLite walks all links of the org rather than the index by target.
_GET_LINKS = """
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at, checksum
    FROM links
    WHERE org = :org AND source_toolset = :toolset AND source_id = :id
    UNION
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at, checksum
    FROM links INDEXED BY links_by_target
    WHERE org = :org AND target_toolset = :toolset AND target_id = :id
    ORDER BY created_at, kind, source_toolset, source_id, target_toolset, target_id
"""
_GET_RECORD = "SELECT org, kind, name, due_at, value, checksum FROM records WHERE org = ? AND kind = ? AND name = ?"
_GET_RECORDS = """
    WITH asked(of_org, of_kind, of_name) AS (VALUES {keys})
    SELECT org, kind, name, due_at, value, checksum
    FROM asked CROSS JOIN records ON org = of_org AND kind = of_kind AND name = of_name
"""
_LIST_MODELS = """
    SELECT name FROM models WHERE EXISTS (SELECT 1 FROM vectors WHERE vectors.model = models.key) ORDER BY name
"""
RECORDS_AT_ONCE = 64
"""Most records read by one statement."""

_LIST_RECORDS = """
    SELECT org, kind, name, due_at, value, checksum FROM records WHERE kind = :kind
    ORDER BY due_at IS NULL, due_at, org, name LIMIT :limit
"""
_LIST_DUE_RECORDS = """
    SELECT org, kind, name, due_at, value, checksum FROM records
    WHERE kind = :kind AND (due_at IS NULL) = 0 AND due_at <= :due_until
    ORDER BY due_at, org, name LIMIT :limit
"""
# The unary plus keeps SQLite from walking the records of all orgs in due order: one org has few.
_LIST_RECORDS_OF_ORG = """
    SELECT org, kind, name, due_at, value, checksum FROM records
    WHERE org = :org AND kind = :kind AND (:due_until IS NULL OR due_at <= :due_until)
    ORDER BY +(due_at IS NULL), due_at, name LIMIT :limit
"""
_GET_AUDIT = """
    SELECT org, number, at, act, previous, digest FROM audit WHERE org = ? AND number > ? ORDER BY number LIMIT ?
"""
_GET_LAST_AUDIT = """
    SELECT org, number, at, act, previous, digest FROM audit WHERE org = ? ORDER BY number DESC LIMIT 1
"""


def get_collection(connection: Connection, collection: Collection) -> tuple[int, int] | None:
    """Return the collection's number and its last change, or `None` before its first document."""
    row = connection.get_row(_GET_COLLECTION, (collection.org, collection.toolset))
    return None if row is None else (row[0], row[1])


def get_documents(connection: Connection, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
    """See `Reader.get_documents`."""
    found = get_collection(connection, collection)
    if found is None:
        return [None] * len(ids)
    rows = [(id, connection.get_row(_GET_DOCUMENT, (found[0], id))) for id in ids]
    return [None if row is None else _decode_document(collection, id, row) for id, row in rows]


def get_revisions(connection: Connection, collection: Collection, id: str) -> list[Revision]:
    """See `Reader.get_revisions`."""
    select = (
        "SELECT documents.key FROM documents JOIN collections ON collections.key = collection "
        "WHERE org = ? AND toolset = ? AND id = ?"
    )
    row = connection.get_row(select, (collection.org, collection.toolset, id))
    rows = [] if row is None else connection.execute(_GET_REVISIONS, {"key": row[0]})
    return [decode_revision(collection, id, require_version(collection, id, row)) for row in restore_bodies(rows)]


def get_digests(connection: Connection, collection: Collection) -> dict[str, str]:
    """See `Reader.get_digests`."""
    found = get_collection(connection, collection)
    rows = [] if found is None else connection.execute(_GET_DIGESTS, (found[0],))
    return {row[0]: row[1] for row in rows}


def get_unembedded(connection: Connection, collection: Collection, model: str, limit: int, since: str) -> list[str]:
    """See `Reader.get_unembedded`."""
    found = get_collection(connection, collection)
    if found is None:
        return []
    if since:
        rows = connection.execute(_GET_UNEMBEDDED_SINCE, (found[0], int(since), model, limit))
    else:
        rows = connection.execute(_GET_UNEMBEDDED, (found[0], model, limit))
    return [id for (id,) in rows]


def get_embedded(connection: Connection, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
    """See `Reader.get_embedded`."""
    found = get_collection(connection, collection)
    rows = [] if found is None else connection.execute(_GET_EMBEDDED, (found[0], json.dumps(ids), model))
    return frozenset(id for (id,) in rows)


def get_links(connection: Connection, org: str, reference: Reference) -> list[Link]:
    """See `Reader.get_links`."""
    bindings = {"org": org, "toolset": reference.toolset, "id": reference.id}
    return [decode_link(require_row(row)) for row in connection.execute(_GET_LINKS, bindings)]


def get_metadata(connection: Connection, key: MetadataKey) -> Metadata | None:
    """See `Reader.get_metadata`."""
    row = connection.get_row(_GET_RECORD, (key.org, key.kind, key.name))
    return None if row is None else decode_metadata(require_row(row))


def get_many_metadata(connection: Connection, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
    """See `Reader.get_many_metadata`."""
    found: dict[MetadataKey, Metadata] = {}
    for first in range(0, len(keys), RECORDS_AT_ONCE):
        part = keys[first : first + RECORDS_AT_ONCE]
        bindings = [each for key in part for each in (key.org, key.kind, key.name)]
        rows = connection.execute(_get_records(len(part)), bindings)
        found.update((record.key, record) for record in (decode_metadata(require_row(row)) for row in rows))
    return [found.get(key) for key in keys] if found else [None] * len(keys)


@cache
def _get_records(count: int) -> str:
    return _GET_RECORDS.format(keys=", ".join(["(?, ?, ?)"] * count))


def list_metadata(
    connection: Connection, kind: str, org: str | None, due_until: datetime | None, limit: int
) -> list[Metadata]:
    """See `Reader.list_metadata`."""
    due = None if due_until is None else encode_instant(due_until)
    statement = _LIST_RECORDS if due is None else _LIST_DUE_RECORDS
    if org is not None:
        statement = _LIST_RECORDS_OF_ORG
    bindings = {"kind": kind, "org": org, "due_until": due, "limit": limit}
    return [decode_metadata(require_row(row)) for row in connection.execute(statement, bindings)]


def get_audit(connection: Connection, org: str, after: int, limit: int) -> list[AuditEntry]:
    """See `Reader.get_audit`."""
    return [decode_audit(row) for row in connection.execute(_GET_AUDIT, (org, after, limit))]


def get_last_audit(connection: Connection, org: str) -> AuditEntry | None:
    """See `Reader.get_last_audit`."""
    row = connection.get_row(_GET_LAST_AUDIT, (org,))
    return None if row is None else decode_audit(row)


def list_collections(connection: Connection) -> dict[Collection, str]:
    """See `Store.list_collections`."""
    rows = connection.execute("SELECT org, toolset, changed FROM collections")
    return {Collection(org, toolset): str(changed) for org, toolset, changed in rows}


def list_models(connection: Connection) -> list[str]:
    """See `Store.list_models`."""
    return [name for (name,) in connection.execute(_LIST_MODELS)]


def get_change_mark(connection: Connection) -> str:
    """See `Store.get_change_mark`."""
    ((change,),) = connection.execute("SELECT value FROM counters WHERE name = 'change'")
    return str(change)


def _decode_document(collection: Collection, id: str, row: Row) -> Document:
    return decode_document(collection, id, require_version(collection, id, row)[1:])
