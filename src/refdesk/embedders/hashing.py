"""Feature hashing: deterministic embeddings without a model, from terms and character n-grams.

Texts are near each other if they share terms or spelling, not meaning. The vectors are the same on every machine, so
this serves tests and machines that cannot run a model. Source of the hashing: Weinberger et al., "Feature Hashing for
Large Scale Multitask Learning" (2009), with their signed hash, under which collisions cancel out on average.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from types import TracebackType
from typing import TYPE_CHECKING
from zlib import crc32

from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.model import EmbeddingModel

if TYPE_CHECKING:
    from refdesk.model import Vector

DIMENSIONS = 256
MODEL = EmbeddingModel(name="hashing-256", dimensions=DIMENSIONS)

_STOP_WEIGHT = 0.1
_PIECE_WEIGHT = 0.3
_PIECE_LENGTH = 3


class HashingEmbedder:
    """Embeds at once, without loading anything."""

    @property
    def model(self) -> EmbeddingModel:
        """The model; its name changes whenever the vectors would."""
        return MODEL

    @property
    def is_ready(self) -> bool:
        """Always true."""
        return True

    @property
    def is_remote(self) -> bool:
        """Always false."""
        return False

    def reads(self, text: str) -> bool:
        """Always true: any script is read."""
        return True

    def knows(self, language: str | None) -> bool:
        """Always true: every language counts as known."""
        return True

    async def __aenter__(self) -> HashingEmbedder:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    async def load(self) -> None:
        """Return at once."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order."""
        return [embed(text) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        """Return the vector that a passage with the same text has."""
        return embed(text)


def embed(text: str) -> Vector:
    """Return the vector of a text; all texts without a word share the vector of the empty text."""
    import numpy as np

    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    for term, count in Counter(analyse(text) or [""]).items():
        weight = sqrt(count) * (_STOP_WEIGHT if term in get_stop_terms() else 1.0)
        for feature, share in _get_features(term):
            digest = crc32(feature.encode())
            vector[digest % DIMENSIONS] += weight * share * (1.0 if digest & 0x80000000 else -1.0)
    vector /= np.linalg.norm(vector)
    return vector


def _get_features(term: str) -> Iterator[tuple[str, float]]:
    """Yield the term and the three-letter pieces of it, marked at both ends, with their weights."""
    yield term, 1.0
    marked = f"<{term}>"
    for start in range(len(marked) - _PIECE_LENGTH + 1):
        yield marked[start : start + _PIECE_LENGTH], _PIECE_WEIGHT
