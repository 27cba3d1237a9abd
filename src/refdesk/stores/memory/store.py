"""The reference engine: dictionaries and brute force, simple enough to verify by reading.

Every other engine is held to it by the conformance suite. Nothing survives the process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import anyio
import numpy as np

from refdesk.core.clock import SystemClock
from refdesk.errors import ConflictError, InvalidInputError
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
    State,
    StoreNode,
    Vector,
)
from refdesk.stores.memory.search import Content, find, get_living

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from refdesk.protocols import Clock, DocumentVectors

Key: TypeAlias = "tuple[Collection, str]"
T = TypeVar("T")

CHANGED = "The document changed since it was read: read it again and repeat the change."


class _MemoryReader:
    def __init__(self, content: Content) -> None:
        self._content = content

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        return [self._content.documents.get((collection, id)) for id in ids]

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        return list(self._content.revisions.get((collection, id), ()))

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """See `Reader.get_digests`."""
        return {document.id: document.digest for document in get_living(self._content, collection)}

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """See `Reader.get_unembedded`."""
        living = (document.id for document in get_living(self._content, collection))
        new = (id for id in living if self._content.written[collection, id] > int(since or 0))
        return sorted(id for id in new if not self._content.vectors.get((model, (collection, id))))[:limit]

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        return frozenset(id for id in ids if self._content.vectors.get((model, (collection, id))))

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        links = [
            link for link in self._content.links.values() if link.org == org and reference in (link.source, link.target)
        ]
        return sorted(links, key=_get_link_order)

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        return self._content.records.get(key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        return [self._content.records.get(key) for key in keys]

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """See `Reader.list_metadata`."""
        records = [
            record
            for record in self._content.records.values()
            if record.key.kind == kind
            and (org is None or record.key.org == org)
            and (due_until is None or (record.due_at is not None and record.due_at <= due_until))
        ]
        return sorted(records, key=_get_record_order)[:limit]

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """See `Reader.get_audit`."""
        numbers = sorted(number for owner, number in self._content.audit if owner == org and number > after)
        return [self._content.audit[org, number] for number in numbers[:limit]]

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        numbers = [number for owner, number in self._content.audit if owner == org]
        return self._content.audit[org, max(numbers)] if numbers else None


class MemoryTransaction(_MemoryReader):
    """See `Transaction`. It works on a copy that the store takes over when the block ends without an exception."""

    def __init__(self, content: Content, clock: Clock) -> None:
        super().__init__(content)
        self._clock = clock

    async def expect(self, documents: Sequence[Document], keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.expect`."""

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        now = self._clock.now()
        await self.put_revisions([Revision(document, now) for document in documents])

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        """See `Transaction.put_revisions`."""
        stored = [Revision(_copy_document(each.document), each.recorded_at) for each in revisions]
        self._refuse_conflicts(each.document for each in stored)
        for revision in stored:
            document = revision.document
            key = (document.collection, document.id)
            previous = self._content.documents.get(key)
            if previous is not None and previous.text_digest != document.text_digest:
                self._remove_vectors_of(key)
            self._put(document)
            self._content.revisions[key] = (*self._content.revisions.get(key, ()), revision)

    async def put_vectors(
        self,
        collection: Collection,
        id: str,
        model: EmbeddingModel,
        text_digest: str,
        passages: Sequence[EmbeddedPassage],
    ) -> bool:
        """See `Transaction.put_vectors`. A withdrawn document counts as gone."""
        document = self._content.documents.get((collection, id))
        if document is None or document.state is State.WITHDRAWN or document.text_digest != text_digest:
            return False
        kept = tuple(EmbeddedPassage(each.start, each.end, _round(each.vector, model)) for each in passages)
        self._content.vectors[model.name, (collection, id)] = kept
        return True

    async def put_all_vectors(self, documents: Sequence[tuple[Document, DocumentVectors]]) -> None:
        """See `Transaction.put_all_vectors`."""
        for document, vectors in documents:
            for model, passages in vectors:
                await self.put_vectors(document.collection, document.id, model, document.text_digest, passages)

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        removed = [key for key, passages in self._content.vectors.items() if key[0] == model and passages]
        self._content.vectors = {key: each for key, each in self._content.vectors.items() if key[0] != model}
        return len(removed)

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.erase_documents`."""
        stored = [_copy_document(document) for document in documents]
        keys = [(document.collection, document.id) for document in stored]
        for key, document in zip(keys, stored, strict=True):
            previous = self._content.documents.get(key)
            if previous is not None and document.version <= previous.version:
                raise ConflictError(CHANGED)
        for key, document in zip(keys, stored, strict=True):
            self._remove_vectors_of(key)
            self._put(document)
            self._content.revisions[key] = (Revision(document, self._clock.now()),)

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        for link in links:
            _refuse_unstorable([link.org, link.kind, *_get_names(link.source), *_get_names(link.target)])
            self._content.links.setdefault((link.org, link.source, link.kind, link.target), link)

    async def remove_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.remove_links`."""
        for link in links:
            self._content.links.pop((link.org, link.source, link.kind, link.target), None)

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `Transaction.put_audit`."""
        if any((entry.org, entry.number) in self._content.audit for entry in entries):
            raise ConflictError(CHANGED)
        for entry in entries:
            _refuse_unstorable([entry.org])
            self._content.audit[entry.org, entry.number] = replace(entry, act=_copy_json(entry.act))

    async def put_metadata(self, records: Sequence[Metadata]) -> None:
        """See `Transaction.put_metadata`."""
        for record in records:
            _refuse_unstorable([record.key.org, record.key.kind, record.key.name])
            self._content.records[record.key] = replace(record, value=_copy_json(record.value))

    async def remove_metadata(self, keys: Sequence[MetadataKey]) -> None:
        """See `Transaction.remove_metadata`."""
        for key in keys:
            self._content.records.pop(key, None)

    async def leave_no_trace(self) -> None:
        """See `Transaction.leave_no_trace`; there are no files."""

    def _refuse_conflicts(self, documents: Iterable[Document]) -> None:
        versions = {key: document.version for key, document in self._content.documents.items()}
        for document in documents:
            key = (document.collection, document.id)
            if document.version != versions.get(key, 0) + 1:
                raise ConflictError(CHANGED)
            versions[key] = document.version

    def _put(self, document: Document) -> None:
        self._content.documents[document.collection, document.id] = document
        number = 1 + max(self._content.written.values(), default=0)
        self._content.written[document.collection, document.id] = number

    def _remove_vectors_of(self, key: Key) -> None:
        self._content.vectors = {each: value for each, value in self._content.vectors.items() if each[1] != key}


