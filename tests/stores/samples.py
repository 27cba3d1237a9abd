"""Documents, vectors and requests in one line, for every test of the stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from refdesk.core.search.analysis import parse_query
from refdesk.model import (
    Collection,
    DateRange,
    Document,
    EmbeddedPassage,
    EmbeddingModel,
    FindRequest,
    Found,
    Vector,
    VectorQuery,
)
from refdesk.protocols import Store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTES = Collection("acme", "notes")
MODEL = EmbeddingModel("small", 4)


def day(number: int) -> datetime:
    return NOW + timedelta(days=number)


def on(*days: int) -> tuple[DateRange, ...]:
    return tuple(DateRange(day(number), day(number)) for number in days)


def make_document(id: str, body: str = "", title: str = "", **changes: object) -> Document:
    values: dict[str, object] = {
        "collection": NOTES,
        "id": id,
        "title": title,
        "body": body,
        "author": "ann",
        "created_at": NOW,
        "modified_at": NOW,
    }
    return Document(**(values | changes))  # pyright: ignore[reportArgumentType]


def revise(document: Document, **changes: object) -> Document:
    return replace(document, version=document.version + 1, **changes)


def vector(*components: float) -> Vector:
    """Return the direction, at unit length."""
    direction = np.array(components, np.float32)
    return direction / np.float32(np.linalg.norm(direction))


def passage(direction: Sequence[float], start: int = 0, end: int = 1) -> EmbeddedPassage:
    return EmbeddedPassage(start, end, vector(*direction))


def near(direction: Sequence[float], model: str = MODEL.name) -> VectorQuery:
    return VectorQuery(vector(*direction), model)


def asking(text: str | None = None, **changes: object) -> FindRequest:
    values: dict[str, object] = {
        "collection": NOTES,
        "text": None if text is None else parse_query(text, quotes_bind=True),
    }
    return FindRequest(**(values | changes))  # pyright: ignore[reportArgumentType]


async def put(store: Store, *documents: Document) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)


async def embed(store: Store, document: Document, *passages: EmbeddedPassage, model: EmbeddingModel = MODEL) -> bool:
    async with store.transaction() as transaction:
        return await transaction.put_vectors(document.collection, document.id, model, document.text_digest, passages)


async def find_ids(store: Store, request: FindRequest) -> list[str]:
    return get_ids(await store.find(request))


def get_ids(found: Found) -> list[str]:
    return [candidate.id for candidate in found.candidates]


def get_scores(found: Found) -> Mapping[str, float]:
    return {candidate.id: candidate.lexical for candidate in found.candidates}
