"""Searches knowledge entries: candidates are ranked, and a superseded entry leads to its replacement.

A superseded entry is never shown as current; if its wording matches, the head of its chain is shown in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from refdesk.core import tracing
from refdesk.core.search import matching
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.providers import ALWAYS
from refdesk.core.search.reranking import rerank
from refdesk.core.search.snippets import snippet
from refdesk.core.writing import supersession
from refdesk.kit.cautions import get_cautions
from refdesk.model import And, Filter, FindRequest, HasAll, HasId, InState, Not, Or, Overlaps, State
from refdesk.toolsets.knowledge import TOOLSET_NAME, models
from refdesk.toolsets.knowledge.options import get_options
from refdesk.toolsets.knowledge.ranking import is_in_words, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from refdesk.core.background.embedding import EmbeddingStatus
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.providers import Period
    from refdesk.core.search.semantics import SemanticStatus
    from refdesk.model import Candidate, Collection, Document, Found, TextQuery, VectorQuery
    from refdesk.toolsets.knowledge.models import KnowledgeResult, SearchInput

DEPTH = 100
"""How many entries of each list are fused at first; more if superseded ones leave the page short."""

GROWTH = 4


@dataclass(frozen=True, slots=True)
class Match:
    """An entry found.

    Attributes:
        id: The entry that is shown: the head of its chain, unless superseded ones are wanted.
        score: Fused, in (0, 1].
        placed_by: The id of the entry that earned it its place: its own, or that of an entry it superseded.
        passage: Offsets of the best passage in the body (start, end in code points).
        cosine: The cosine of the entry that earned it its place; `None` if that has no vector.
        matched_via: The id of the superseded entry whose wording matched.
        strength: How well it matches by itself; see `matching.judge`.
    """

    id: str
    score: float
    placed_by: str
    passage: tuple[int, int] | None
    cosine: float | None = None
    matched_via: str | None = None
    strength: float = 0.0


@dataclass(frozen=True, slots=True)
class _Places:
    """The entries to show, in order.

    Attributes:
        ranked: For each entry to show, best first: its id, its score, and the candidate that earned it its place.
        own: By id, the candidates that are shown themselves, not a replacement.
    """

    ranked: Sequence[tuple[str, float, Candidate]]
    own: Mapping[str, Candidate]

    def get_match(self, place: tuple[str, float, Candidate]) -> Match:
        """Return the match of a place, explained by the entry's own words if they match, else by an old entry's."""
        head, score, found = place
        own = self.own.get(head)
        if own is not None and (own.id == found.id or is_in_words(own) or own.title_contains):
            return Match(head, score, found.id, own.passage, found.cosine)
        return Match(head, score, found.id, None, found.cosine, matched_via=found.id)


@dataclass(frozen=True, slots=True)
class Matches:
    """What was found.

    Attributes:
        text: The query.
        best: The entries to show, best first, each with its document.
        candidates: All candidates they were chosen from.
        trust: How much vectors count (see `VectorQuery`).
        semantic: Whether vectors took part, and if not, why.
    """

    text: TextQuery
    best: list[tuple[Match, Document]]
    candidates: Sequence[Candidate]
    trust: float
    semantic: SemanticStatus


async def search(
    base: KnowledgeBase, collection: Collection, asked: SearchInput
) -> tuple[list[KnowledgeResult], SemanticStatus]:
    """Return the best entries of a collection, ties newest first, then by id, and whether vectors took part.

    If nothing is found while the model is still loading, wait for it and search again.
    """
    found = await find(base, collection, asked)
    if not found.best and found.semantic == "loading" and base.semantics is not None:
        await base.semantics.get_ready()
        found = await find(base, collection, asked)
    statuses = await _get_statuses(base, collection, [match for match, _ in found.best])
    shown = [document for _, document in found.best]
    heads = await supersession.find_heads(base.store, shown)
    ids = [document.id for document in shown]
    cautions = await get_cautions(base.store, collection.org, collection.toolset, ids, shown)
    results = [
        models.to_result(
            document,
            snippet=snippet(document.body, found.text, match.passage),
            score=round(match.score, 6),
            status=status,
            head_id=heads[document.id],
            matched_via=match.matched_via,
            how=matching.name(match.strength),
            caution=caution,
        )
        for (match, document), status, caution in zip(found.best, statuses, cautions, strict=True)
    ]
    return results, found.semantic


@tracing.spanned("search", toolset=TOOLSET_NAME)
async def find(base: KnowledgeBase, collection: Collection, asked: SearchInput, period: Period = ALWAYS) -> Matches:
    """Return the best entries of a collection that were created in a period, at most `asked.limit`."""
    text = parse_query(asked.query)
    vector, status = await base.embed_query(asked.query, collection.org)
    trust, scale = (vector.trust, vector.scale) if vector is not None else (1.0, None)
    now, depth, seen = base.clock.now(), DEPTH, -1
    while True:
        wanted = _get_filter(asked, period, now)
        found = await base.store.find(_find_request(collection, asked, wanted, text, vector, depth))
        in_order = rank(found.candidates, text, get_options(base).fusion, trust, scale)
        in_order = await rerank(base.store, base.reranker, collection, asked.query, in_order)
        ranked = await _name_heads(base, collection, asked, in_order)
        places = await _resolve(base, collection, asked, wanted, ranked)
        if len(places.ranked) >= asked.limit or len(found.candidates) == seen:
            judge = partial(_judge, text, vector)
            best = await _read(base, collection, asked, period, places, found, judge)
            is_narrow = bool(asked.tags) or period.is_bounded
            if vector is not None and await _is_unembedded(base, collection, vector, found, is_narrow=is_narrow):
                status = "missing"
            return Matches(text, best, found.candidates, trust, status)
        depth, seen = depth * GROWTH, len(found.candidates)


async def _is_unembedded(
    base: KnowledgeBase, collection: Collection, vector: VectorQuery, found: Found, *, is_narrow: bool
) -> bool:
    """Return whether there is something to find, but none of it has a vector yet."""
    if found.candidates or is_narrow:
        return bool(found.candidates) and all(each.cosine is None for each in found.candidates)
    return bool(await base.store.get_unembedded(collection, vector.model, 1))


async def _get_statuses(base: KnowledgeBase, collection: Collection, matches: Sequence[Match]) -> list[EmbeddingStatus]:
    """Return each entry's status; the store is asked only about entries whose own vector was not just compared."""
    unknown = [match.id for match in matches if match.cosine is None or match.placed_by != match.id]
    asked = await base.get_embedding_statuses(collection, unknown) if unknown else []
    known = dict(zip(unknown, asked, strict=True))
    return [known.get(match.id, "ready") for match in matches]