class MemoryStore(_MemoryReader):
    """See `Store`."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(Content())
        self._clock = clock or SystemClock()
        self._lock = anyio.Lock()
        self._commits = 0

    obstacle: str | None = None

    @property
    def engine(self) -> str:
        """See `Store.engine`."""
        return "memory"

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[MemoryTransaction, None]:
        """See `Store.transaction`."""
        async with self._lock:
            content = self._content.copy()
            yield MemoryTransaction(content, self._clock)
            self._content = content
            self._commits += 1

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        return find(self._content, request)

    async def catch_up(self) -> None:
        """See `Store.catch_up`; searches read what is written."""

    async def scrub(self) -> bool:
        """See `Store.scrub`; there are no files."""
        return True

    async def list_nodes(self) -> list[StoreNode]:
        """See `Store.list_nodes`."""
        return []

    async def get_statistics(self, org: str | None = None) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        collections = sorted({collection for collection, _ in self._content.documents})
        return [_count(self._content, collection) for collection in collections if org in (None, collection.org)]

    async def count_embedded(self, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`."""
        marks = await self.list_collections()
        return [each.count(model, marks[each.collection]) for each in await self.get_statistics()]

    async def recount_embedded(self, collection: Collection, model: str) -> None:
        """See `Store.recount_embedded`; all is counted when it is asked for."""

    async def list_models(self) -> list[str]:
        """See `Store.list_models`."""
        return sorted({model for (model, _), passages in self._content.vectors.items() if passages})

    async def list_collections(self) -> Mapping[Collection, str]:
        """See `Store.list_collections`."""
        last: dict[Collection, int] = {}
        for (collection, _), number in self._content.written.items():
            last[collection] = max(number, last.get(collection, 0))
        return {collection: str(number) for collection, number in last.items()}

    async def get_change_mark(self) -> str:
        """See `Store.get_change_mark`."""
        return str(self._commits)

    async def check(self) -> None:
        """See `Store.check`; memory can always be read and written."""

    async def list_documents(self, after: Key | None, limit: int) -> list[Key]:
        """See `Archive.list_documents`."""
        return sorted(key for key in self._content.documents if after is None or key > after)[:limit]

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        """See `Archive.get_histories`."""
        return [await self.get_revisions(collection, id) for id in ids]

    async def get_vectors(self, collection: Collection, ids: Sequence[str]) -> list[DocumentVectors]:
        """See `Archive.get_vectors`."""
        return [_get_vectors(self._content, (collection, id)) for id in ids]

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """See `Archive.list_links`."""
        least = () if after is None else _get_link_key(after)
        links = sorted(self._content.links.values(), key=_get_link_key)
        return [link for link in links if _get_link_key(link) > least][:limit]

    async def list_all_metadata(self, after: MetadataKey | None, limit: int) -> list[Metadata]:
        """See `Archive.list_all_metadata`."""
        least = ("", "", "") if after is None else (after.org, after.kind, after.name)
        records = sorted(self._content.records.values(), key=_get_record_key)
        return [each for each in records if _get_record_key(each) > least][:limit]

    async def list_audited_orgs(self) -> list[str]:
        """See `Archive.list_audited_orgs`."""
        return sorted({org for org, _ in self._content.audit})

    @asynccontextmanager
    async def loading(self) -> AsyncGenerator[None, None]:
        """See `Archive.loading`; nothing is kept that only makes searches fast."""
        yield


