"""Hybrid search in one collection: retrieves candidates and returns a ranked page.

Without vectors the store's own order is kept. With them, the lexical list and the vector list are fused by
`fusion.convex` over the union of both, every candidate having both scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from refdesk.core.search import fusion, matching
from refdesk.core.search.analysis import parse_query
from refdesk.model import BEST_FIRST, FindRequest, Found, SortKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.search.semantics import Semantics, SemanticStatus
    from refdesk.model import Candidate, Collection, CosineScale, Document, FacetCount, Filter, TextQuery, VectorQuery
    from refdesk.protocols import Store

NEAREST = 100
"""How many of the nearest documents the vector list has, whichever page is asked for."""

FUSED = 400
"""How many of the best text matches are fused with it, whichever page is asked for; the rest follow in their order."""

NEWEST_FIRST = (SortKey("modified", descending=True), SortKey("id"))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched.

    Attributes:
        text: As the caller typed it; blank or `None` browses everything that passes `where`.
        semantic: Whether the vector list joins the lexical one.
        order: `None` is relevance with text, newest first without. Any other order sorts the text matches alone.
        lexical_order: The order by relevance if vectors take no part.
        offset: How many hits to leave out, 0 or more.
        limit: Most hits to return, 1 or more.
        facets: Names of facets to count over everything that matches.
        asker: The org that asks; by default that of the collection.
        quotes_bind: Whether words in double quotes must occur. If no document has them, the quotes are ignored.
    """

    collection: Collection
    text: str | None = None
    where: Filter | None = None
    semantic: bool = False
    order: tuple[SortKey, ...] | None = None
    lexical_order: tuple[SortKey, ...] = BEST_FIRST
    offset: int = 0
    limit: int = 10
    facets: tuple[str, ...] = ()
    asker: str | None = None
    quotes_bind: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found.

    Attributes:
        score: In [0, 1], higher is better, comparable within one answer only; 0 if nothing was asked in words.
        lexical: Its BM25 score, 0 if no word of the question occurs in it.
        cosine: Of its best passage, or `None` if no vector took part.
        passage: Offsets of the best passage in the body (start, end in code points).
        strength: How well it matches by itself, see `matching.judge`; 0 if nothing was asked in words.
    """

    document: Document
    score: float
    lexical: float
    cosine: float | None
    passage: tuple[int, int] | None
    strength: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page of what matches.

    Attributes:
        total: How many match in all, over every page.
        semantic: Whether vectors took part, and if they were requested but did not, why.
        quotes_ignored: Whether the quotes were ignored, because they bind but no document has what is in them.
    """

    hits: tuple[Hit, ...]
    total: int
    facets: Mapping[str, tuple[FacetCount, ...]] = field(default_factory=dict[str, "tuple[FacetCount, ...]"])
    semantic: SemanticStatus = "off"
    quotes_ignored: bool = False


async def search(store: Store, semantics: Semantics | None, request: SearchRequest) -> SearchResult:
    """Return one page of what matches `request`, best first."""
    has_text = bool(request.text and request.text.strip())
    text = parse_query(request.text or "", quotes_bind=request.quotes_bind) if has_text else None
    vector, status = await _embed(semantics, request)
    if text is not None and not text.terms and not text.phrases and vector is None:
        return SearchResult((), 0, semantic=status)
    found = await _find(store, request, text, vector)
    if vector is not None and found.candidates and all(each.cosine is None for each in found.candidates):
        vector, status = None, "missing"
        found = await _find(store, request, text, vector)
    if text is not None and text.phrases and not found.total:
        return replace(await search(store, semantics, replace(request, quotes_bind=False)), quotes_ignored=True)
    ranked = _rank(found.candidates, text, vector)
    page = ranked[request.offset : request.offset + request.limit]
    hits = await _hits(store, request, page, vector, found)
    return SearchResult(hits, found.total, found.facets, status)


async def _find(store: Store, request: SearchRequest, text: TextQuery | None, vector: VectorQuery | None) -> Found:
    """Return the candidates: documents with every phrase if there are any, or else text matches and the nearest."""
    if text is not None and text.phrases and vector is not None:
        return await _find_bound(store, request, text, vector)
    found = await store.find(_find_request(request, text, vector))
    return found if vector is None else _keep_nearest(found)


async def _find_bound(store: Store, request: SearchRequest, text: TextQuery, vector: VectorQuery) -> Found:
    """Return the documents that contain every phrase, with or without the other words, with both scores.

    They are found by text alone: a near document may have a lexical score without containing a phrase, because some of
    the words occur elsewhere in it.
    """
    phrases = replace(text, terms=())
    bound = await store.find(_find_request(request, phrases, None))
    if not bound.total:
        return bound
    scored = {each.id: each for each in (await store.find(_find_request(request, phrases, vector))).candidates}
    if text.terms:
        scored |= {each.id: each for each in (await store.find(_find_request(request, text, vector))).candidates}
    return replace(bound, candidates=tuple(scored.get(each.id, each) for each in bound.candidates))


