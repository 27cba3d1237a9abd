"""Google's Gemini embedding models, over the REST API `v1beta` (`models.embedContent`, `models.batchEmbedContents`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pydantic import BaseModel

from refdesk.embedders.hosted.client import FIRST_DELAY_SECONDS, EmbeddingClient
from refdesk.embedders.hosted.embedder import HostedEmbedder
from refdesk.model import EmbeddingModel, JsonValue, Vector

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
MODEL = "gemini-embedding-001"
DIMENSIONS = 768
"""The model makes 3072 but was trained to be cut to this: a quarter of the space for slightly less quality."""

MAX_LENGTH = 8192
"""Most code points of a text that are sent: the model reads 2048 tokens and ignores the rest."""


class _Embedding(BaseModel):
    values: list[float]


class _Answer(BaseModel):
    embedding: _Embedding


class _BatchAnswer(BaseModel):
    embeddings: list[_Embedding]


TaskType: TypeAlias = Literal["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


class GeminiEmbedder(HostedEmbedder):
    """Embeds by a Gemini model, passages and questions each with their own task type.

    Args:
        key: The API key; sent as a header, so that it appears in no URL and no log.
        model: The model's name without `models/`.
        dimensions: The width to cut vectors to.
        base_url: The base URL of the service, with the version.
        first_delay_seconds: See `EmbeddingClient`.
    """

    batch = 100
    """As many as the service allows."""

    def __init__(
        self,
        key: str,
        *,
        model: str = MODEL,
        dimensions: int = DIMENSIONS,
        base_url: str = BASE_URL,
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        headers = {"x-goog-api-key": key}
        client = EmbeddingClient("Gemini", base_url, headers, dimensions, first_delay_seconds=first_delay_seconds)
        super().__init__(client, EmbeddingModel(f"gemini-{model}-{dimensions}", dimensions))
        self._name = model
        self._dimensions = dimensions

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        path, body = f"models/{self._name}:embedContent", self._build_request(text, "RETRIEVAL_QUERY")
        [vector] = await self._client.embed(path, body, _read_one, 1)
        return vector

    async def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        body = {"requests": [self._build_request(text, "RETRIEVAL_DOCUMENT") for text in texts]}
        return await self._client.embed(f"models/{self._name}:batchEmbedContents", body, _read_batch, len(texts))

    def _build_request(self, text: str, task: TaskType) -> dict[str, JsonValue]:
        return {
            "model": f"models/{self._name}",
            # The service refuses a request without text.
            "content": {"parts": [{"text": text[:MAX_LENGTH].strip() or "-"}]},
            "taskType": task,
            "outputDimensionality": self._dimensions,
        }


def _read_one(answer: bytes) -> list[list[float]]:
    return [_Answer.model_validate_json(answer).embedding.values]


def _read_batch(answer: bytes) -> list[list[float]]:
    return [embedding.values for embedding in _BatchAnswer.model_validate_json(answer).embeddings]
