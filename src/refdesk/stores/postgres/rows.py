"""Values as columns and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from refdesk.core.encoding import check_texts, decode_instant, encode_instant, encode_json, encode_spans
from refdesk.errors import InvalidInputError
from refdesk.model import Document, Link, Record, RecordKey, Reference, Revision, Span, State
from refdesk.stores.postgres.pool import Row

if TYPE_CHECKING:
    from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel, Vector


MOST_DIMENSIONS = 16_000
"""What pgvector's half-precision type holds."""


def encode_document(document: Document) -> dict[str, object]:
    """Return the columns of what is kept of a document as it is.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    collection = document.collection
    check_texts(collection.org, collection.toolset, document.id, document.title, document.body, document.author)
    return {
        "org": collection.org,
        "toolset": collection.toolset,
        "id": document.id,
        "version": document.version,
        "state": document.state.value,
        "created_at": encode_instant(document.created_at),
        "modified_at": encode_instant(document.modified_at),
        "digest": document.digest,
        "text_digest": document.text_digest,
        "author": document.author,
        "title": document.title,
        "facets": encode_json(document.facets),
        "spans": encode_json({name: encode_spans(spans) for name, spans in document.spans.items()}),
        "body": document.body,
        "data": encode_json(document.data),
    }


def decode_document(collection: Collection, id: str, row: Row) -> Document:
    """Return the document of a row: version, state, both instants, author, title, facets, spans, body, data."""
    version, state, created_at, modified_at, author, title, facets, spans, body, data = row
    return Document(
        collection=collection,
        id=id,
        title=title,
        body=body,
        author=author,
        created_at=decode_instant(created_at),
        modified_at=decode_instant(modified_at),
        facets={name: tuple(values) for name, values in cast("dict[str, list[str]]", facets).items()},
        spans=_decode_spans(spans),
        state=State(state),
        version=version,
        data=data,
    )


def decode_revision(collection: Collection, id: str, row: Row) -> Revision:
    """Return the revision of a row: recorded_at, then what `decode_document` reads."""
    return Revision(decode_document(collection, id, row[1:]), decode_instant(row[0]))


def encode_vector(vector: Vector) -> str:
    """Return the vector as pgvector reads it; it reads back the same number for each component."""
    components: list[float] = vector.tolist()
    return f"[{','.join(map(repr, components))}]"


def encode_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[tuple[int, int, str]]:
    """Return (start, end, vector in half precision) of each passage.

    Raises:
        InvalidInputError: A vector has not the model's width, or a component is not a finite number.
    """
    check_texts(model.name)
    for passage in passages:
        if passage.vector.shape != (model.dimensions,) or not np.isfinite(passage.vector).all():
            raise InvalidInputError("A vector's width is not that of its model, or a component is not a finite number.")
    if model.dimensions > MOST_DIMENSIONS:
        raise InvalidInputError(f"The database holds vectors of at most {MOST_DIMENSIONS} components.")
    halves = (passage.vector.astype(np.float16).astype(np.float32) for passage in passages)
    return [(each.start, each.end, encode_vector(half)) for each, half in zip(passages, halves, strict=True)]


def encode_link(link: Link) -> tuple[str, str, str, str, str, str, int]:
    """Return org, the source's toolset and id, kind, the target's toolset and id, created_at.

    Raises:
        InvalidInputError: A text in it cannot be stored.
    """
    ends = (link.source.toolset, link.source.id, link.kind, link.target.toolset, link.target.id)
    check_texts(link.org, *ends)
    return (link.org, *ends, encode_instant(link.created_at))


def decode_link(org: str, row: Row) -> Link:
    """Return the link of a row: what `encode_link` gives, without the org."""
    source_toolset, source_id, kind, target_toolset, target_id, created_at = row
    source, target = Reference(source_toolset, source_id), Reference(target_toolset, target_id)
    return Link(org, source, kind, target, decode_instant(created_at))


def encode_record(record: Record) -> tuple[str, str, str, int | None, str]:
    """Return org, kind, name, due_at and value.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    key = record.key
    check_texts(key.org, key.kind, key.name)
    due_at = None if record.due_at is None else encode_instant(record.due_at)
    return key.org, key.kind, key.name, due_at, encode_json(record.value)


def decode_record(row: Row) -> Record:
    """Return the record of a row of org, kind, name, due_at and value."""
    org, kind, name, due_at, value = row
    return Record(RecordKey(org, kind, name), value, None if due_at is None else decode_instant(due_at))


def _decode_spans(spans: Mapping[str, Sequence[tuple[int, int]]]) -> dict[str, tuple[Span, ...]]:
    return {
        name: tuple(Span(decode_instant(start), decode_instant(end)) for start, end in ends)
        for name, ends in spans.items()
    }
