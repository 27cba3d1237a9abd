"""Encodes values as node properties, and decodes them.

Instants are text, ISO 8601 in UTC with microseconds: they sort lexicographically and Cypher's `datetime()` reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from refdesk.core.keeping import rows
from refdesk.core.keeping.encoding import check_texts, encode_json
from refdesk.core.search import analysis, bm25
from refdesk.core.search.analysis import analyse_document
from refdesk.errors import InvalidInputError
from refdesk.model import (
    AuditEntry,
    Collection,
    DateRange,
    Document,
    Link,
    Metadata,
    MetadataKey,
    Reference,
    Revision,
    State,
    facet_key,
)

if TYPE_CHECKING:
    from refdesk.model import EmbeddedPassage, EmbeddingModel

CONTENT = "version, state, created_at, modified_at, author, title, facets, spans, body, data"
"""The properties that make a document, in the order that `decode_document` takes them."""

LONGEST_KEY = 8_000
"""Characters of a title by which it is found and sorted: no text above 32,766 bytes goes into the server's index."""

LONGEST_NAME = 8_000
"""Bytes of what a node is found by, without its namespace: no key above 8,155 bytes goes into the server's index."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document ready to be written: everything that takes time is done before the store is locked.

    Attributes:
        length: The weighted number of terms, as `refdesk.core.search.bm25` counts them; 0 if withdrawn.
    """

    collection: Collection
    id: str
    version: int
    state: State
    text_digest: str
    length: int
    properties: Mapping[str, object]


def encode_instant(instant: datetime) -> str:
    """Return the instant as text that sorts."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def decode_instant(text: str) -> datetime:
    """Return the instant, in UTC."""
    return datetime.fromisoformat(text)


def get_scope(namespace: str, collection: Collection) -> str:
    """Return the word by which the full-text index marks a collection's documents."""
    name = json.dumps([namespace, collection.org, collection.toolset])
    return hashlib.blake2b(name.encode(), digest_size=12).hexdigest()


def get_facet_word(facet: str, value: str) -> str:
    """Return the word by which filters find documents that hold the value, such as `tags=vpn`.

    Raises:
        UnicodeEncodeError: A text holds half of a surrogate pair.
    """
    return f"{quote(facet, safe=' ')}={facet_key(value)}"


def encode_document(document: Document, namespace: str) -> DocumentRow:
    """Return the document as the properties of a node, with its analysed text.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    collection = document.collection
    check_texts(document.title, document.body, document.author)
    _check_names(collection.org, collection.toolset, document.id)
    spans = {name: [_encode_span(span) for span in spans] for name, spans in document.date_ranges.items()}
    properties = {
        "version": document.version,
        "state": document.state.value,
        "created_at": encode_instant(document.created_at),
        "modified_at": encode_instant(document.modified_at),
        "digest": document.digest,
        "text_digest": document.text_digest,
        "author": document.author,
        "title": document.title,
        "title_key": facet_key(document.title)[:LONGEST_KEY],
        "body": document.body,
        "facets": encode_json(document.facets),
        "facet_words": _get_facet_words(document),
        "spans": encode_json(spans),
        "span_names": [name for name, spans in document.date_ranges.items() for _ in spans],
        "span_starts": [start for each in spans.values() for start, _ in each],
        "span_ends": [end for each in spans.values() for _, end in each],
        "data": encode_json(document.data),
    }
    terms = encode_terms(document.title, document.body)
    is_living = document.state is not State.WITHDRAWN
    properties |= {"terms": terms, "scope": get_scope(namespace, collection) if is_living else None}
    length = count_length(terms)
    properties["length"] = length
    return DocumentRow(
        collection,
        document.id,
        document.version,
        document.state,
        document.text_digest,
        length if is_living else 0,
        properties,
    )


def encode_terms(title: str, body: str) -> str:
    """Return the terms of the title, a line feed, and the terms of the body, with blanks between terms."""
    return "\n".join(" ".join(terms) for terms in analyse_document(title, body))


def count_length(terms: str) -> int:
    """Return the weighted length of what `encode_terms` returned."""
    title, body = terms.split("\n")
    return bm25.TITLE_WEIGHT * len(title.split()) + len(body.split())


ANALYSIS_VERSION = analysis.VERSION


def decode_document(collection: Collection, id: str, values: Sequence[Any]) -> Document:
    """Return the document that the values of `CONTENT` describe."""
    return rows.decode_document(collection, id, values, decode_instant)


def decode_revision(collection: Collection, id: str, values: Sequence[Any]) -> Revision:
    """Return the revision that a `recorded_at` and the values of `CONTENT` describe."""
    return rows.decode_revision(collection, id, values, decode_instant)


def encode_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[dict[str, object]]:
    """Return the properties of each passage's node, except for the document that it belongs to.

    `half` is the vector as little-endian half floats, which is authoritative; `vector` is the same as a list for the
    vector index, left out if all components are zero, since such a vector has no direction.

    Raises:
        InvalidInputError: A vector does not have the model's width, or a component is not a finite number.
    """
    rows.check_passages(model, passages)
    return [_encode_passage(number, passage) for number, passage in enumerate(passages)]


def encode_metadata(record: Metadata) -> dict[str, object]:
    """Return a record's properties.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    key = record.key
    _check_names(key.org, key.kind, key.name)
    due_at = None if record.due_at is None else encode_instant(record.due_at)
    return {**encode_key(key), "value": encode_json(record.value), "due_at": due_at}


