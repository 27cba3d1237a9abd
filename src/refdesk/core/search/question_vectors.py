"""A cache of query embeddings, so that paging, repeated and federated queries embed each query once; and of embeddings
of texts that sources without vectors find."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from refdesk.model import EmbeddingModel, Vector
    from refdesk.protocols import Embedder

    Key: TypeAlias = tuple[EmbeddingModel, str, str]

MOST_REMEMBERED = 1000
"""Most queries that are cached, of all orgs together: 1.5 MB of the packaged model's vectors."""


@dataclass(slots=True)
class _Turn:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class QuestionVectors:
    """Embeds queries and caches the most recent embeddings.

    Cached vectors are used only for the same org, so that response times do not reveal what another org has asked.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._vectors: OrderedDict[Key, Vector] = OrderedDict()
        self._passages: OrderedDict[Key, Vector] = OrderedDict()
        self._turns: dict[Key, _Turn] = {}

    def find(self, embedder: Embedder, text: str, asker: str) -> Vector | None:
        """Return the question's vector if it is cached."""
        key = (embedder.model, asker, text)
        known = self._vectors.get(key)
        if known is not None:
            self._vectors.move_to_end(key)
        return known

    async def get(self, embedder: Embedder, text: str, asker: str) -> Vector:
        """Return the question's vector. If several ask the same at once, one embeds it and the others wait.

        Args:
            asker: The org.

        Raises:
            EmbedderError: It could not be embedded; the next caller tries again.
        """
        if (known := self.find(embedder, text, asker)) is not None:
            return known
        key = (embedder.model, asker, text)
        async with self._take_turn(key):
            vector = self._vectors.get(key)
            if vector is None:
                vector = self._vectors[key] = await embedder.embed_query(text)
            self._vectors.move_to_end(key)
            if len(self._vectors) > self._most:
                self._vectors.popitem(last=False)
            return vector

    async def get_passages(self, embedder: Embedder, texts: Sequence[str], asker: str) -> list[Vector]:
        """Return the vectors of texts that were found elsewhere, in order; they are cached in the same way.

        Raises:
            EmbedderError: They could not be embedded.
        """
        keys = [(embedder.model, asker, text) for text in texts]
        missing = [key for key in dict.fromkeys(keys) if key not in self._passages]
        made = await embedder.embed_passages([text for *_, text in missing]) if missing else []
        known = {key: self._passages[key] for key in keys if key in self._passages}
        known.update(zip(missing, made, strict=True))
        for key, vector in known.items():
            self._passages[key] = vector
            self._passages.move_to_end(key)
        while len(self._passages) > self._most:
            self._passages.popitem(last=False)
        return [known[key] for key in keys]

    @asynccontextmanager
    async def _take_turn(self, key: Key) -> AsyncGenerator[None, None]:
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]
