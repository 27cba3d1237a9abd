"""The reference engine: dictionaries and brute force, so plain that it can be checked by reading.

Every other engine is held to it by the conformance suite. Nothing survives the process.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never, cast

import anyio
import numpy as np

from refdesk.core import bm25
from refdesk.core.analysis import analyse
from refdesk.core.clock import SystemClock
from refdesk.errors import ConflictError, InvalidInputError
from refdesk.model import (
    And,
    Candidate,
    Collection,
    CollectionStatistics,
    Document,
    EmbeddedPassage,
    EmbeddingModel,
    FacetCount,
    Filter,
    FindRequest,
    Found,
    HasAll,
    HasAny,
    InState,
    Link,
    Not,
    Or,
    Overlaps,
    Record,
    RecordKey,
    Reference,
    Revision,
    SortKey,
    Span,
    State,
    TextQuery,
    Vector,
    VectorQuery,
    facet_key,
)

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from refdesk.protocols import Clock

Key: TypeAlias = "tuple[Collection, str]"
T = TypeVar("T")


@dataclass(slots=True)
class _Content:
    documents: dict[Key, Document] = field(default_factory=dict[Key, Document])
    revisions: dict[Key, tuple[Revision, ...]] = field(default_factory=dict[Key, "tuple[Revision, ...]"])
    vectors: dict[tuple[str, Key], tuple[EmbeddedPassage, ...]] = field(
        default_factory=dict["tuple[str, Key]", "tuple[EmbeddedPassage, ...]"]
    )
    links: dict[tuple[str, Reference, str, Reference], Link] = field(
        default_factory=dict["tuple[str, Reference, str, Reference]", Link]
    )
    records: dict[RecordKey, Record] = field(default_factory=dict[RecordKey, Record])

    def copy(self) -> _Content:
        return _Content(*(dict(getattr(self, each.name)) for each in fields(self)))


class _MemoryReader:
    def __init__(self, content: _Content) -> None:
        self._content = content

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        return [self._content.documents.get((collection, id)) for id in ids]

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        return list(self._content.revisions.get((collection, id), ()))

    async def get_digests(self, collection: Collection) -> Mapping[str, str]:
        """See `Reader.get_digests`."""
        return {document.id: document.digest for document in _get_living(self._content, collection)}

    async def get_unembedded(self, collection: Collection, model: str, limit: int) -> list[str]:
        """See `Reader.get_unembedded`."""
        living = (document.id for document in _get_living(self._content, collection))
        return sorted(id for id in living if not self._content.vectors.get((model, (collection, id))))[:limit]

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        return frozenset(id for id in ids if self._content.vectors.get((model, (collection, id))))

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        links = [
            link for link in self._content.links.values() if link.org == org and reference in (link.source, link.target)
        ]
        return sorted(links, key=_get_link_order)

    async def get_record(self, key: RecordKey) -> Record | None:
        """See `Reader.get_record`."""
        return self._content.records.get(key)

    async def list_records(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Record]:
        """See `Reader.list_records`."""
        records = [
            record
            for record in self._content.records.values()
            if record.key.kind == kind
            and (org is None or record.key.org == org)
            and (due_until is None or (record.due_at is not None and record.due_at <= due_until))
        ]
        return sorted(records, key=_get_record_order)[:limit]


class MemoryTransaction(_MemoryReader):
    """See `Transaction`. Works on a copy that the store takes over when the block is left without an exception."""

    def __init__(self, content: _Content, clock: Clock) -> None:
        super().__init__(content)
        self._clock = clock

    async def put_documents(self, documents: Sequence[Document]) -> None:
        """See `Transaction.put_documents`."""
        stored = [_copy_document(document) for document in documents]
        self._refuse_conflicts(stored)
        now = self._clock.now()
        for document in stored:
            key = (document.collection, document.id)
            previous = self._content.documents.get(key)
            if previous is not None and previous.text_digest != document.text_digest:
                self._remove_vectors_of(key)
            self._content.documents[key] = document
            self._content.revisions[key] = (*self._content.revisions.get(key, ()), Revision(document, now))

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

    async def remove_vectors(self, model: str) -> int:
        """See `Transaction.remove_vectors`."""
        removed = [key for key, passages in self._content.vectors.items() if key[0] == model and passages]
        self._content.vectors = {key: each for key, each in self._content.vectors.items() if key[0] != model}
        return len(removed)

    async def put_links(self, links: Sequence[Link]) -> None:
        """See `Transaction.put_links`."""
        for link in links:
            _refuse_unstorable([link.org, link.kind, *_get_names(link.source), *_get_names(link.target)])
            self._content.links.setdefault((link.org, link.source, link.kind, link.target), link)

    async def put_records(self, records: Sequence[Record]) -> None:
        """See `Transaction.put_records`."""
        for record in records:
            _refuse_unstorable([record.key.org, record.key.kind, record.key.name])
            self._content.records[record.key] = replace(record, value=_copy_json(record.value))

    async def remove_records(self, keys: Sequence[RecordKey]) -> None:
        """See `Transaction.remove_records`."""
        for key in keys:
            self._content.records.pop(key, None)

    def _refuse_conflicts(self, documents: Iterable[Document]) -> None:
        versions = {key: document.version for key, document in self._content.documents.items()}
        for document in documents:
            key = (document.collection, document.id)
            if document.version != versions.get(key, 0) + 1:
                raise ConflictError("The document changed since it was read: read it again and repeat the change.")
            versions[key] = document.version

    def _remove_vectors_of(self, key: Key) -> None:
        self._content.vectors = {each: value for each, value in self._content.vectors.items() if each[1] != key}


class MemoryStore(_MemoryReader):
    """See `Store`."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(_Content())
        self._clock = clock or SystemClock()
        self._lock = anyio.Lock()

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

    async def find(self, request: FindRequest) -> Found:
        """See `Store.find`."""
        return _find(self._content, request)

    async def get_statistics(self) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        collections = sorted({collection for collection, _ in self._content.documents})
        return [_count(self._content, collection) for collection in collections]

    async def check(self) -> None:
        """See `Store.check`. Memory can always be read and written."""

    async def list_documents(self, after: Key | None, limit: int) -> list[Key]:
        """See `Archive.list_documents`."""
        return sorted(key for key in self._content.documents if after is None or key > after)[:limit]

    async def get_vectors(self, collection: Collection, id: str) -> list[tuple[EmbeddingModel, list[EmbeddedPassage]]]:
        """See `Archive.get_vectors`."""
        found = {name: kept for (name, key), kept in self._content.vectors.items() if key == (collection, id) and kept}
        return [(EmbeddingModel(name, len(found[name][0].vector)), list(found[name])) for name in sorted(found)]

    async def list_links(self, after: Link | None, limit: int) -> list[Link]:
        """See `Archive.list_links`."""
        links = sorted(self._content.links.values(), key=_get_link_key)
        return [link for link in links if after is None or _get_link_key(link) > _get_link_key(after)][:limit]

    async def list_all_records(self, after: RecordKey | None, limit: int) -> list[Record]:
        """See `Archive.list_all_records`."""
        keys = sorted(self._content.records, key=_get_record_key)
        later = [key for key in keys if after is None or _get_record_key(key) > _get_record_key(after)]
        return [self._content.records[key] for key in later[:limit]]


