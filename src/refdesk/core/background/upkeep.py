"""What operators can look at and start by hand: syncs, and the embedding of what is not embedded yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.background.embedding import Failure, Indexer
    from refdesk.core.background.sync_log import SyncReport, SyncStatus
    from refdesk.core.background.syncing import OnProgress, SyncProgress
    from refdesk.core.keys import KeyRing
    from refdesk.model import Collection


@dataclass(frozen=True, slots=True)
class SyncState:
    """How current a toolset is compared with its source.

    Attributes:
        is_due: Whether the next sync is due.
        is_running: Whether some process is syncing it at this moment.
        progress: The progress of that sync, if this process runs it.
    """

    toolset: str
    status: SyncStatus
    is_due: bool
    is_running: bool
    progress: SyncProgress | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The progress of embedding the documents of some orgs.

    Attributes:
        wanted: The model that makes vectors.
        active: The model whose vectors are searched; it differs from `wanted` while all documents are embedded anew.
        documents: How many there are, in all stores, not counting withdrawn ones.
        embedded: How many of them have vectors of `wanted`.
        failures: What could not be embedded, in the order in which it is tried next, those set aside last.
    """

    wanted: str
    active: str
    documents: int
    embedded: int
    failures: tuple[Failure, ...] = ()

    @property
    def is_changing(self) -> bool:
        """Whether all documents are being embedded anew, by a model other than the one whose vectors are searched."""
        return self.wanted != self.active

    @property
    def waiting(self) -> int:
        """How many are still to be embedded, including those that failed."""
        return max(0, self.documents - self.embedded)

    def to_json(self) -> dict[str, str | int]:
        """Return it as plain JSON values, without the failures."""
        counts = {"documents": self.documents, "embedded": self.embedded, "waiting": self.waiting}
        return {"model": self.wanted, "searchedBy": self.active, **counts, "failed": len(self.failures)}


class Upkeep(Protocol):
    """Keeps what is served current, in one process or several."""

    @property
    def keys(self) -> KeyRing:
        """The keys that open it."""
        ...

    async def sync(
        self, toolset: str, on_progress: OnProgress, *, full: bool = False, force: bool = False
    ) -> SyncReport:
        """Bring a toolset up to date with its source; `busy`, and nothing done, if it is being synced already.

        Raises:
            InvalidInputError: It is not served here, or has no source.
            SourceError: The source failed in spite of retries.
        """
        ...

    async def list_syncs(self) -> Sequence[SyncState]:
        """Return the state of every toolset that is served and has a source."""
        ...

    async def get_embedding(self, orgs: frozenset[str] | None = None) -> EmbeddingState:
        """Return the progress of embedding for these orgs, or for all."""
        ...

    async def retry_embeddings(self, orgs: frozenset[str] | None = None, toolset: str | None = None) -> int:
        """Let documents that could not be embedded be tried again at once; return how many there are.

        Only those of these orgs and this toolset, where they are given.
        """
        ...


async def measure(indexers: Sequence[Indexer], orgs: frozenset[str] | None) -> EmbeddingState:
    """Return the progress of embedding in several stores that share their embedder."""
    wanted, found = indexers[0].semantics.wanted.model, [await _count(each, orgs) for each in indexers]
    searched = [(await each.semantics.get_active(), await each.semantics.is_outdated()) for each in indexers]
    # Each store changes by itself: as long as one does, that is what is said.
    active = next((embedder for embedder, is_outdated in searched if is_outdated), searched[0][0])
    failures = [failure for each in indexers for failure in await each.list_failures()]
    return EmbeddingState(
        wanted.name,
        active.model.name if active is not None else "",
        sum(documents for documents, _ in found),
        sum(embedded for _, embedded in found),
        tuple(failure for failure in failures if _is_of(failure.collection, orgs)),
    )


async def _count(indexer: Indexer, orgs: frozenset[str] | None) -> tuple[int, int]:
    counts = [one for one in await indexer.count() if _is_of(one.collection, orgs)]
    return sum(one.documents for one in counts), sum(one.embedded for one in counts)


def _is_of(collection: Collection, orgs: frozenset[str] | None) -> bool:
    return orgs is None or collection.org in orgs
