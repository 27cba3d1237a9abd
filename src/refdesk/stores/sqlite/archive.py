"""Reads everything in key order, for migrations to another engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from refdesk.core.keeping.rows import decode_link, decode_metadata
from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel, Link, Metadata, MetadataKey
from refdesk.stores.sqlite import reads
from refdesk.stores.sqlite.checksums import require_row
from refdesk.stores.sqlite.driver import Connection

if TYPE_CHECKING:
    from refdesk.model import Revision
    from refdesk.protocols import DocumentVectors

_LIST_DOCUMENTS = """
    SELECT org, toolset, id FROM documents JOIN collections ON collections.key = documents.collection
    WHERE (org, toolset, id) > (?, ?, ?) ORDER BY org, toolset, id LIMIT ?
"""
_GET_VECTORS = """
    SELECT models.name, dimensions, first, last, vector FROM vectors
    JOIN models ON models.key = vectors.model
    JOIN documents ON documents.key = vectors.document
    JOIN collections ON collections.key = documents.collection
    WHERE org = ? AND toolset = ? AND id = ? ORDER BY models.name, vectors.key
"""
_LIST_LINKS = """
    SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at, checksum FROM links
    WHERE (org, source_toolset, source_id, kind, target_toolset, target_id) > (?, ?, ?, ?, ?, ?)
    ORDER BY org, source_toolset, source_id, kind, target_toolset, target_id LIMIT ?
"""
_LIST_RECORDS = """
    SELECT org, kind, name, due_at, value, checksum FROM records
    WHERE (org, kind, name) > (?, ?, ?) ORDER BY org, kind, name LIMIT ?
"""


def list_documents(
    connection: Connection, after: tuple[Collection, str] | None, limit: int
) -> list[tuple[Collection, str]]:
    """See `Archive.list_documents`."""
    start = ("", "", "") if after is None else (after[0].org, after[0].toolset, after[1])
    rows = connection.execute(_LIST_DOCUMENTS, (*start, limit))
    return [(Collection(org, toolset), id) for org, toolset, id in rows]


def get_histories(connection: Connection, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
    """See `Archive.get_histories`."""
    return [reads.get_revisions(connection, collection, id) for id in ids]


def get_vectors(connection: Connection, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
    """See `Archive.get_vectors`."""
    return [_get_vectors(connection, collection, id) for id in ids]


def _get_vectors(connection: Connection, collection: Collection, id: str) -> DocumentVectors:
    kept: dict[EmbeddingModel, list[EmbeddedPassage]] = {}
    rows = connection.execute(_GET_VECTORS, (collection.org, collection.toolset, id))
    for name, dimensions, first, last, vector in rows:
        passage = EmbeddedPassage(first, last, np.frombuffer(vector, "<f2").astype(np.float32))
        kept.setdefault(EmbeddingModel(name, dimensions), []).append(passage)
    return list(kept.items())


def list_links(connection: Connection, after: Link | None, limit: int) -> list[Link]:
    """See `Archive.list_links`."""
    start = ("",) * 6
    if after is not None:
        start = (after.org, after.source.toolset, after.source.id, after.kind, after.target.toolset, after.target.id)
    return [decode_link(require_row(row)) for row in connection.execute(_LIST_LINKS, (*start, limit))]


def list_audited_orgs(connection: Connection) -> list[str]:
    """See `Archive.list_audited_orgs`."""
    return [org for (org,) in connection.execute("SELECT DISTINCT org FROM audit ORDER BY org")]


def list_all_metadata(connection: Connection, after: MetadataKey | None, limit: int) -> list[Metadata]:
    """See `Archive.list_all_metadata`."""
    start = ("", "", "") if after is None else (after.org, after.kind, after.name)
    return [decode_metadata(require_row(row)) for row in connection.execute(_LIST_RECORDS, (*start, limit))]
