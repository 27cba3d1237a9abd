"""The facade of the core: what operations call. It depends on the ports, never on an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refdesk.core import tracing
from refdesk.core.background import embedding
from refdesk.core.clock import SystemClock
from refdesk.core.identifiers import Uuid7Identifiers
from refdesk.core.search import retrieval
from refdesk.model import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.background.embedding import EmbeddingStatus
    from refdesk.core.search.reranking import Reranker
    from refdesk.core.search.retrieval import SearchRequest, SearchResult
    from refdesk.core.search.semantics import Semantics, SemanticStatus
    from refdesk.core.writing.quotas import Quota
    from refdesk.model import Collection, Document, Found, Revision, VectorQuery
    from refdesk.protocols import Clock, Identifiers, JobQueue, Scratchpad, Store


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """Everything known, in every collection.

    Attributes:
        semantics: Where question vectors come from; `None` where search is lexical only.
        quotas: By name; what is not named here is counted but not limited.
        queue: Tells workers what changed; without one they find it the next time they look.
        options: How toolsets are to behave according to the settings, by toolset; each knows its own.
        reranker: Reads the best hits once more, where one was installed; used by `knowledge` alone.
        scratchpad: What is known about calls in other processes; without one each process knows only its own.
    """

    store: Store
    semantics: Semantics | None = None
    clock: Clock = field(default_factory=SystemClock)
    identifiers: Identifiers = field(default_factory=Uuid7Identifiers)
    quotas: Mapping[str, Quota] = field(default_factory=dict[str, "Quota"])
    queue: JobQueue | None = None
    scratchpad: Scratchpad | None = None
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    reranker: Reranker | None = None

    async def search(self, request: SearchRequest) -> SearchResult:
        """Return one page of what matches, best first. See `retrieval.search`."""
        with tracing.span("search", toolset=request.collection.toolset):
            return await retrieval.search(self.store, self.semantics, request)

    async def get(
        self, collection: Collection, ids: Sequence[str], found: Found | None = None
    ) -> list[Document | None]:
        """Return one entry per id, in the order asked; `None` where there is none or it was withdrawn.

        Documents that came with the hits in `found` are not read again.
        """
        documents = await retrieval.read_documents(self.store, collection, ids, found)
        return [d if d is not None and d.state is not State.WITHDRAWN else None for d in documents]

    async def get_history(self, collection: Collection, id: str) -> list[Revision]:
        """Return every version of a document, the present one last; empty if there never was one."""
        return await self.store.get_revisions(collection, id)

    async def embed_question(self, text: str, asker: str) -> VectorQuery | None:
        """Return the vector of an org's question, or `None` where no model is ready; never waits for one to load."""
        return (await self.embed_query(text, asker))[0]

    async def embed_query(self, text: str, asker: str) -> tuple[VectorQuery | None, SemanticStatus]:
        """Return the vector of an org's question, or `None`, and the status: `off` where search is lexical only."""
        return await self.semantics.embed_query(text, asker) if self.semantics is not None else (None, "off")

    async def get_embedding_statuses(self, collection: Collection, ids: Sequence[str]) -> list[EmbeddingStatus]:
        """Return for each document whether its vectors are `ready`, `pending`, or `failed` for good."""
        if self.semantics is None:
            return ["pending" for _ in ids]
        return await embedding.get_statuses(self.store, self.semantics, collection, ids)

    def note_change(self, *documents: Document) -> None:
        """Let the background work look at once for what there is to do, in these documents or in all of them.

        Call it after the commit. It neither waits nor raises.
        """
        if self.queue is not None:
            self.queue.announce([embedding.to_job(document) for document in documents])
        elif self.semantics is not None:
            self.semantics.doorbell.ring()
