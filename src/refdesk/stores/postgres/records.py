"""Writes links, audit entries and metadata: rows that searches do not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from refdesk.core.keeping.rows import encode_audit, encode_link, encode_metadata
from refdesk.errors import ConflictError
from refdesk.stores.postgres.connections import Scope, Statement

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Link, Metadata, MetadataKey
    from refdesk.stores.postgres.transactions import Session

_PUT_LINK = "INSERT INTO links VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
_REMOVE_LINK = """
    DELETE FROM links WHERE org = %s AND source_toolset = %s AND source_id = %s AND kind = %s
    AND target_toolset = %s AND target_id = %s
"""
_GET_AUDITED = "SELECT number FROM audit WHERE org = %s AND number = ANY(%s::bigint[])"
_PUT_AUDIT = "INSERT INTO audit (org, number, at, act, previous, digest) VALUES (%s, %s, %s, %s::json, %s, %s)"
_PUT_RECORDS = """
    INSERT INTO records (org, kind, name, due_at, value)
    SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::json[])
    ON CONFLICT (org, kind, name) DO UPDATE SET due_at = excluded.due_at, value = excluded.value
"""
_REMOVE_RECORDS = """
    DELETE FROM records WHERE org = %s AND (kind, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
"""


async def put_links(session: Session, links: Sequence[Link]) -> None:
    """See `Transaction.put_links`."""
    rows = [encode_link(link) for link in links]
    for org in dict.fromkeys(row[0] for row in rows):
        await session.post(Scope(org), *(Statement(_PUT_LINK, row) for row in rows if row[0] == org))


async def remove_links(session: Session, links: Sequence[Link]) -> None:
    """See `Transaction.remove_links`."""
    rows = [encode_link(link)[:-1] for link in links]
    for org in dict.fromkeys(row[0] for row in rows):
        await session.post(Scope(org), *(Statement(_REMOVE_LINK, row) for row in rows if row[0] == org))


async def put_audit(session: Session, entries: Sequence[AuditEntry], last: Mapping[str, int]) -> None:
    """See `Transaction.put_audit`.

    Args:
        session: The transaction.
        entries: The entries to add.
        last: The highest number in each org's log that this transaction has read; nothing is looked up above it.
    """
    for org in dict.fromkeys(entry.org for entry in entries):
        rows = [encode_audit(entry) for entry in entries if entry.org == org]
        numbers = [entry.number for entry in entries if entry.org == org]
        if org not in last or min(numbers) <= last[org] or len(set(numbers)) < len(numbers):
            (there,) = await session.send(Scope(org), Statement(_GET_AUDITED, (org, numbers)))
            if there:
                raise ConflictError("The audit log has an entry of that number: read it again and repeat the change.")
        await session.post(Scope(org), *(Statement(_PUT_AUDIT, row) for row in rows))


async def put_metadata(session: Session, records: Sequence[Metadata]) -> None:
    """See `Transaction.put_metadata`."""
    rows = [encode_metadata(record) for record in {record.key: record for record in records}.values()]
    for org in dict.fromkeys(row[0] for row in rows):
        columns = map(list, zip(*[row[1:] for row in rows if row[0] == org], strict=True))
        await session.post(Scope(org), Statement(_PUT_RECORDS, (org, *columns)))


async def remove_metadata(session: Session, keys: Sequence[MetadataKey]) -> None:
    """See `Transaction.remove_metadata`."""
    for org in dict.fromkeys(key.org for key in keys):
        columns = [[key.kind for key in keys if key.org == org], [key.name for key in keys if key.org == org]]
        await session.post(Scope(org), Statement(_REMOVE_RECORDS, (org, *columns)))
