"""What embedders behind an API have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from types import TracebackType
from typing import ClassVar, Self

from refdesk.embedders.hosted.client import EmbeddingClient
from refdesk.model import EmbeddingModel, Vector


class HostedEmbedder(ABC):
    """Embeds by a service, with as many texts in a request as it takes.

    Args:
        client: The client of the service; open as long as this is.
        model: The model, named after whatever determines the vectors: service or API, its model and the width.
    """

    batch: ClassVar[int]
    """Most texts in one request."""

    def __init__(self, client: EmbeddingClient, model: EmbeddingModel) -> None:
        self._client = client
        self._model = model

    @property
    def model(self) -> EmbeddingModel:
        """The model that makes the vectors."""
        return self._model

    @property
    def is_ready(self) -> bool:
        """Always true: there is nothing to load."""
        return True

    @property
    def is_remote(self) -> bool:
        """Always true."""
        return True

    def reads(self, text: str) -> bool:
        """Always true: any script is read."""
        return True

    def knows(self, language: str | None) -> bool:
        """Always true: every language counts as known."""
        return True

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, traceback)

    async def load(self) -> None:  # noqa: B027 - none of them has anything to load
        """Return at once: the service is asked when there is something to embed."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order."""
        batches = [texts[start : start + self.batch] for start in range(0, len(texts), self.batch)]
        return list(chain.from_iterable([await self._embed_batch(batch) for batch in batches]))

    @abstractmethod
    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""

    @abstractmethod
    async def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order; there are `batch` texts at most."""
