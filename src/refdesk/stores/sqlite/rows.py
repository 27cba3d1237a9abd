"""Row encodings beyond those of `refdesk.core.keeping.rows`: analysed text, and vectors as bytes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.keeping import rows
from refdesk.stores.sqlite.checksums import compute_checksum
from refdesk.stores.sqlite.driver import Value

if TYPE_CHECKING:
    from refdesk.model import Collection, Document, EmbeddedPassage, EmbeddingModel

_SHOWN = ("version", "state", "created_at", "modified_at", "author", "title", "facets", "spans", "body", "data")
"""The columns that `rows.decode_document` reads, in its order."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document ready to be written: everything slow is done before the store is locked.

    Attributes:
        checksum: Checksum of all that is shown of it except when it was recorded, which is added last; see `checksums`.
    """

    collection: Collection
    id: str
    version: int
    text_digest: str
    checksum: int
    columns: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class RenewedTerms:
    """A document's text, analysed again because the stored terms were unusable."""

    key: int
    written: int
    terms: bytes
    analysis: int


def encode_document(document: Document, terms: bytes, analysis: int) -> DocumentRow:
    """Return the document as a row, with its analysed text.

    Raises:
        InvalidInputError: A text or value in it cannot be stored.
    """
    own, place = rows.encode_document(document), (document.collection.org, document.collection.toolset, document.id)
    checksum = compute_checksum(*place, *(own[name] for name in _SHOWN))
    columns = {**own, **encode_terms_columns(terms, analysis)}
    return DocumentRow(document.collection, document.id, document.version, document.text_digest, checksum, columns)


def encode_terms_columns(terms: bytes, analysis: int) -> dict[str, int | bytes]:
    """Return the columns that hold a document's analysed text."""
    return {"terms": terms, "analysis": analysis, "terms_check": zlib.crc32(terms)}


def encode_passages(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[tuple[int, int, bytes]]:
    """Return (start, end, little-endian half floats) of each passage.

    Raises:
        InvalidInputError: A vector does not have the model's width, or a component is not a finite number.
    """
    rows.check_passages(model, passages)
    return [(passage.start, passage.end, passage.vector.astype("<f2").tobytes()) for passage in passages]
