"""Embedding models behind the OpenAI API `POST /embeddings`, at OpenAI or any server that speaks it (Ollama, vLLM)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from refdesk.embedders.hosted.client import FIRST_DELAY_SECONDS, EmbeddingClient
from refdesk.embedders.hosted.embedder import HostedEmbedder
from refdesk.model import EmbeddingModel, JsonValue, Vector

BASE_URL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
DIMENSIONS = 1536

MAX_LENGTH = 8192
"""Most code points of a text that are sent, which is no more than the 8192 tokens of a model can hold."""


class _Item(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Item]


class OpenAIEmbedder(HostedEmbedder):
    """Embeds by a model behind the OpenAI API.

    Args:
        key: The API key; `None` for a server that asks for none.
        model: The model's name.
        dimensions: The width of its vectors; it is requested from the service only if `is_cut`.
        is_cut: Whether to ask the service for vectors cut to `dimensions`, which only some models support.
        base_url: The base URL of the service, with the version.
        first_delay_seconds: See `EmbeddingClient`.
    """

    batch = 128
    """OpenAI allows 2048, local servers fewer."""

    def __init__(
        self,
        key: str | None = None,
        *,
        model: str = MODEL,
        dimensions: int = DIMENSIONS,
        is_cut: bool = False,
        base_url: str = BASE_URL,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        service = "The embedding service"
        client = EmbeddingClient(service, base_url, headers, dimensions, first_delay_seconds=first_delay_seconds)
        super().__init__(client, EmbeddingModel(f"openai-{model}-{dimensions}", dimensions))
        self._name = model
        self._dimensions = dimensions
        self._is_cut = is_cut

    async def embed_query(self, text: str) -> Vector:
        """Return the vector that a passage with the same text has."""
        [vector] = await self._embed_batch([text])
        return vector

    async def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        # The service refuses an empty text.
        inputs = [text[:MAX_LENGTH].strip() or "-" for text in texts]
        body: dict[str, JsonValue] = {"model": self._name, "input": inputs, "encoding_format": "float"}
        if self._is_cut:
            body["dimensions"] = self._dimensions
        return await self._client.embed("embeddings", body, _read_in_order, len(texts))


def _read_in_order(answer: bytes) -> list[list[float]]:
    data = _Answer.model_validate_json(answer).data
    return [item.embedding for item in sorted(data, key=lambda item: item.index)]