def _get_vectors(content: Content, key: Key) -> DocumentVectors:
    found = {model: kept for (model, owner), kept in content.vectors.items() if owner == key and kept}
    return [(EmbeddingModel(model, len(found[model][0].vector)), list(found[model])) for model in sorted(found)]


def _get_names(reference: Reference) -> tuple[str, str]:
    return reference.toolset, reference.id


def _get_link_order(link: Link) -> SupportsRichComparison:
    return link.created_at, link.kind, _get_names(link.source), _get_names(link.target)


def _get_link_key(link: Link) -> tuple[str, ...]:
    return link.org, *_get_names(link.source), link.kind, *_get_names(link.target)


def _get_record_key(record: Metadata) -> tuple[str, str, str]:
    return record.key.org, record.key.kind, record.key.name


def _get_record_order(record: Metadata) -> SupportsRichComparison:
    due = (record.due_at is None, record.due_at.timestamp() if record.due_at else 0.0)
    return *due, record.key.org, record.key.name


def _copy_document(document: Document) -> Document:
    texts = [document.collection.org, document.collection.toolset, document.id, document.title, document.body]
    names = [
        *document.facets,
        *(value for values in document.facets.values() for value in values),
        *document.date_ranges,
    ]
    _refuse_unstorable([*texts, document.author, *names])
    return replace(
        document,
        facets={name: tuple(values) for name, values in document.facets.items()},
        date_ranges={name: tuple(ranges) for name, ranges in document.date_ranges.items()},
        data=_copy_json(document.data),
    )


def _copy_json(value: T) -> T:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "A value cannot be written as JSON: send texts, finite numbers, lists and objects."
        ) from error
    copy = json.loads(text)
    _refuse_unstorable([copy])
    return copy


def _refuse_unstorable(values: Iterable[object]) -> None:
    """Return if no text within the values holds a NUL or half of a surrogate pair: no engine can keep those."""
    for value in values:
        if isinstance(value, str):
            if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in value):
                raise InvalidInputError("A text holds a NUL or a lone surrogate, which cannot be stored: leave it out.")
        elif isinstance(value, Mapping):
            pairs = cast("Mapping[object, object]", value).items()
            _refuse_unstorable(item for pair in pairs for item in pair)
        elif isinstance(value, list):
            _refuse_unstorable(cast("list[object]", value))


def _round(vector: Vector, model: EmbeddingModel) -> Vector:
    """Return the vector as every engine keeps it, in half precision."""
    if vector.shape != (model.dimensions,) or not np.isfinite(vector).all():
        raise InvalidInputError("A vector must have the width of its model, and finite numbers only.")
    return vector.astype(np.float16).astype(np.float32)


def _count(content: Content, collection: Collection) -> CollectionStatistics:
    states = Counter(document.state for key, document in content.documents.items() if key[0] == collection)
    living = {document.id for document in get_living(content, collection)}
    embedded = Counter(
        model
        for (model, (owner, id)), passages in content.vectors.items()
        if owner == collection and id in living and passages
    )
    return CollectionStatistics(collection, {state: states[state] for state in State}, dict(embedded))
