"""Values as columns and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from refdesk.core.encoding import check_texts, decode_instant, encode_instant, encode_json, encode_spans
from refdesk.errors import InvalidInputError
from refdesk.model import Collection, Document, Record, RecordKey, Revision, Span, State
from refdesk.stores.sqlite.driver import Row, Value

if TYPE_CHECKING:
    from refdesk.model import EmbeddedPassage, EmbeddingModel


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document ready to be written: everything that takes time is done before the store is locked."""

    collection: Collection
    id: str
    version: int
    text_digest: str
    columns: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class RenewedTerms:
    """A document's text, analysed anew because what was stored could not be used."""

    key: int
    written: int
    terms: bytes
    analysis: int


def encode_document(document: Document, terms: bytes, analysis: int) -> DocumentRow:
    """Return the document as a row, with its analysed text.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    collection = document.collection
    check_texts(collection.org, collection.toolset, document.id, document.title, document.body, document.author)
    columns = {
        "version": document.version,
        "state": document.state.value,
        "created_at": encode_instant(document.created_at),
        "modified_at": encode_instant(document.modified_at),
        "digest": document.digest,
        "text_digest": document.text_digest,
        "author": document.author,
        "title": document.title,
        "body": document.body,
        "facets": encode_json(document.facets),
        "spans": encode_json({name: encode_spans(spans) for name, spans in document.spans.items()}),
        "data": encode_json(document.data),
        **encode_terms_columns(terms, analysis),
    }
    return DocumentRow(collection, document.id, document.version, document.text_digest, columns)


def encode_terms_columns(terms: bytes, analysis: int) -> dict[str, int | bytes]:
    """Return the columns that hold a document's analysed text."""
    return {"terms": terms, "analysis": analysis, "terms_check": zlib.crc32(terms)}


def decode_document(collection: Collection, id: str, row: Row) -> Document:
    """Return the document of a row.

    Args:
        row: version, state, created_at, modified_at, author, title, facets, spans, body, data.
    """
    version, state, created_at, modified_at, author, title, facets, spans, body, data = row
    return Document(
        collection=collection,
        id=id,
        title=title,
        body=body,
        author=author,
        created_at=decode_instant(created_at),
        modified_at=decode_instant(modified_at),
        facets=decode_facets(facets),
        spans=decode_spans(spans),
        state=State(state),
        version=version,
        data=json.loads(data),
    )


def decode_revision(collection: Collection, id: str, row: Row) -> Revision:
    """Return the revision of a row: recorded_at, then what `decode_document` reads."""
    return Revision(decode_document(collection, id, row[1:]), decode_instant(row[0]))


def decode_facets(text: str) -> dict[str, tuple[str, ...]]:
    """Return facets as a document has them."""
    return {name: tuple(values) for name, values in cast("dict[str, list[str]]", json.loads(text)).items()}


def decode_spans(text: str) -> dict[str, tuple[Span, ...]]:
    """Return spans as a document has them."""
    return {
        name: tuple(Span(decode_instant(start), decode_instant(end)) for start, end in spans)
        for name, spans in cast("dict[str, list[tuple[int, int]]]", json.loads(text)).items()
    }


def encode_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[tuple[int, int, bytes]]:
    """Return (start, end, little-endian half floats) of each passage.

    Raises:
        InvalidInputError: A vector has not the model's width, or a component is not a finite number.
    """
    for passage in passages:
        if passage.vector.shape != (model.dimensions,) or not np.isfinite(passage.vector).all():
            raise InvalidInputError("A vector's width is not that of its model, or a component is not a finite number.")
    return [(passage.start, passage.end, passage.vector.astype("<f2").tobytes()) for passage in passages]


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
    return Record(RecordKey(org, kind, name), json.loads(value), None if due_at is None else decode_instant(due_at))
