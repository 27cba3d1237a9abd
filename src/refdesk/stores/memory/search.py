"""Search by brute force over everything in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from refdesk.core.search import bm25
from refdesk.core.search.analysis import analyse_document
from refdesk.core.writing import supersession
from refdesk.model import (
    And,
    AuditEntry,
    Candidate,
    Collection,
    DateRange,
    Document,
    EmbeddedPassage,
    FacetCount,
    Filter,
    FindRequest,
    Found,
    HasAll,
    HasAny,
    HasId,
    InState,
    Link,
    Metadata,
    MetadataKey,
    Not,
    Or,
    Overlaps,
    Reference,
    Revision,
    SortKey,
    State,
    TextQuery,
    VectorQuery,
    facet_key,
)

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison


Key: TypeAlias = "tuple[Collection, str]"
T = TypeVar("T")


@dataclass(slots=True)
class Content:
    """Everything a store holds; the last of a document's revisions is the document.

    Attributes:
        written: The number of the last write of each document; all writes are numbered in one sequence.
    """

    documents: dict[Key, Document] = field(default_factory=dict[Key, Document])
    revisions: dict[Key, tuple[Revision, ...]] = field(default_factory=dict[Key, "tuple[Revision, ...]"])
    vectors: dict[tuple[str, Key], tuple[EmbeddedPassage, ...]] = field(
        default_factory=dict["tuple[str, Key]", "tuple[EmbeddedPassage, ...]"]
    )
    links: dict[tuple[str, Reference, str, Reference], Link] = field(
        default_factory=dict["tuple[str, Reference, str, Reference]", Link]
    )
    records: dict[MetadataKey, Metadata] = field(default_factory=dict[MetadataKey, Metadata])
    audit: dict[tuple[str, int], AuditEntry] = field(default_factory=dict[tuple[str, int], "AuditEntry"])
    written: dict[Key, int] = field(default_factory=dict[Key, int])

    def copy(self) -> Content:
        """Return another content that holds the same."""
        return Content(*(dict(getattr(self, each.name)) for each in fields(self)))


def get_living(content: Content, collection: Collection) -> list[Document]:
    """Return the documents of a collection that are not withdrawn."""
    return [
        document
        for document in content.documents.values()
        if document.collection == collection and document.state is not State.WITHDRAWN
    ]


def _matches(document: Document, condition: Filter) -> bool:
    match condition:
        case HasAll(facet, values):
            return _get_facet_keys(document, facet).issuperset(map(facet_key, values))
        case HasAny(facet, values):
            return not _get_facet_keys(document, facet).isdisjoint(map(facet_key, values))
        case Overlaps(names, since, until):
            ranges = (range_ for name in names for range_ in document.date_ranges.get(name, ()))
            return any(_touches(range_, since, until) for range_ in ranges)
        case InState(states):
            return document.state in states
        case HasId(ids):
            return document.id in ids
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


def _touches(range_: DateRange, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or range_.end >= since) and (until is None or range_.start <= until)


@lru_cache(maxsize=1 << 14)
def _get_terms(title: str, body: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    in_title, in_body = analyse_document(title, body)
    return tuple(in_title), tuple(in_body)


@lru_cache(maxsize=1 << 14)
def _weigh(title: str, body: str) -> Mapping[str, int]:
    in_title, in_body = _get_terms(title, body)
    counts = Counter(in_body)
    for term in in_title:
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
        for terms in _get_terms(document.title, document.body)
        for start in range(len(terms))
    )


def find(content: Content, request: FindRequest) -> Found:
    """See `Store.find`."""
    living = get_living(content, request.collection)
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


def _make_candidate(content: Content, document: Document, request: FindRequest, scorer: _Scorer | None) -> Candidate:
    candidate = Candidate(
        document.id, document.modified_at, state=document.state, head_id=supersession.find_head_id(document)
    )
    if scorer:
        candidate = candidate._replace(lexical=scorer.score(document), all_terms=scorer.has_all_terms(document))
    if request.title_contains is not None:
        is_titled = facet_key(request.title_contains) in facet_key(document.title)
        candidate = candidate._replace(title_contains=is_titled)
    if request.vector is not None:
        passages = content.vectors.get((request.vector.model, (document.collection, document.id)))
        candidate = _compare(candidate, request.vector, passages) if passages else candidate
    return candidate


def _compare(candidate: Candidate, query: VectorQuery, passages: Sequence[EmbeddedPassage]) -> Candidate:
    cosines = [float(passage.vector @ query.vector) for passage in passages]
    best = max(range(len(passages)), key=cosines.__getitem__)
    cosine = min(1.0, max(-1.0, cosines[best]))
    return candidate._replace(cosine=cosine, passage=(passages[best].start, passages[best].end))


def _sort(
    documents: Iterable[Document], candidates: Mapping[str, Candidate], order: Sequence[SortKey]
) -> list[Document]:
    ordered = sorted(documents, key=lambda document: document.id)
    for key in reversed(order):
        ordered.sort(key=lambda each: _get_sort_value(each, candidates[each.id], key), reverse=key.descending)
    return ordered


def _get_sort_value(document: Document, candidate: Candidate, key: SortKey) -> SupportsRichComparison:
    if key.by == "date_range":
        starts = [each.start for each in document.date_ranges.get(key.name, ())]
        return bool(starts) is key.descending, *([min(starts)] if starts else [])
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
