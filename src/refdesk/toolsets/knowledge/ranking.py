"""Ranks the knowledge entries found: three lists fused by reciprocal rank, or a convex combination of scores.

The lists are the hybrid one (words and meaning, by `fusion.convex`), the keyword list, and the newest entries whose
title contains the question.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from refdesk.core.search import fusion
from refdesk.core.search.cosines import REFERENCE, to_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import Candidate, CosineScale, TextQuery
    from refdesk.toolsets.knowledge.options import Fusion

WEIGHTS = (0.9, 0.1, 0.3)
"""Of the hybrid list, the keyword list and the titles. Fusing a semantic list with the keyword list instead does worse
than keyword search on manuals and dialogues whatever its weight, and loses some of the semantic list's advantage where
that list is the better one (decision 0013)."""

_HYBRID = 0

TITLE_ALONE = 0.01
"""The convex score of an entry that matches only in that its title contains the question."""


def rank(
    candidates: Sequence[Candidate],
    text: TextQuery,
    how: Fusion = "rrf",
    trust: float = 1.0,
    scale: CosineScale | None = None,
) -> list[tuple[Candidate, float]]:
    """Return the candidates with their fused scores in (0, 1], best first, ties newest first, then by id.

    Args:
        candidates: All of them.
        text: The query.
        how: Whether to fuse by ranks or by scores.
        trust: How much vectors count; see `VectorQuery`.
        scale: The scale of the model's cosines, used to convert them: as they are, the cosines of a model that places
            all texts close to each other would say less than words.
    """
    newest_first = sorted(candidates, key=attrgetter("id"))
    newest_first.sort(key=attrgetter("modified_at"), reverse=True)
    placed = newest_first if scale is None or scale == REFERENCE else [_place(each, scale) for each in newest_first]
    scores = _fuse_scores(placed, text, trust) if how == "convex" else _fuse_ranks(placed, trust)
    return sorted([(newest_first[place], score) for place, score in scores.items()], key=itemgetter(1), reverse=True)


def _place(candidate: Candidate, scale: CosineScale) -> Candidate:
    """Return a candidate with the cosine that the packaged model would give it."""
    return candidate if candidate.cosine is None else candidate._replace(cosine=to_reference(candidate.cosine, scale))


def is_in_words(candidate: Candidate) -> bool:
    """Return whether words of the question occur in an entry."""
    return candidate.lexical > 0 or candidate.as_written


def _fuse_ranks(newest_first: Sequence[Candidate], trust: float) -> dict[int, float]:
    """Return the reciprocal-rank scores, keyed by place among the candidates and in that order.

    An entry without a vector is scored by keywords alone in the hybrid list. In the keyword list, entries that contain
    the question as written come first if the engine marks them; if no entry has a vector, there is no hybrid list.
    """
    hybrid = _combine(newest_first, trust)
    worded = {place: c.lexical for place, c in enumerate(newest_first) if c.lexical > 0 or c.as_written}
    by_words = sorted(worded, key=worded.__getitem__, reverse=True)
    lists = [
        sorted(hybrid, key=hybrid.__getitem__, reverse=True),
        sorted(by_words, key=lambda place: newest_first[place].as_written, reverse=True),
        [place for place, c in enumerate(newest_first) if c.title_contains],
    ]
    pending = {place: (_HYBRID,) for place, c in enumerate(newest_first) if c.cosine is None} if hybrid else None
    scores = fusion.reciprocal_rank(lists, weights=WEIGHTS, absent=pending)
    return {place: scores[place] for place in sorted(scores)}


def _combine(candidates: Sequence[Candidate], trust: float) -> dict[int, float]:
    """Return the convex scores, by place, of candidates found by words or meaning; none if nothing has a vector."""
    found = [place for place, c in enumerate(candidates) if c.cosine is not None or c.lexical > 0]
    cosines = [candidates[place].cosine for place in found]
    if all(cosine is None for cosine in cosines):
        return {}
    scores = fusion.convex([candidates[place].lexical for place in found], cosines, fusion.DENSE_WEIGHT * trust)
    return dict(zip(found, scores, strict=True))


def _fuse_scores(candidates: Sequence[Candidate], text: TextQuery, trust: float) -> dict[int, float]:
    scores = zip(candidates, fusion.absolute(candidates, text, trust=trust), strict=True)
    scored = [score or (TITLE_ALONE if candidate.title_contains else 0.0) for candidate, score in scores]
    return {place: score for place, score in enumerate(scored) if score > 0.0}
