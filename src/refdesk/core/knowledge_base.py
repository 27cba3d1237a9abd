"""The core's face: what operations call. It knows the ports and no engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refdesk.core import retrieval
from refdesk.core.clock import SystemClock
from refdesk.core.identifiers import Uuid7Identifiers
from refdesk.model import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.retrieval import SearchRequest, SearchResult
    from refdesk.core.semantics import Semantics
    from refdesk.model import Collection, Document, Revision
    from refdesk.protocols import Clock, Identifiers, Store


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """Everything known, in every collection.

    Attributes:
        semantics: Where question vectors come from; `None` where search is lexical only.
    """

    store: Store
    semantics: Semantics | None = None
    clock: Clock = field(default_factory=SystemClock)
    identifiers: Identifiers = field(default_factory=Uuid7Identifiers)

    async def search(self, request: SearchRequest) -> SearchResult:
        """Return one page of what matches, best first. See `retrieval.search`."""
        return await retrieval.search(self.store, self.semantics, request)

    async def get(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """Return one entry per id, in the order asked; `None` where there is none or it was withdrawn."""
        documents = await self.store.get_documents(collection, ids)
        return [d if d is not None and d.state is not State.WITHDRAWN else None for d in documents]

    async def get_history(self, collection: Collection, id: str) -> list[Revision]:
        """Return every version of a document, the present one last; empty when there never was one."""
        return await self.store.get_revisions(collection, id)
