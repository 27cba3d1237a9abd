"""The input of an index: one row per document, one per embedded passage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from refdesk.model import DateRange, State


@dataclass(frozen=True, slots=True)
class IndexRow:
    """Everything about a document that searching needs.

    Attributes:
        key: The document's number in the store; stays the same when the document is replaced.
        seq: The change that wrote this version.
        terms: The document's analysed text, made by `encode_terms`.
        head_id: See `refdesk.model.Candidate`.
    """

    key: int
    seq: int
    id: str
    state: State
    created_at: datetime
    modified_at: datetime
    title: str
    facets: Mapping[str, tuple[str, ...]]
    date_ranges: Mapping[str, tuple[DateRange, ...]]
    terms: bytes
    head_id: str | None = None


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One embedded passage of a document.

    Attributes:
        key: The document's number in the store.
        start: Where the passage begins in the body, in code points.
        end: Where it ends.
        vector: Unit length, little-endian float16.
    """

    key: int
    start: int
    end: int
    vector: bytes