def _rank(
    candidates: Sequence[Candidate], text: TextQuery | None, vector: VectorQuery | None
) -> list[tuple[Candidate, float]]:
    """Return candidates with their scores, in the store's order unless the vector list is fused."""
    if text is None:
        return [(candidate, 0.0) for candidate in candidates]
    if vector is None:
        return list(zip(candidates, fusion.absolute(candidates, text), strict=True))
    matches = [candidate for candidate in candidates if candidate.lexical > 0]
    fused = [*matches[:FUSED], *(candidate for candidate in candidates if candidate.lexical == 0)]
    ranked = list(zip(fused, fusion.absolute(fused, text, trust=vector.trust), strict=True))
    ranked.sort(key=lambda pair: (-pair[1], -pair[0].modified_at.timestamp(), pair[0].id))
    least = ranked[-1][1] if ranked else 0.0
    rest = matches[FUSED:]
    scores = fusion.absolute(rest, text, trust=vector.trust)
    return ranked + [(c, min(least, score)) for c, score in zip(rest, scores, strict=True)]


async def _embed(semantics: Semantics | None, request: SearchRequest) -> tuple[VectorQuery | None, SemanticStatus]:
    if not request.semantic or request.order is not None or not request.text or not request.text.strip():
        return None, "off"
    if semantics is None:
        return None, "unavailable"
    return await semantics.embed_query(request.text, request.asker or request.collection.org)


def _find_request(request: SearchRequest, text: TextQuery | None, vector: VectorQuery | None) -> FindRequest:
    page_end = request.offset + request.limit
    return FindRequest(
        collection=request.collection,
        text=text,
        vector=vector,
        where=request.where,
        depth=page_end if vector is None and not _is_bound(text) else max(page_end, FUSED),
        order=request.order or _choose_order(request, text, vector),
        facets=request.facets,
        shown=0 if request.offset else request.limit,
    )


def _is_bound(text: TextQuery | None) -> bool:
    return text is not None and bool(text.phrases)


def _choose_order(request: SearchRequest, text: TextQuery | None, vector: VectorQuery | None) -> tuple[SortKey, ...]:
    if text is None:
        return NEWEST_FIRST
    return request.lexical_order if vector is None else BEST_FIRST


def _keep_nearest(found: Found) -> Found:
    """Leave out documents that only the vector found and that are not among the `NEAREST`.

    The vector list is then equally long for every page, whatever depth it needed, so `total` and order do not change.
    """
    by_cosine = sorted(found.candidates, key=lambda c: (-(c.cosine if c.cosine is not None else -2.0), c.id))
    nearest = {candidate.id for candidate in by_cosine[:NEAREST]}
    kept = tuple(c for c in found.candidates if c.lexical > 0 or c.id in nearest)
    only_near = sum(1 for candidate in kept if candidate.lexical == 0)
    return replace(found, candidates=kept, total=found.total + only_near)


async def read_documents(
    store: Store, collection: Collection, ids: Sequence[str], found: Found | None = None
) -> list[Document | None]:
    """Return one entry per id, as `Reader.get_documents` does; documents that came with `found` are not read again."""
    known: Mapping[str, Document] = found.documents if found is not None else {}
    missing = [id for id in ids if id not in known]
    read = dict(zip(missing, await store.get_documents(collection, missing), strict=True)) if missing else {}
    return [known[id] if id in known else read[id] for id in ids]


async def _hits(
    store: Store,
    request: SearchRequest,
    page: Sequence[tuple[Candidate, float]],
    vector: VectorQuery | None,
    found: Found,
) -> tuple[Hit, ...]:
    # Quoted words are part of the question too, so hits are judged by all words.
    asked = parse_query(request.text) if request.text and request.text.strip() else None
    scale = vector.scale if vector is not None else None
    documents = await read_documents(store, request.collection, [candidate.id for candidate, _ in page], found)
    return tuple(
        _hit(document, candidate, score, asked, scale)
        for document, (candidate, score) in zip(documents, page, strict=True)
        if document is not None
    )


def _hit(
    document: Document, candidate: Candidate, score: float, asked: TextQuery | None, scale: CosineScale | None
) -> Hit:
    cosine, passage = candidate.cosine, candidate.passage
    strength = 0.0 if asked is None else matching.judge(asked, document.title, document.body, cosine, scale, passage)
    return Hit(document, score, candidate.lexical, cosine, passage, strength)
