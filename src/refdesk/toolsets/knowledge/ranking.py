"""The order of knowledge entries that were found: three lists fused by reciprocal rank, or a convex combination.

The lists are the hybrid one (words and meaning, by `fusion.convex`), the keyword list, and the newest entries
whose title contains the question.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from refdesk.core.search import fusion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import Candidate, TextQuery
    from refdesk.toolsets.knowledge.options import Fusion

WEIGHTS = (0.9, 0.1, 0.3)
"""Of the hybrid list, the keyword list and the titles. A semantic list beside the keyword list falls below keyword
search on manuals and dialogues whatever its weight, and gives away a part of what it finds where it is the better one
(decision 0013)."""

_HYBRID = 0

TITLE_ALONE = 0.01
"""The convex score of an entry of which nothing but a part of its title matches."""


def rank(
    candidates: Sequence[Candidate], text: TextQuery, how: Fusion = "rrf", trust: float = 1.0
) -> list[tuple[Candidate, float]]:
    """Return the candidates with their fused scores in (0, 1], best first, ties newest first, then by id.

    Args:
        candidates: All of them.
        text: What was asked.
        how: By ranks or by scores.
        trust: How much vectors count, see `VectorQuery`.
    """
    newest_first = sorted(candidates, key=attrgetter("id"))
    newest_first.sort(key=attrgetter("modified_at"), reverse=True)
    scores = _fuse_scores(newest_first, text, trust) if how == "convex" else _fuse_ranks(newest_first, trust)
    ranked = [(candidate, scores[candidate.id]) for candidate in newest_first if candidate.id in scores]
    return sorted(ranked, key=itemgetter(1), reverse=True)


def is_in_words(candidate: Candidate) -> bool:
    """Return whether words of the question occur in an entry."""
    return candidate.lexical > 0 or candidate.as_written


def _fuse_ranks(newest_first: Sequence[Candidate], trust: float) -> dict[str, float]:
    """Return the scores by reciprocal rank.

    An entry without a vector is scored by keywords alone in the hybrid list. In the keyword list those that hold the
    question as it is written come first, where the engine marks them; it decides alone where nothing has a vector.
    """
    worded = [c for c in newest_first if is_in_words(c)]
    lists = [
        [id for id, _ in sorted(_combine(newest_first, trust).items(), key=itemgetter(1), reverse=True)],
        [c.id for c in sorted(worded, key=attrgetter("as_written", "lexical"), reverse=True)],
        [c.id for c in newest_first if c.title_contains],
    ]
    pending = {c.id: (_HYBRID,) for c in newest_first if c.cosine is None}
    return fusion.reciprocal_rank(lists, weights=WEIGHTS, absent=pending)


def _combine(candidates: Sequence[Candidate], trust: float) -> dict[str, float]:
    """Return the convex scores of those that words or meaning found; of nobody where nothing has a vector."""
    found = [c for c in candidates if c.cosine is not None or c.lexical > 0]
    if all(c.cosine is None for c in found):
        return {}
    weight = fusion.DENSE_WEIGHT * trust
    scores = fusion.convex([c.lexical for c in found], [c.cosine for c in found], weight)
    return {candidate.id: score for candidate, score in zip(found, scores, strict=True)}


def _fuse_scores(candidates: Sequence[Candidate], text: TextQuery, trust: float) -> dict[str, float]:
    scores = zip(candidates, fusion.absolute(candidates, text, trust=trust), strict=True)
    scored = {candidate.id: score or (TITLE_ALONE if candidate.title_contains else 0.0) for candidate, score in scores}
    return {id: score for id, score in scored.items() if score > 0.0}
