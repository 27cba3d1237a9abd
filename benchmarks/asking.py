"""Asks the tools themselves the questions of a collection, over a store in a file; vectors come from the cache."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.engines import embed_locally, load
from benchmarks.quality import find_model
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import SearchInput, get_collection
from refdesk.toolsets.knowledge.operations import search_knowledge

if TYPE_CHECKING:
    from benchmarks.quality import Judged
    from refdesk.model import EmbeddingModel, Vector

ORG = "benchmark"
LIMIT = 50


class _KeptEmbedder(LocalEmbedder):
    """A model that has its vectors of certain questions already."""

    def __init__(self, embedder: LocalEmbedder, vectors: Mapping[str, Vector]) -> None:
        super().__init__()
        self._embedder, self._vectors = embedder, vectors

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    def reads(self, text: str) -> bool:
        return self._embedder.reads(text)

    def knows(self, language: str | None) -> bool:
        return self._embedder.knows(language)

    @property
    def is_ready(self) -> bool:
        return True

    async def embed_query(self, text: str) -> Vector:
        kept = self._vectors.get(text)
        return await self._embedder.embed_query(text) if kept is None else kept

    async def load(self) -> None:
        await self._embedder.load()

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedder.embed_passages(texts)


async def ask_search_knowledge(
    collection: Judged, options: Mapping[str, object] | None = None, model: str | None = None
) -> list[list[int]]:
    """Return for each question the numbers of the documents that `search_knowledge` answers, best first.

    Args:
        collection: What is asked about.
        options: Of the toolset.
        model: An installed model that makes the vectors; else the packaged one does.
    """
    vectors, place = embed_locally(collection, model), get_collection(ORG)
    kept = dict(zip(collection.queries, vectors.queries, strict=True))
    embedder = _KeptEmbedder(find_model(model) if model else LocalEmbedder(), kept)
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "store.sqlite3") as store:
            await load(store, place, collection, vectors)
            semantics = Semantics(store, embedder)
            if model:
                await find_scale(semantics, collection.queries[0])
            base = KnowledgeBase(store, semantics, options=options or {})
            context = Context(Principal(ORG, "reader", frozenset({"knowledge:read"})), base)
            answers = [
                await search_knowledge(context, SearchInput.model_validate({"query": query, "limit": LIMIT}))
                for query in collection.queries
            ]
    return [[int(result.id) for result in answer.results] for answer in answers]


async def find_scale(semantics: Semantics, question: str) -> None:
    """Have the scale of a model's cosines measured, as a desk does in the background after the first question."""
    await semantics.wanted.load()
    await semantics.embed_query(question, ORG)
    await semantics.measure_if_asked()