def _get_living(content: _Content, collection: Collection) -> list[Document]:
    return [
        document
        for document in content.documents.values()
        if document.collection == collection and document.state is not State.WITHDRAWN
    ]


def _get_names(reference: Reference) -> tuple[str, str]:
    return reference.toolset, reference.id


def _get_link_order(link: Link) -> SupportsRichComparison:
    return link.created_at, link.kind, _get_names(link.source), _get_names(link.target)


def _get_link_key(link: Link) -> tuple[str, ...]:
    return link.org, *_get_names(link.source), link.kind, *_get_names(link.target)


def _get_record_key(key: RecordKey) -> tuple[str, str, str]:
    return key.org, key.kind, key.name


def _get_record_order(record: Record) -> SupportsRichComparison:
    due = (record.due_at is None, record.due_at.timestamp() if record.due_at else 0.0)
    return *due, record.key.org, record.key.name


def _copy_document(document: Document) -> Document:
    texts = [document.collection.org, document.collection.toolset, document.id, document.title, document.body]
    names = [*document.facets, *(value for values in document.facets.values() for value in values), *document.spans]
    _refuse_unstorable([*texts, document.author, *names])
    return replace(
        document,
        facets={name: tuple(values) for name, values in document.facets.items()},
        spans={name: tuple(spans) for name, spans in document.spans.items()},
        data=_copy_json(document.data),
    )


