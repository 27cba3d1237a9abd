"""Stores and transactions that pass everything on, for faults to be planted in one call of theirs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Generic, TypeVar

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
)
from refdesk.protocols import DocumentVectors, Reader, Store, Transaction

R = TypeVar("R", bound=Reader)


class DelegatingReader(Generic[R]):
    def __init__(self, inner: R) -> None:
        self.inner = inner

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        return await self.inner.get_documents(collection, ids)

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        return await self.inner.get_revisions(collection, id)

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        return await self.inner.get_digests(collection)

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        return await self.inner.get_unembedded(collection, model, limit, since)

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        return await self.inner.get_embedded(collection, model, ids)

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        return await self.inner.get_links(org, reference)

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        return await self.inner.get_metadata(key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        return await self.inner.get_many_metadata(keys)

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        return await self.inner.list_metadata(kind, org=org, due_until=due_until, limit=limit)

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        return await self.inner.get_audit(org, after, limit)

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        return await self.inner.get_last_audit(org)


class DelegatingTransaction(DelegatingReader[Transaction]):
    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        await self.inner.expect(documents, keys)

    async def put_documents(self, documents: Sequence[Document]) -> None:
        await self.inner.put_documents(documents)

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        await self.inner.put_revisions(revisions)

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        return await self.inner.put_vectors(collection, id, model, text_digest, passages)

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        await self.inner.put_all_vectors(documents)

    async def remove_vectors(self, model: str) -> int:
        return await self.inner.remove_vectors(model)

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        await self.inner.erase_documents(documents)

    async def put_links(self, links: Sequence[Link]) -> None:
        await self.inner.put_links(links)

    async def remove_links(self, links: Sequence[Link]) -> None:
        await self.inner.remove_links(links)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self.inner.put_audit(entries)

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        await self.inner.put_metadata(records)

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        await self.inner.remove_metadata(keys)

    async def leave_no_trace(self) -> None:
        await self.inner.leave_no_trace()


class DelegatingStore(DelegatingReader[Store]):
    @property
    def engine(self) -> str:
        return self.inner.engine

    @property
    def obstacle(self) -> str | None:
        return self.inner.obstacle

    async def list_nodes(self) -> list[StoreNode]:
        return await self.inner.list_nodes()

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Transaction]:
        async with self.inner.transaction() as transaction:
            yield self.wrap(transaction)

    def wrap(self, transaction: Transaction) -> Transaction:
        """Return what a caller gets instead of the transaction."""
        return transaction

    async def find(self, request: FindRequest) -> Found:
        return await self.inner.find(request)

    async def catch_up(self) -> None:
        await self.inner.catch_up()

    async def scrub(self) -> bool:
        return await self.inner.scrub()

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        return await self.inner.get_statistics(org)

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        return await self.inner.count_embedded(model)

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        await self.inner.recount_embedded(collection, model)

    async def list_models(self) -> list[str]:
        return await self.inner.list_models()

    async def list_collections(self) -> Mapping[Collection, str]:
        return await self.inner.list_collections()

    async def get_change_mark(self) -> str:
        return await self.inner.get_change_mark()

    async def check(self) -> None:
        await self.inner.check()

    async def list_documents(self, after: tuple[Collection, str] | None, limit: int) -> list[tuple[Collection, str]]:
        return await self.inner.list_documents(after, limit)

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        return await self.inner.get_histories(collection, ids)

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        return await self.inner.get_vectors(collection, ids)

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        return await self.inner.list_links(after, limit)

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        return await self.inner.list_all_metadata(after, limit)

    async def list_audited_orgs(self) -> list[str]:
        return await self.inner.list_audited_orgs()

    def loading(self) -> AbstractAsyncContextManager[None]:
        return self.inner.loading()