def _judge(text: TextQuery, vector: VectorQuery | None, match: Match, entry: Document) -> Match:
    scale = vector.scale if vector is not None else None
    strength = matching.judge(text, entry.title, entry.body, match.cosine, scale, match.passage)
    # `replace` would take three times as long, and every hit is judged.
    placed = (match.id, match.score, match.placed_by, match.passage, match.cosine, match.matched_via)
    return Match(*placed, strength)


def _find_request(
    collection: Collection,
    asked: SearchInput,
    wanted: Filter,
    text: TextQuery,
    vector: VectorQuery | None,
    depth: int,
) -> FindRequest:
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
        shown=asked.limit,
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


async def _name_heads(
    base: KnowledgeBase, collection: Collection, asked: SearchInput, ranked: Sequence[tuple[Candidate, float]]
) -> Sequence[tuple[Candidate, float]]:
    """Set the head of each superseded candidate to the present head of its chain, which it may not know itself."""
    if asked.include_superseded:
        return ranked
    noted = {candidate.id: candidate.head_id for candidate, _ in ranked if candidate.head_id is not None}
    if not noted:
        return ranked
    heads = await supersession.find_heads_of(base.store, collection, noted)
    return [(each._replace(head_id=heads.get(each.id)), score) for each, score in ranked]


async def _resolve(
    base: KnowledgeBase,
    collection: Collection,
    asked: SearchInput,
    wanted: Filter,
    ranked: Sequence[tuple[Candidate, float]],
) -> _Places:
    """Replace each superseded entry by the head of its chain; each head appears once, at its best place."""
    if asked.include_superseded or not any(candidate.head_id for candidate, _ in ranked):
        shown = {candidate.id: candidate for candidate, _ in ranked}
        return _Places([(candidate.id, score, candidate) for candidate, score in ranked], shown)
    own = {candidate.id: candidate for candidate, _ in ranked if candidate.head_id is None}
    passing = {*own, *await _find_passing_heads(base, collection, wanted, ranked)}
    places: dict[str, tuple[str, float, Candidate]] = {}
    for candidate, score in ranked:
        head = candidate.head_id or candidate.id
        if head in passing:
            places.setdefault(head, (head, score, candidate))
    return _Places(list(places.values()), own)


async def _find_passing_heads(
    base: KnowledgeBase, collection: Collection, wanted: Filter, ranked: Sequence[tuple[Candidate, float]]
) -> list[str]:
    """Return the heads of superseded candidates that are not candidates themselves but pass the filter."""
    found = {candidate.id for candidate, _ in ranked}
    heads = {candidate.head_id: None for candidate, _ in ranked if candidate.head_id not in found}
    ids = tuple(head for head in heads if head is not None)
    if not ids:
        return []
    where = And((HasId(ids), InState((State.CURRENT,)), wanted))
    passing = await base.store.find(FindRequest(collection, where=where, depth=len(ids), order=(), counts=False))
    return [candidate.id for candidate in passing.candidates]


async def _read(
    base: KnowledgeBase,
    collection: Collection,
    asked: SearchInput,
    period: Period,
    places: _Places,
    found: Found,
    judge: Callable[[Match, Document], Match],
) -> list[tuple[Match, Document]]:
    """Return the first `asked.limit` matches that are good enough, with their documents, without those that have
    changed meanwhile and no longer pass the filter."""
    shown: list[tuple[Match, Document]] = []
    waiting = [place for place in places.ranked if place[1] >= asked.min_score]
    while waiting and len(shown) < asked.limit:
        piece = [places.get_match(place) for place in waiting[: asked.limit - len(shown)]]
        del waiting[: len(piece)]
        documents = await base.get(collection, [match.id for match in piece], found)
        pairs = zip(piece, documents, strict=True)
        there = [(judge(match, one), one) for match, one in pairs if one and _passes(one, asked, period, base)]
        shown += [(match, one) for match, one in there if _is_good_enough(match, asked)]
    return shown


def _is_good_enough(match: Match, asked: SearchInput) -> bool:
    """Return whether a match is more than weak, if a minimum score was asked for: the first hit scores high anyway."""
    return asked.min_score == 0.0 or matching.name(match.strength) != "weak"


def _passes(document: Document, asked: SearchInput, period: Period, base: KnowledgeBase) -> bool:
    if asked.include_superseded:
        return True
    if document.state is not State.CURRENT or not period.covers(document.created_at):
        return False
    expiry = models.get_expiry(document)
    is_live = asked.include_expired or expiry is None or expiry > base.clock.now()
    return is_live and set(asked.tags) <= set(models.get_tags(document))
