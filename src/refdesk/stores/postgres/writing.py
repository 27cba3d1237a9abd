"""The port's `Reader` and `Transaction`, implemented for PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from psycopg.errors import SerializationFailure

from refdesk.errors import CallerError
from refdesk.model import Revision
from refdesk.protocols import OutdatedError
from refdesk.stores.postgres import failures, reads, records, writes
from refdesk.stores.postgres.connections import Scope
from refdesk.stores.postgres.embeddings import Embedded, Vectors
from refdesk.stores.postgres.indexing import Ahead
from refdesk.stores.postgres.known import Knowledge, OrgState
from refdesk.stores.postgres.records import put_metadata
from refdesk.stores.postgres.rows import encode_passages
from refdesk.stores.postgres.transactions import Session

if TYPE_CHECKING:
    from refdesk.model import (
        AuditEntry,
        Collection,
        Document,
        EmbeddedPassage,
        EmbeddingModel,
        Link,
        Metadata,
        MetadataKey,
        Reference,
    )
    from refdesk.protocols import Clock, DocumentVectors


class PostgresReader:
    """See `Reader`."""

    def __init__(self, source: reads.Statements) -> None:
        self._source = source

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        return await reads.get_documents(self._source, collection, ids)

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        return await reads.get_revisions(self._source, collection, id)

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """See `Reader.get_digests`."""
        return await reads.get_digests(self._source, collection)

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """See `Reader.get_unembedded`."""
        return await reads.get_unembedded(self._source, collection, model, limit, since)

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        return await reads.get_embedded(self._source, collection, model, ids)

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        return await reads.get_links(self._source, org, reference)

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return await reads.get_metadata(self._source, key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        return await reads.get_many_metadata(self._source, keys)

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """See `Reader.list_metadata`."""
        return await reads.list_metadata(self._source, kind, org, due_until, limit)

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """See `Reader.get_audit`."""
        return await reads.get_audit(self._source, org, after, limit)

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        return await reads.get_last_audit(self._source, org)


@dataclass(slots=True)
class Seen:
    """What a transaction has read or written and need not read again: the locks of the orgs keep others out."""

    records: dict[MetadataKey, Metadata | None] = field(default_factory=dict["MetadataKey", "Metadata | None"])
    contents: dict[Collection, writes.Content] = field(default_factory=dict["Collection", writes.Content])
    last_audits: dict[str, AuditEntry | None] = field(default_factory=dict[str, "AuditEntry | None"])
    written: list[writes.Content] = field(default_factory=list["writes.Content"])


class PostgresTransaction(PostgresReader):
    """See `Transaction`."""

    def __init__(self, session: Session, clock: Clock, knowledge: Knowledge, *, is_loading: bool) -> None:
        super().__init__(session)
        self._knowledge = knowledge
        self._session = session
        self._clock = clock
        self._is_loading = is_loading
        self._vectors = Vectors(session, is_loading=is_loading)
        self._seen, self._ahead = Seen(), Ahead()
        self._goes_by: str | None = None

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return (await self.get_many_metadata([key]))[0]

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        new = list(dict.fromkeys(key for key in keys if key not in self._seen.records))
        if new:
            self._seen.records.update(zip(new, await reads.get_many_metadata(self._session, new), strict=True))
        return [self._seen.records[key] for key in keys]

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        if org not in self._seen.last_audits:
            self._seen.last_audits[org] = await reads.get_last_audit(self._session, org)
        return self._seen.last_audits[org]

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.expect`."""
        by_collection: defaultdict[Collection, list[str]] = defaultdict(list)
        for document in documents:
            by_collection[document.collection].append(document.id)
        orgs = {key.org for key in keys} | {collection.org for collection in by_collection}
        if len(orgs) != 1 or self._session.has_begun:
            return
        (org,) = orgs
        self._session.is_brief = True
        self._ahead.begin(documents)
        if self._session.is_one_node and await self._go_by_what_is_known(org, documents, keys):
            return
        contents = [writes.Asked(collection, ids) for collection, ids in by_collection.items()]
        asked = [statement for content in contents for statement in content.statements]
        rows = await self._session.send(Scope(org), *asked, *reads.ask_for_metadata(keys))
        for content in contents:
            opened = content.read([rows.pop(0) for _ in content.statements])
            self._seen.contents[content.collection] = opened
            self._seen.last_audits[content.collection.org] = opened.last_audit
        self._seen.records.update(zip(keys, reads.match_metadata(keys, rows), strict=True))

    async def _go_by_what_is_known(self, org: str, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> bool:
        """Require what is known instead of asking for it; return `False` if too little is known."""
        # More may be known, from other transactions, once it is this one's turn.
        await self._session.post(Scope(org))
        state = self._knowledge.get(documents)
        if state is None:
            return False
        collection, ids = documents[0].collection, frozenset(document.id for document in documents)
        await self._session.post(Scope(org), state.require(collection, ids, keys))
        uncounted = state.uncounted[collection]
        self._seen.contents[collection] = writes.Content(
            collection, ids, changes=state.changes, uncounted=uncounted, last_audit=state.last_audit
        )
        self._seen.records.update((key, state.records.get(key)) for key in keys)
        self._seen.last_audits[org] = state.last_audit
        self._goes_by = org
        return True

    def doubt(self, error: Exception) -> None:
        """Forget what is known of the orgs of a transaction that failed.

        Raises:
            OutdatedError: It relied on what no longer holds, or what it was refused for may no longer hold.
        """
        self._forget()
        is_outdated = isinstance(error.__cause__, SerializationFailure)
        if self._goes_by and is_outdated:
            self._knowledge.rest(self._goes_by)
        if self._goes_by and (is_outdated or isinstance(error, CallerError)):
            raise OutdatedError(failures.HELD) from error

    def _forget(self) -> None:
        for org in self._session.orgs:
            self._knowledge.forget(org)

    def remember(self) -> None:
        """Keep what this transaction leaves for the org's next one, if it was brief and wrote to one collection."""
        if not self._session.is_brief:
            self._forget()
        if not self._session.is_brief or len(self._seen.written) != 1:
            return
        content = self._seen.written[0]
        org = content.collection.org
        state = OrgState(
            content.changes or 0,
            {content.collection: content.uncounted or 0},
            self._seen.last_audits.get(org),
            {key: record for key, record in self._seen.records.items() if key.org == org},
        )
        self._knowledge.keep(org, state, has_held=bool(self._goes_by))

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        now = self._clock.now()
        await self.put_revisions([Revision(document, now) for document in documents])

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """See `Transaction.put_revisions`."""
        rows = await writes.prepare(revisions, self._ahead)
        # Vectors that are replaced are subtracted from the counts at once, so these must be up to date.
        await self._vectors.count()
        contents = await writes.put_revisions(self._session, rows, self._seen.contents, is_loading=self._is_loading)
        self._seen.last_audits.update((content.collection.org, content.last_audit) for content in contents)
        self._seen.written += contents

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """See `Transaction.put_vectors`. A withdrawn document counts as gone; vectors are kept in half precision."""
        text = Embedded(id, text_digest, encode_passages(model, passages))
        return bool(await self._vectors.put(collection, model, [text]))

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """See `Transaction.put_all_vectors`. All vectors of a collection and a model are sent together."""
        together: defaultdict[tuple[Collection, EmbeddingModel], list[Embedded]] = defaultdict(list)
        for document, vectors in documents:
            for model, passages in vectors:
                text = Embedded(document.id, document.text_digest, encode_passages(model, passages))
                together[document.collection, model].append(text)
        for (collection, model), texts in together.items():
            await self._vectors.put(collection, model, texts)

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        return await self._vectors.remove(model)

    @property
    def lacks_graph(self) -> bool:
        """Whether it added a model whose graph is still to be built."""
        return self._vectors.lack_graph

    async def count_vectors(self) -> None:
        """Bring the counts of vectors up to date, before the transaction ends."""
        await self._vectors.count()

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.erase_documents`."""
        now = self._clock.now()
        rows = writes.prepare_revisions([Revision(document, now) for document in documents])
        await self._vectors.count()
        self._seen.contents.clear()
        await writes.erase_documents(self._session, rows)

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        await records.put_links(self._session, links)

    async def remove_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.remove_links`."""
        await records.remove_links(self._session, links)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `Transaction.put_audit`."""
        last = {org: end.number if end else 0 for org, end in self._seen.last_audits.items()}
        await records.put_audit(self._session, entries, last)
        for entry in sorted(entries, key=lambda each: each.number):
            self._seen.last_audits[entry.org] = entry

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """See `Transaction.put_metadata`."""
        await put_metadata(self._session, records)
        self._seen.records.update((record.key, record) for record in records)

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.remove_metadata`."""
        await records.remove_metadata(self._session, keys)
        self._seen.records.update(dict.fromkeys(keys))

    async def leave_no_trace(self) -> None:
        """See `Transaction.leave_no_trace`; `scrub` frees all unused room, whether noted or not."""