def _copy_json(value: T) -> T:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("A value cannot be written as JSON.") from error
    copy = json.loads(text)
    _refuse_unstorable([copy])
    return copy


def _refuse_unstorable(values: Iterable[object]) -> None:
    """Return when no text within the values holds a NUL or half of a surrogate pair: no engine can keep those."""
    for value in values:
        if isinstance(value, str):
            if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in value):
                raise InvalidInputError("A text holds a NUL or a lone surrogate, which cannot be stored.")
        elif isinstance(value, Mapping):
            pairs = cast("Mapping[object, object]", value).items()
            _refuse_unstorable(item for pair in pairs for item in pair)
        elif isinstance(value, list):
            _refuse_unstorable(cast("list[object]", value))


def _round(vector: Vector, model: EmbeddingModel) -> Vector:
    """Return the vector as every engine keeps it, in half precision."""
    if vector.shape != (model.dimensions,) or not np.isfinite(vector).all():
        raise InvalidInputError("A vector's width is not that of its model, or a component is not a finite number.")
    return vector.astype(np.float16).astype(np.float32)


def _count(content: _Content, collection: Collection) -> CollectionStatistics:
    states = Counter(document.state for key, document in content.documents.items() if key[0] == collection)
    living = {document.id for document in _get_living(content, collection)}
    embedded = Counter(
        model
        for (model, (owner, id)), passages in content.vectors.items()
        if owner == collection and id in living and passages
    )
    return CollectionStatistics(collection, {state: states[state] for state in State}, dict(embedded))


def _matches(document: Document, condition: Filter) -> bool:
    match condition:
        case HasAll(facet, values):
            return _get_facet_keys(document, facet).issuperset(map(facet_key, values))
        case HasAny(facet, values):
            return not _get_facet_keys(document, facet).isdisjoint(map(facet_key, values))
        case Overlaps(names, since, until):
            spans = (span for name in names for span in document.spans.get(name, ()))
            return any(_touches(span, since, until) for span in spans)
        case InState(states):
            return document.state in states
        case Not(inner):
            return not _matches(document, inner)
        case And(conditions):
            return all(_matches(document, each) for each in conditions)
        case Or(conditions):
            return any(_matches(document, each) for each in conditions)
        case _:
            assert_never(condition)


def _get_facet_keys(document: Document, facet: str) -> set[str]:
    return {facet_key(value) for value in document.facets.get(facet, ())}


def _touches(span: Span, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or span.end >= since) and (until is None or span.start <= until)


@lru_cache(maxsize=1 << 14)
def _get_terms(text: str) -> tuple[str, ...]:
    return tuple(analyse(text))


@lru_cache(maxsize=1 << 14)
def _weigh(title: str, body: str) -> Mapping[str, int]:
    counts = Counter(_get_terms(body))
    for term in _get_terms(title):
        counts[term] += bm25.TITLE_WEIGHT
    return counts


class _Scorer:
    """BM25 of one query over all living documents of a collection, whether or not they pass the filter."""

    def __init__(self, documents: Sequence[Document], text: TextQuery) -> None:
        self._text = text
        asked = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
        weights = [_weigh(document.title, document.body) for document in documents]
        self._mean_length = sum(each.total() for each in map(Counter, weights)) / max(len(documents), 1)
        self._idf = {term: bm25.idf(len(documents), sum(term in each for each in weights)) for term in asked}

    def score(self, document: Document) -> float:
        counts = _weigh(document.title, document.body)
        length = sum(counts.values())
        return sum(
            bm25.term_score(counts.get(term, 0), length, self._mean_length, idf) for term, idf in self._idf.items()
        )

    def has_all_terms(self, document: Document) -> bool:
        return all(term in _weigh(document.title, document.body) for term in self._text.terms)

    def is_match(self, document: Document) -> bool:
        counts = _weigh(document.title, document.body)
        some_term = any(term in counts for term in self._text.terms) or bool(
            not self._text.terms and self._text.phrases
        )
        return some_term and all(_has_phrase(document, phrase) for phrase in self._text.phrases)


