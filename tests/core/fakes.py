"""Fakes that several core tests share: an embedder that can be made to fail, and documents in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import numpy as np

from refdesk.errors import EmbedderError
from refdesk.model import Collection, Document, EmbeddingModel, Vector

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTES = Collection("acme", "notes")


def make_document(id: str, body: str = "", **changes: object) -> Document:
    values: dict[str, object] = {
        "collection": NOTES,
        "id": id,
        "title": f"Note {id}",
        "body": body or f"Text of {id}.",
        "author": "ann",
        "created_at": NOW,
        "modified_at": NOW,
    }
    return Document(**(values | changes))  # pyright: ignore[reportArgumentType]


@dataclass(slots=True)
class ScriptedEmbedder:
    """Vectors from a hash of the text. It refuses texts with a word of `poison`, and everything while `is_down`.

    Questions wait before its `gate`, where there is one.
    """

    name: str = "scripted-8"
    poison: frozenset[str] = frozenset()
    is_down: bool = False
    is_ready: bool = True
    foreign: frozenset[str] = frozenset()
    known: frozenset[str] | None = None
    loads: int = 0
    failure: EmbedderError | None = None
    seen: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    gate: anyio.Event | None = None
    is_remote: bool = False

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel(self.name, 8)

    def knows(self, language: str | None) -> bool:
        return self.known is None or language is None or language in self.known

    def reads(self, text: str) -> bool:
        return text not in self.foreign

    async def load(self) -> None:
        self.loads += 1
        if self.failure is not None:
            raise self.failure
        self.is_ready = True

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if self.is_down:
            raise EmbedderError("the model is down")
        if any(word in text for text in texts for word in self.poison):
            raise EmbedderError("the model chokes on this")
        self.seen += texts
        return [_vector(self.name + text) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down:
            raise EmbedderError("the model is down")
        return _vector(self.name + text)


def _vector(text: str) -> Vector:
    numbers = np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8).digest(), dtype=np.uint8)
    vector = numbers.astype(np.float32) - 127.5
    return (vector / np.linalg.norm(vector)).astype(np.float32)