def encode_key(key: MetadataKey) -> dict[str, object]:
    """Return the properties that identify a record."""
    return {"org": key.org, "kind": key.kind, "name": key.name}


def decode_metadata(values: Sequence[Any]) -> Metadata:
    """Return the record with these values: org, kind, name, due_at and value."""
    return rows.decode_metadata(values, decode_instant)


def encode_audit(entry: AuditEntry) -> dict[str, object]:
    """Return an audit entry's properties.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    _check_names(entry.org)
    chain = {"org": entry.org, "number": entry.number, "previous": entry.previous, "digest": entry.digest}
    return {**chain, "at": encode_instant(entry.at), "act": encode_json(entry.act)}


def decode_audit(values: Sequence[Any]) -> AuditEntry:
    """Return the audit entry with these values: org, number, at, act, previous and digest."""
    return rows.decode_audit(values, decode_instant)


def encode_link(link: Link) -> dict[str, object]:
    """Return a link's ends, and the type and properties of its relationship.

    Raises:
        InvalidInputError: A text in it cannot be stored.
    """
    ends = (link.source.toolset, link.source.id, link.target.toolset, link.target.id)
    check_texts(link.kind)
    for end in (link.source, link.target):
        _check_names(link.org, end.toolset, end.id)
    names = ("source_toolset", "source_id", "target_toolset", "target_id")
    link_type = "".join(sign if sign.isalnum() else "_" for sign in link.kind.upper()) or "LINK"
    properties = {"org": link.org, "kind": link.kind, "type": link_type, "created_at": encode_instant(link.created_at)}
    return {**dict(zip(names, ends, strict=True)), **properties}


def decode_link(org: str, values: Sequence[Any]) -> Link:
    """Return the link with these values: source toolset and id, kind, target toolset and id, created_at."""
    source_toolset, source_id, kind, target_toolset, target_id, created_at = values
    source, target = Reference(source_toolset, source_id), Reference(target_toolset, target_id)
    return Link(org, source, kind, target, decode_instant(created_at))


def _check_names(*names: str) -> None:
    """Check that a node can be stored that is found by these."""
    check_texts(*names)
    size = sum(len(name.encode()) for name in names)
    if size > LONGEST_NAME:
        raise InvalidInputError(
            f"An id or name takes {size} bytes with the org and kind it is in; Neo4j finds nothing by more than "
            f"{LONGEST_NAME}: shorten it."
        )


def _get_facet_words(document: Document) -> list[str]:
    try:
        words = {get_facet_word(name, value) for name, values in document.facets.items() for value in values}
    except UnicodeEncodeError as error:
        raise InvalidInputError("A text holds a lone surrogate, which cannot be stored: leave it out.") from error
    return sorted(words)


def _encode_span(span: DateRange) -> tuple[str, str]:
    return encode_instant(span.start), encode_instant(span.end)


def _encode_passage(number: int, passage: EmbeddedPassage) -> dict[str, object]:
    half = passage.vector.astype("<f2")
    kept = half.astype(np.float32)
    norm = float(np.linalg.norm(kept.astype(np.float64)))
    return {
        "number": number,
        "start": passage.start,
        "end": passage.end,
        "half": half.tobytes(),
        "norm": norm,
        "vector": kept.tolist() if norm else None,
    }
