"""Column layouts of documents, links and metadata, identical in every relational engine.

An engine that keeps instants in another way passes a function that reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from refdesk.core.keeping.encoding import (
    check_texts,
    decode_instant,
    decode_json,
    encode_date_ranges,
    encode_instant,
    encode_json,
)
from refdesk.errors import InvalidInputError
from refdesk.model import AuditEntry, DateRange, Document, Link, Metadata, MetadataKey, Reference, Revision, State

if TYPE_CHECKING:
    from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel

Columns: TypeAlias = Sequence[Any]
ReadInstant: TypeAlias = Callable[[Any], datetime]

_BODY = 9
"""The index of the body among the columns of a revision."""


def encode_document(document: Document) -> dict[str, str | int]:
    """Return the columns of a document by name, except those of its collection and id.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    collection = document.collection
    check_texts(collection.org, collection.toolset, document.id, document.title, document.body, document.author)
    return {
        "version": document.version,
        "state": document.state.value,
        "created_at": encode_instant(document.created_at),
        "modified_at": encode_instant(document.modified_at),
        "digest": document.digest,
        "text_digest": document.text_digest,
        "author": document.author,
        "title": document.title,
        "facets": encode_json(document.facets),
        "spans": encode_json({name: encode_date_ranges(spans) for name, spans in document.date_ranges.items()}),
        "body": document.body,
        "data": encode_json(document.data),
    }


def decode_document(
    collection: Collection, id: str, columns: Columns, read_instant: ReadInstant = decode_instant
) -> Document:
    """Return the document from the columns version, state, both instants, author, title, facets, spans, body, data."""
    version, state, created_at, modified_at, author, title, facets, spans, body, data = columns
    return Document(
        collection=collection,
        id=id,
        title=title,
        body=body,
        author=author,
        created_at=read_instant(created_at),
        modified_at=read_instant(modified_at),
        facets=decode_facets(facets),
        date_ranges=decode_date_ranges(spans, read_instant),
        state=State(state),
        version=version,
        data=decode_json(data),
    )


def decode_revision(
    collection: Collection, id: str, columns: Columns, read_instant: ReadInstant = decode_instant
) -> Revision:
    """Return the revision from the column recorded_at and those that `decode_document` reads."""
    return Revision(decode_document(collection, id, columns[1:], read_instant), read_instant(columns[0]))


def restore_bodies(rows: Sequence[Columns]) -> list[Columns]:
    """Return the versions of one document, as `decode_revision` reads them, each with its body.

    Args:
        rows: In order. A body that is `None` is the same as that of the next version; the last row has its own.
    """
    restored, body = list[Columns](), None
    for row in reversed(rows):
        body = row[_BODY] if row[_BODY] is not None else body
        restored.append([*row[:_BODY], body, *row[_BODY + 1 :]])
    return restored[::-1]


def decode_facets(text: str) -> dict[str, tuple[str, ...]]:
    """Return facets as a document has them."""
    return {name: tuple(values) for name, values in cast("dict[str, list[str]]", decode_json(text)).items()}


def decode_date_ranges(text: str, read_instant: ReadInstant = decode_instant) -> dict[str, tuple[DateRange, ...]]:
    """Return spans as a document has them."""
    encoded: Mapping[str, list[tuple[Any, Any]]] = decode_json(text)
    return {
        name: tuple(DateRange(read_instant(start), read_instant(end)) for start, end in ends)
        for name, ends in encoded.items()
    }


def check_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> None:
    """Check that the vectors can be stored as the model's.

    Raises:
        InvalidInputError: A vector does not have the model's width, or a component is not a finite number.
    """
    for passage in passages:
        if passage.vector.shape != (model.dimensions,) or not np.isfinite(passage.vector).all():
            raise InvalidInputError("A vector must have the width of its model, and finite numbers only.")


def encode_link(link: Link) -> tuple[str, str, str, str, str, str, int]:
    """Return org, the source's toolset and id, kind, the target's toolset and id, created_at.

    Raises:
        InvalidInputError: A text in it cannot be stored.
    """
    ends = (link.source.toolset, link.source.id, link.kind, link.target.toolset, link.target.id)
    check_texts(link.org, *ends)
    return (link.org, *ends, encode_instant(link.created_at))


def decode_link(columns: Columns) -> Link:
    """Return the link from the columns that `encode_link` returns."""
    org, source_toolset, source_id, kind, target_toolset, target_id, created_at = columns
    source, target = Reference(source_toolset, source_id), Reference(target_toolset, target_id)
    return Link(org, source, kind, target, decode_instant(created_at))


def encode_audit(entry: AuditEntry) -> tuple[str, int, int, str, str, str]:
    """Return org, number, at, act, previous and digest.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    check_texts(entry.org)
    at = encode_instant(entry.at)
    return entry.org, entry.number, at, encode_json(entry.act), entry.previous, entry.digest


def decode_audit(columns: Columns, read_instant: ReadInstant = decode_instant) -> AuditEntry:
    """Return the entry from the columns that `encode_audit` returns."""
    org, number, at, act, previous, digest = columns
    return AuditEntry(org, number, read_instant(at), decode_json(act), previous, digest)


def encode_metadata(record: Metadata) -> tuple[str, str, str, int | None, str]:
    """Return org, kind, name, due_at and value.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    key = record.key
    check_texts(key.org, key.kind, key.name)
    due_at = None if record.due_at is None else encode_instant(record.due_at)
    return key.org, key.kind, key.name, due_at, encode_json(record.value)


def decode_metadata(columns: Columns, read_instant: ReadInstant = decode_instant) -> Metadata:
    """Return the record from the columns that `encode_metadata` returns."""
    org, kind, name, due_at, value = columns
    return Metadata(MetadataKey(org, kind, name), decode_json(value), None if due_at is None else read_instant(due_at))
