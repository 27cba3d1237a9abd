"""The ports: the interfaces between the core and the outside. The conformance suites check every sentence of them.

Everything is opened with `async with`, safe for concurrent use from one event loop, and raises only `refdesk.errors`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from refdesk.errors import StoreError

if TYPE_CHECKING:
    from refdesk.model import (
        AuditEntry,
        Collection,
        CollectionStatistics,
        Document,
        EmbeddedCount,
        EmbeddedPassage,
        EmbeddingModel,
        FindRequest,
        Found,
        Link,
        Metadata,
        MetadataKey,
        Reference,
        Revision,
        StoreNode,
        Vector,
    )

DocumentVectors: TypeAlias = "list[tuple[EmbeddingModel, list[EmbeddedPassage]]]"
"""A document's vectors of each model, by the model's name."""


class Clock(Protocol):
    """Where instants come from."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        ...


class Identifiers(Protocol):
    """Where ids come from."""

    def new(self) -> str:
        """Return a new id: a UUID as text, version 7, so that ids sort by age."""
        ...


class Reader(Protocol):
    """Reads from the store. Outside a transaction each call sees every commit made before it, by any process."""

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """Return one entry per id, in the order asked; `None` where there is none. Withdrawn documents are returned."""
        ...

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """Return every version of a document, the present one last; empty if there never was one."""
        ...

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """Return id → `Document.digest` of every document that is not withdrawn."""
        ...

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """Return ids of at most `limit` documents, not withdrawn, without vectors of `model`, by id.

        With a mark that `Store.list_collections` returned, only what was written since is returned, and only that read.
        """
        ...

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """Return those of `ids` whose documents have vectors of `model`."""
        ...

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """Return the links that start or end at `reference`, oldest first, ties by kind, source, target."""
        ...

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """Return the record, whether or not it is due, or `None`."""
        ...

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """Return one entry per key, in the order asked, as `get_metadata` returns it."""
        ...

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """Return at most `limit` records of a kind, soonest due first (never due last), ties by org and name.

        All orgs only for the server's own work (jobs, sweeps), never for a caller; due by `due_until` if it is given.
        """
        ...

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """Return at most `limit` entries of an org's audit log with a number above `after`, by number."""
        ...

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """Return the entry with the highest number, or `None` if there is none yet."""
        ...


class OutdatedError(StoreError):
    """A transaction relied on what its process knew, but another process has written since; nothing was written.

    Whoever began the transaction repeats all of it, so callers never get this error.
    """


