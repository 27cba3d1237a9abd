"""Values as columns and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import numpy as np

from refdesk.errors import InvalidInputError
from refdesk.model import Collection, Document, Record, RecordKey, Revision, Span, State
from refdesk.stores.sqlite.driver import Row, Value

if TYPE_CHECKING:
    from refdesk.model import EmbeddedPassage, EmbeddingModel

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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


def encode_instant(instant: datetime) -> int:
    """Return whole microseconds since 1970-01-01 UTC."""
    return (instant - _EPOCH) // _MICROSECOND


def decode_instant(microseconds: int) -> datetime:
    """Return the instant, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def encode_json(value: object) -> str:
    """Return compact JSON.

    Raises:
        InvalidInputError: It holds a NUL, half of a surrogate pair, a number that is not finite, or no JSON at all.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("A value cannot be written as JSON.") from error
    # Only an escape can stand for a NUL; that it was not a backslash followed by "u0000" needs a closer look.
    if "\\u0000" in text and _holds_nul(value):
        raise InvalidInputError("A text holds a NUL, which cannot be stored.")
    _refuse_surrogates(text)
    return text


def check_texts(*texts: str) -> None:
    """Return when every text can be stored.

    Raises:
        InvalidInputError: One holds a NUL or half of a surrogate pair.
    """
    for text in texts:
        if "\x00" in text:
            raise InvalidInputError("A text holds a NUL, which cannot be stored.")
        _refuse_surrogates(text)


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
        "spans": encode_json({name: _encode_spans(spans) for name, spans in document.spans.items()}),
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


def _encode_spans(spans: Iterable[Span]) -> list[tuple[int, int]]:
    return [(encode_instant(span.start), encode_instant(span.end)) for span in spans]


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError("A text holds a lone surrogate, which cannot be stored.") from error


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return any(_holds_nul(item) for pair in pairs for item in pair)
    if isinstance(value, list | tuple):
        return any(map(_holds_nul, cast("Sequence[object]", value)))
    return False
