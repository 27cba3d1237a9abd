"""The bundled embedding model: English, no network, no key.

all-MiniLM-L6-v2 with int8 weights, run in this process. Importing this package is cheap; the model and its runtime
are loaded when first needed, in a worker thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
import regex

from refdesk.core.search.languages import ENGLISH
from refdesk.errors import EmbedderError, MissingDependencyError
from refdesk.kit import memory
from refdesk.model import EmbeddingModel

if TYPE_CHECKING:
    from refdesk.embedders.local.model import SentenceEncoder
    from refdesk.model import Vector

MODEL = EmbeddingModel(name="all-minilm-l6-v2-int8", dimensions=384)

PASSAGE_PIECES = 256
"""Most word pieces read of a passage, as in the model's training."""

QUERY_PIECES = 256
"""Most word pieces read of a question: as many as of a passage, since people describe problems at length."""

_LETTER = regex.compile(r"\p{L}")
_DIGIT = regex.compile(r"\p{N}")
_LATIN_LETTER = regex.compile(r"\p{Latin}")


class Encoder(Protocol):
    """A model in memory; safe to share between threads."""

    def encode(self, text: str, limit: int) -> Vector:
        """Return the vector of the first `limit` pieces of a text, at unit length."""
        ...


class LocalEmbedder:
    """Embeds in worker threads, one text each. Questions have threads of their own, so as not to queue behind passages.

    Args:
        model_path: The ONNX file; `None` for the packaged one. Its digest must be the known one.
        parallel_passages: How many passages are embedded at once; `None` for one per processor, at most four.
        parallel_queries: How many questions are embedded at once; `None` for one per processor.
        cache: The folder that keeps the graph derived from the packaged file; `None` keeps nothing.
    """

    def __init__(
        self,
        model_path: Path | None = None,
        *,
        parallel_passages: int | None = None,
        parallel_queries: int | None = None,
        cache: Path | None = None,
    ) -> None:
        self._model_path, self._cache = model_path, cache
        self._encoder: Encoder | None = None
        self._loading = threading.Lock()
        processors = os.cpu_count() or 1
        self._passage_threads = anyio.CapacityLimiter(parallel_passages or min(4, processors))
        self._query_threads = anyio.CapacityLimiter(parallel_queries or processors)

    @property
    def model(self) -> EmbeddingModel:
        """The packaged model, 384 wide."""
        return MODEL

    @property
    def is_ready(self) -> bool:
        """Whether the model is in memory."""
        return self._encoder is not None

    @property
    def is_remote(self) -> bool:
        """Always false: the model runs in this process."""
        return False

    def reads(self, text: str) -> bool:
        """Whether at least half of the text's letters are Latin, and it has a letter or a digit at all.

        Measurements show that vectors of Chinese mislead (`make eval`). The model knows no emoji: all get one vector.
        """
        letters = len(_LETTER.findall(text))
        return 2 * len(_LATIN_LETTER.findall(text)) >= letters and (letters > 0 or _DIGIT.search(text) is not None)

    def knows(self, language: str | None) -> bool:
        """Whether the language is English or not known."""
        return language in (None, ENGLISH)

    async def __aenter__(self) -> LocalEmbedder:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._encoder = None

    async def load(self) -> None:
        """Load the model unless it is in memory. If a caller is cancelled, the loading goes on for the others.

        Raises:
            EmbedderError: The model file is missing or not the known one; another call tries again.
            MissingDependencyError: ONNX Runtime or the model's package is not installed.
        """
        if self._encoder is None:
            await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True, limiter=self._passage_threads)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order, made from its first `PASSAGE_PIECES` word pieces.

        A call queues no more texts than are embedded at once, so that a small call need not wait for a large one.
        """
        await self.load()
        vectors: dict[int, Vector] = {}
        waiting = iter(enumerate(texts))

        async def encode() -> None:
            for number, text in waiting:
                vectors[number] = await anyio.to_thread.run_sync(
                    self._encode, self._to_passage(text), PASSAGE_PIECES, limiter=self._passage_threads
                )

        async with anyio.create_task_group() as group:
            for _ in range(min(len(texts), int(self._passage_threads.total_tokens))):
                group.start_soon(encode)
        return [self._finish(vectors[number], as_query=False) for number in range(len(texts))]

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, made from its first `QUERY_PIECES` word pieces.

        Vectors are not cached here, where it is not known who asks: fast answers would reveal what others have asked.
        """
        vector = await anyio.to_thread.run_sync(
            self._encode, self._to_query(text), QUERY_PIECES, abandon_on_cancel=True, limiter=self._query_threads
        )
        return self._finish(vector, as_query=True)

    def _to_passage(self, text: str) -> str:
        """Return the text that the model is given for a passage."""
        return text

    def _to_query(self, text: str) -> str:
        """Return the text that the model is given for a question."""
        return text

    def _finish(self, vector: Vector, *, as_query: bool) -> Vector:
        """Return the vector to compare, given the one that the model made."""
        del as_query
        return vector

    def _open(self) -> Encoder:
        """Load the model and return it; raises as `load` does."""
        return _open_encoder(self._model_path, self._cache)

    def _encode(self, text: str, limit: int) -> Vector:
        return (self._encoder or self._load()).encode(text, limit)

    def _load(self) -> Encoder:
        with self._loading:
            if self._encoder is None:
                self._encoder = self._open()
            return self._encoder


def _open_encoder(model_path: Path | None, cache: Path | None) -> SentenceEncoder:
    try:
        from refdesk.embedders.local.model import SentenceEncoder
    except ImportError as error:
        raise MissingDependencyError(
            f"The local embedding model needs the package {error.name}: install refdesk with its dependencies."
        ) from error
    try:
        encoder = SentenceEncoder(model_path, cache=cache)
    except (RuntimeError, ValueError) as error:
        raise EmbedderError("The local embedding model could not be loaded: install refdesk anew.") from error
    memory.give_back()  # deriving its graph takes several times the memory that it keeps
    return encoder
