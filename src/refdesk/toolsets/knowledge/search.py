"""How the knowledge toolset ranks: three lists fused by reciprocal rank; superseded wording leads to what holds.

The lists are the nearest by meaning, the best by words, and the newest entries whose title contains the question.
An entry that is superseded is never shown as current; when its wording matches, its chain's head stands in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.search import fusion
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.federation import ALWAYS
from refdesk.core.search.snippets import snippet
from refdesk.core.writing import supersession
from refdesk.model import And, Filter, FindRequest, HasAll, InState, Not, Or, Overlaps, State
from refdesk.toolsets.knowledge import models

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.federation import Period
    from refdesk.model import Candidate, Collection, Document, TextQuery, VectorQuery
    from refdesk.toolsets.knowledge.models import KnowledgeResult, SearchInput

DEPTH = 100
"""How many entries of each list are fused at first; more when superseded ones leave the page short."""

GROWTH = 4

WEIGHTS = (0.2, 0.8, 0.3)
"""Of the lists by meaning, words and title. With equal ones search falls below BM25 alone on manuals (`make eval`)."""

_VECTOR, _TEXT, _TITLE = range(3)


@dataclass(frozen=True, slots=True)
class Match:
    """An entry found.

    Attributes:
        score: Fused, in (0, 1].
        placed_by: The id of the entry that gave it its place: its own, or that of one which it superseded.
        passage: Where in the body the best passage stands (start, end in code points).
        matched_via: The id of the superseded entry whose wording matched.
    """

    document: Document
    score: float
    placed_by: str
    passage: tuple[int, int] | None
    matched_via: str | None = None


@dataclass(frozen=True, slots=True)
class Matches:
    """What was found: the entries, best first and maybe more than were asked for, and every candidate for them."""

    best: list[Match]
    candidates: Sequence[Candidate]


async def search(base: KnowledgeBase, collection: Collection, asked: SearchInput) -> list[KnowledgeResult]:
    """Return the best entries of a collection, ties newest first, then by id."""
    text, found = parse_query(asked.query), await find(base, collection, asked)
    best = [match for match in found.best if match.score >= asked.min_score][: asked.limit]
    statuses = await base.get_embedding_statuses(collection, [match.document.id for match in best])
    return [
        models.to_result(
            match.document,
            snippet=snippet(match.document.body, text, match.passage),
            score=round(match.score, 6),
            status=status,
            matched_via=match.matched_via,
        )
        for match, status in zip(best, statuses, strict=True)
    ]


async def find(base: KnowledgeBase, collection: Collection, asked: SearchInput, period: Period = ALWAYS) -> Matches:
    """Return the entries of a collection that were created in a period, at least as many as asked for if there are."""
    text = parse_query(asked.query)
    vector = await base.embed_question(asked.query, collection.org)
    now, depth, seen = base.clock.now(), DEPTH, -1
    while True:
        request = _find_request(collection, asked, period, text, vector, now, depth)
        found = await base.store.find(request)
        matches = await _resolve(base, collection, asked, period, now, rank(found.candidates))
        if len(matches) >= asked.limit or len(found.candidates) == seen:
            return Matches(matches, found.candidates)
        depth, seen = depth * GROWTH, len(found.candidates)


def rank(candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
    """Return the candidates with their fused scores in (0, 1], best first, ties newest first, then by id.

    An entry without a vector is judged by the other lists alone. In the list by words those that hold the question as
    it is written come first, where the engine marks them.
    """
    newest_first = sorted(candidates, key=lambda c: (-c.modified_at.timestamp(), c.id))
    near = [c for c in newest_first if c.cosine is not None]
    lists = [
        [c.id for c in sorted(near, key=lambda c: -(c.cosine or 0.0))],
        [c.id for c in sorted(filter(_is_in_words, newest_first), key=lambda c: (not c.as_written, -c.lexical))],
        [c.id for c in newest_first if c.title_contains],
    ]
    pending = {c.id: (_VECTOR,) for c in candidates if c.cosine is None}
    scores = fusion.reciprocal_rank(lists, weights=WEIGHTS, absent=pending)
    ranked = [(candidate, scores[candidate.id]) for candidate in newest_first if candidate.id in scores]
    return sorted(ranked, key=lambda pair: -pair[1])


def _is_in_words(candidate: Candidate) -> bool:
    return candidate.lexical > 0 or candidate.as_written


def _find_request(
    collection: Collection,
    asked: SearchInput,
    period: Period,
    text: TextQuery,
    vector: VectorQuery | None,
    now: datetime,
    depth: int,
) -> FindRequest:
    wanted = _get_filter(asked, period, now)
    if not asked.include_superseded:
        wanted = Or((And((InState((State.CURRENT,)), wanted)), InState((State.SUPERSEDED,))))
    return FindRequest(
        collection,
        text=text,
        vector=vector,
        where=wanted,
        depth=depth,
        title_contains=asked.query.strip(),
        as_written=asked.query,
        counts=False,
        effort=asked.ef_search,
    )


def _get_filter(asked: SearchInput, period: Period, now: datetime) -> Filter:
    conditions: list[Filter] = []
    if period.is_bounded:
        conditions.append(Overlaps((models.CREATED,), period.since, period.until))
    if asked.tags:
        conditions.append(HasAll(models.TAGS, tuple(asked.tags)))
    if not asked.include_expired:
        conditions.append(Not(Overlaps((models.EXPIRES,), until=now)))
    return And(tuple(conditions))


def _passes(document: Document, asked: SearchInput, period: Period, now: datetime) -> bool:
    if document.state is not State.CURRENT or not period.covers(document.created_at):
        return False
    expiry = models.get_expiry(document)
    is_live = asked.include_expired or expiry is None or expiry > now
    return is_live and set(asked.tags) <= set(models.get_tags(document))


async def _resolve(
    base: KnowledgeBase,
    collection: Collection,
    asked: SearchInput,
    period: Period,
    now: datetime,
    ranked: Sequence[tuple[Candidate, float]],
) -> list[Match]:
    """Put the head of its chain in the place of each superseded entry, each head once, at its best place."""
    documents = await _read(base, collection, [candidate.id for candidate, _ in ranked])
    if asked.include_superseded:
        found = [(documents.get(c.id), c, score) for c, score in ranked]
        return [Match(document, score, c.id, c.passage) for document, c, score in found if document is not None]
    heads = await _read(base, collection, [supersession.get_head_id(document) for document in documents.values()])
    own = {candidate.id: candidate for candidate, _ in ranked}
    matches: dict[str, Match] = {}
    for candidate, score in ranked:
        document = documents.get(candidate.id)
        head = heads.get(supersession.get_head_id(document)) if document is not None else None
        if head is not None and head.id not in matches and _passes(head, asked, period, now):
            matches[head.id] = _match(head, score, candidate, own.get(head.id))
    return list(matches.values())


def _match(head: Document, score: float, found: Candidate, own: Candidate | None) -> Match:
    """Return the head's match. Its own words explain it before an old entry's do."""
    if own is not None and (own.id == found.id or _is_in_words(own) or own.title_contains):
        return Match(head, score, found.id, own.passage)
    return Match(head, score, found.id, None, matched_via=found.id)


async def _read(base: KnowledgeBase, collection: Collection, ids: Sequence[str]) -> Mapping[str, Document]:
    documents = await base.get(collection, list(dict.fromkeys(ids)))
    return {document.id: document for document in documents if document is not None}