class Transaction(Reader, Protocol):
    """Reads and writes that happen together or not at all.

    Its reads see its own writes, and no other transaction can change what it has read before it ends. Leaving the block
    commits, and returns once the commit is durable; leaving it by an exception undoes everything.
    """

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """Announce everything that a brief transaction of one org will write, and the records that it will read.

        Called before anything else; changes nothing. An engine behind a network reads all of it at once, and brief
        transactions that wait in line for one org may share a commit: each is undone alone, and all return once that
        commit is durable. It may also rely on what this process wrote last, and have that checked with the writes.

        Raises:
            OutdatedError: On leaving the block: another process has written since. Nothing was written: repeat all.
        """
        ...

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """Add or replace documents. A replaced version is kept and stays readable by `get_revisions`.

        A version with the same title and body as the next one does not take a second copy of the body. Vectors stay if
        `text_digest` is unchanged, and are removed if it changed. Each write adds one to the store's change sequence,
        in the same commit.

        Raises:
            ConflictError: A `version` is not the stored one plus one (or 1 for a new document); nothing is written.
        """
        ...

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """Add versions that were recorded elsewhere, each with its own instant; otherwise as `put_documents`.

        Raises:
            ConflictError: As there, but some may be written: let the transaction be undone.
        """
        ...

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """Set a document's vectors of one model, replacing those of that model; return whether they were kept.
        `False` (and nothing written) if the document is gone or its text has changed.
        """
        ...

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """Set the vectors of documents as `put_vectors` does, leaving out those for which it would return `False`."""
        ...

    async def remove_vectors(self, model: str) -> int:
        """Remove every vector of a model, in all collections; return how many documents had any."""
        ...

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """Put documents, all withdrawn, in place of everything kept under their ids: every version and every vector.

        A single version of each is left; its number must be above the stored one, whatever that is. Links stay.

        Raises:
            ConflictError: A `version` is not above the stored one; nothing is written.
        """
        ...

    async def put_links(self, links: Sequence[Link]) -> None:
        """Add links. One with the same org, source, kind and target is left as it was."""
        ...

    async def remove_links(self, links: Sequence[Link]) -> None:
        """Remove links, whatever their instant. Removing one that is not there is not an error."""
        ...

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries to the audit log as they are. There is no way to change or remove one.

        Raises:
            ConflictError: The org's log already has an entry with that number; nothing is written.
        """
        ...

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """Add or replace records."""
        ...

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """Remove records. Removing one that is not there is not an error."""
        ...

    async def leave_no_trace(self) -> None:
        """Record, with the commit, that `scrub` is to overwrite what this transaction removes or replaces."""
        ...


class Archive(Protocol):
    """What moving a store to another engine requires: reading everything, piece by piece, and writing much.

    Each list is in an order of the engine's own, and continues after a given entry (`None`: from the start). What is
    written meanwhile may or may not be seen.
    """

    async def list_documents(self, after: tuple[Collection, str] | None, limit: int) -> list[tuple[Collection, str]]:
        """Return collection and id of at most `limit` documents, in whatever state."""
        ...

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        """Return every version of each document, in the order asked; see `Reader.get_revisions`."""
        ...

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        """Return the vectors of each document, in the order asked."""
        ...

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """Return at most `limit` links of all orgs."""
        ...

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        """Return at most `limit` records of every kind and org."""
        ...

    async def list_audited_orgs(self) -> list[str]:
        """Return the orgs that have an audit log, in order."""
        ...

    def loading(self) -> AbstractAsyncContextManager[None]:
        """Announce that much is written inside the block: work that only makes searches fast may be left for its end.

        Writes and searches work as always; a search may take longer. The work left is done on leaving the block, even
        by an exception, and if that fails or the process ends, when the store is next opened.

        Raises:
            StoreError: The work could not be done; what was written stays.
        """
        ...


class Store(Reader, Archive, Protocol):
    """What every storage engine must do. Nothing acknowledged is ever lost; nothing half-written is ever seen."""

    @property
    def engine(self) -> str:
        """The engine's name and version, for people."""
        ...

    @property
    def obstacle(self) -> str | None:
        """Why the store can only be read and not written, in a sentence; `None` if it can be written."""
        ...

    async def list_nodes(self) -> list[StoreNode]:
        """Return the servers that the store is spread over or copied to, in order; empty if it is in one place."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction. Those that reach the same org run one after another, across processes.

        Raises:
            StoreError: The engine failed, or another process held the store too long. A failed commit does not prove
                that nothing was written: repeat only what is idempotent.
        """
        ...

    async def find(self, request: FindRequest) -> Found:
        """Return the documents that match, with exact scores. See `FindRequest` and `Found`.

        Sees every commit made before the call, by any process. BM25 has k1 = 1.2, b = 0.4 and a title weight of 2 (a
        word in the title counts as two words of one text); its frequencies and lengths leave out withdrawn documents.
        """
        ...

    async def catch_up(self) -> None:
        """Begin work that the next searches would have to do first, if it is much; a serving process calls it once."""
        ...

    async def scrub(self) -> bool:
        """Overwrite what is left in the engine's files of what was erased or removed; may take as long as reading all.
        Return whether nothing of it is left there now, apart from the engine's own logs of what it did.

        Raises:
            StoreError: It could not be done now. An engine that can do it does it when the store is next opened.
        """
        ...

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        """Return the counts of every collection that holds a document, of one org or of all, in order.

        Every document may be looked at: for what is asked again and again there is `count_embedded`.
        """
        ...

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """Return how much of each collection that holds a document has vectors of a model, in order.

        An engine for many orgs counts as it writes, so that no document is looked at here.
        """
        ...

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        """Make what `count_embedded` returns of a collection right again, where an older refdesk that writes beside
        this one did not count."""
        ...

    async def list_models(self) -> list[str]:
        """Return the names of the models of which there are vectors, in order."""
        ...

    async def list_collections(self) -> Mapping[Collection, str]:
        """Return every collection that has, or once had, a document, with its mark; no document is looked at.
        A mark is never empty. It changes whenever a document is written there, and may also change otherwise.
        """
        ...

    async def get_change_mark(self) -> str:
        """Return a text that changes whenever any process has written, erased or embedded a document, and may also
        change otherwise. It costs next to nothing, so it can be read again and again."""
        ...

    async def check(self) -> None:
        """Check that the store can be read and written.

        Raises:
            StoreError: It cannot; the message says why.
        """
        ...