def _has_phrase(document: Document, phrase: tuple[str, ...]) -> bool:
    return any(
        terms[start : start + len(phrase)] == phrase
        for terms in (_get_terms(document.title), _get_terms(document.body))
        for start in range(len(terms))
    )


def _find(content: _Content, request: FindRequest) -> Found:
    living = _get_living(content, request.collection)
    passing = [each for each in living if request.where is None or _matches(each, request.where)]
    scorer = _Scorer(living, request.text) if request.text else None
    matching = [each for each in passing if _is_match(each, request, scorer)]
    candidates = {each.id: _make_candidate(content, each, request, scorer) for each in passing}
    listed = [each.id for each in _sort(matching, candidates, request.order)[: request.depth]]
    joining = {*_get_nearest(candidates, request.depth), *_get_titled(candidates, request.depth)}.difference(listed)
    listed += sorted(joining, key=lambda id: _get_nearness(candidates[id]))
    counted = {facet: _count_facet(matching, facet) for facet in request.facets}
    return Found(tuple(map(candidates.__getitem__, listed)), len(matching), counted)


def _is_match(document: Document, request: FindRequest, scorer: _Scorer | None) -> bool:
    return scorer.is_match(document) if scorer else request.vector is None


def _make_candidate(content: _Content, document: Document, request: FindRequest, scorer: _Scorer | None) -> Candidate:
    candidate = Candidate(document.id, document.modified_at)
    if scorer:
        candidate = replace(candidate, lexical=scorer.score(document), all_terms=scorer.has_all_terms(document))
    if request.title_contains is not None:
        is_titled = facet_key(request.title_contains) in facet_key(document.title)
        candidate = replace(candidate, title_contains=is_titled)
    if request.vector is not None:
        passages = content.vectors.get((request.vector.model, (document.collection, document.id)))
        candidate = _compare(candidate, request.vector, passages) if passages else candidate
    return candidate


def _compare(candidate: Candidate, query: VectorQuery, passages: Sequence[EmbeddedPassage]) -> Candidate:
    cosines = [float(passage.vector @ query.vector) for passage in passages]
    best = max(range(len(passages)), key=cosines.__getitem__)
    cosine = min(1.0, max(-1.0, cosines[best]))
    return replace(candidate, cosine=cosine, passage=(passages[best].start, passages[best].end))


def _sort(
    documents: Iterable[Document], candidates: Mapping[str, Candidate], order: Sequence[SortKey]
) -> list[Document]:
    ordered = sorted(documents, key=lambda document: document.id)
    for key in reversed(order):
        ordered.sort(key=lambda each: _get_sort_value(each, candidates[each.id], key), reverse=key.descending)
    return ordered


def _get_sort_value(document: Document, candidate: Candidate, key: SortKey) -> SupportsRichComparison:
    values: dict[str, SupportsRichComparison] = {
        "all_terms": candidate.all_terms,
        "lexical": candidate.lexical,
        "modified": document.modified_at,
        "created": document.created_at,
        "title": facet_key(document.title),
        "id": document.id,
    }
    return values[key.by]


def _get_nearest(candidates: Mapping[str, Candidate], depth: int) -> list[str]:
    near = [candidate for candidate in candidates.values() if candidate.cosine is not None]
    return [candidate.id for candidate in sorted(near, key=_get_nearness)[:depth]]


def _get_titled(candidates: Mapping[str, Candidate], depth: int) -> list[str]:
    titled = sorted((each for each in candidates.values() if each.title_contains), key=lambda each: each.id)
    titled.sort(key=lambda each: each.modified_at, reverse=True)
    return [candidate.id for candidate in titled[:depth]]


def _get_nearness(candidate: Candidate) -> SupportsRichComparison:
    return candidate.cosine is None, -(candidate.cosine or 0.0), candidate.id


def _count_facet(documents: Iterable[Document], facet: str) -> tuple[FacetCount, ...]:
    holders: Counter[str] = Counter()
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        holders.update(_get_facet_keys(document, facet))
        for value in document.facets.get(facet, ()):
            spellings[facet_key(value)][value] += 1
    counts = [FacetCount(_get_usual(spellings[key]), count) for key, count in holders.items()]
    return tuple(sorted(counts, key=lambda each: (-each.count, each.value)))


def _get_usual(spellings: Counter[str]) -> str:
    return min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