class Embedder(Protocol):
    """Turns text into vectors: unit length, the same text always the same vector."""

    @property
    def model(self) -> EmbeddingModel:
        """The model's name (unique among all embedders) and the width of its vectors."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether embedding can start at once, without loading a model first."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether a service embeds, which may fail, hang or be away."""
        ...

    def reads(self, text: str) -> bool:
        """Return whether the model was made for the script of the text; for others its vectors are misleading."""
        ...

    def knows(self, language: str | None) -> bool:
        """Return whether the model knows a language (ISO 639-1; `None`: not recognised); if not, vectors count less."""
        ...

    async def load(self) -> None:
        """Get ready. Calling it again, or twice at once, loads once.

        Raises:
            EmbedderError: The model is missing or damaged, or its service cannot be reached.
            MissingDependencyError: An optional dependency is not installed.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, in order; loads first if needed. Text beyond the model's window is ignored."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question; loads first if needed."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingJob:
    """A document that is to be embedded.

    Attributes:
        text_digest: `Document.text_digest` when the job was made; empty if it is not known. Of two jobs for the same
            text of the same document, one is enough.
    """

    org: str
    toolset: str
    id: str
    text_digest: str = ""


JobOutcome: TypeAlias = Literal["embedded", "current", "gone", "failed"]
"""The outcome of a job: `current` had its vectors, `gone` is no longer a document, `failed` is tried again later."""


class JobQueue(Protocol):
    """Announces to workers what is to be embedded. It only reduces latency: jobs that it loses are found by polling.

    What is to be done is read from the store; a queue may forget every job, and may hand one out twice.
    """

    @property
    def is_shared(self) -> bool:
        """Whether workers in any process get what is enqueued now; if not, each process finds its own work."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the queue does not work, in a sentence without addresses; `None` if it does."""
        ...

    def announce(self, jobs: Sequence[EmbeddingJob]) -> None:
        """Notify workers at once without waiting; without jobs, that there may be some. Never raises."""
        ...

    async def enqueue(self, jobs: Sequence[EmbeddingJob]) -> bool:
        """Return within seconds whether a worker will get the jobs soon, each once while it waits. Never raises."""
        ...

    async def forget(self, is_meant: Callable[[EmbeddingJob], bool]) -> bool:
        """Forget these jobs, even ended ones; return within seconds whether certainly none is left. Never raises."""
        ...

    async def consume(self, work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]) -> None:
        """Call `work` with jobs, several at a time, until cancelled; return at once if there will never be any.

        A job for which `work` raises a `RefdeskError` is tried again after growing pauses, and dropped after some
        attempts. On cancellation, running jobs have seconds to end; those that do not are handed to another worker.
        """
        ...


class Scratchpad(Protocol):
    """Short notes that every process of a deployment sees, for a while.

    It may lose any note at any time, so nothing may depend on one. It answers within a second and never raises; while
    it is unavailable nothing is kept and nothing is found.
    """

    async def add(self, key: str, note: str, seconds: float) -> str | None:
        """Keep a note unless there is one already; return the existing one, or `None` if there was none."""
        ...

    async def put(self, key: str, note: str, seconds: float) -> None:
        """Keep a note, replacing an existing one."""
        ...

    async def remove(self, key: str) -> None:
        """Forget a note; it need not exist."""
        ...

    async def count(self, key: str, seconds: float) -> int | None:
        """Count once, and return how many there were since the first, less than `seconds` ago; `None` if it cannot."""
        ...
