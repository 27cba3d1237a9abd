"""Rank fusion: combines keyword and vector scores into one score in [0, 1].

Sources: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023), for the convex
combination of normalised scores; Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
individual Rank Learning Methods" (2009), for fusion by ranks. Callers order by the score and break ties themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from refdesk.model import Candidate, TextQuery

Entry = TypeVar("Entry", bound=Hashable)

DENSE_WEIGHT = 0.5
"""The weight of the vector scores; on the development collections anything from 0.4 to 0.6 works as well."""

RANK_CONSTANT = 60
"""The constant k of reciprocal ranks, as in the paper: the larger it is, the less the first places stand out."""

_WORDS_TRUST = 0.3
_TYPICAL_TERM_SCORE = 1.3


_KNOWN_TERM_SCORE = _TYPICAL_TERM_SCORE / 2
"""Mean BM25 score of the terms asked from which on words count in full beside the vector; measured with real customers'
first turns over skills, and with questions to a bank, where anything from 0.5 to 0.9 works as well."""


def absolute(
    candidates: Sequence[Candidate], text: TextQuery, dense_weight: float = DENSE_WEIGHT, trust: float = 1.0
) -> list[float]:
    """Return the convex score of each candidate, scaled by how well the question is answered at all; order as `convex`.

    The scale is the `relevance` of the strongest candidate, so the best answer to a question that the collection knows
    nothing about has a low score, and a threshold can reject it. Measured with the local model on four collections,
    each asked its own questions and those of the others: 0.4 lets 96 to 100 % of its own pass and rejects 84 to 97 % of
    the foreign ones. Without vectors the scale is coarser: many foreign words occur somewhere in a large collection.
    A weight other than the default changes only the order: the best answer keeps the best score by the default weight.

    Args:
        candidates: All of them, in any order.
        text: What was asked.
        dense_weight: The weight of the vector scores.
        trust: How much vectors count, see `VectorQuery`.
    """
    words, cosines = [candidate.lexical for candidate in candidates], [candidate.cosine for candidate in candidates]
    scores = convex(words, cosines, DENSE_WEIGHT * trust)
    scale = max((relevance(candidate, text, trust) for candidate in candidates), default=0.0)
    if dense_weight != DENSE_WEIGHT:
        even, scores = max(scores, default=0.0), convex(words, cosines, dense_weight * trust)
        scale *= even / (max(scores, default=0.0) or 1.0)
    return [score * scale for score in scores]


def weigh_vector(candidates: Sequence[Candidate], text: TextQuery) -> float:
    """Return the weight of the vector scores for a question of whose words few may be known to the collection.

    Where each text is short, the best match by words may have only one word of many, and not a telling one. So words
    count less the fewer of them the collection knows; a candidate with every word makes them count in full.
    """
    asked = len(text.terms) + sum(len(phrase) for phrase in text.phrases)
    if any(candidate.all_terms for candidate in candidates):
        return DENSE_WEIGHT
    mean = max((candidate.lexical for candidate in candidates), default=0.0) / max(1, asked)
    return 1.0 - (1.0 - DENSE_WEIGHT) * min(1.0, mean / _KNOWN_TERM_SCORE)


def relevance(candidate: Candidate, text: TextQuery, trust: float = 1.0) -> float:
    """Return how surely a document is about what was asked, in [0, 1], whatever else was found.

    Its words count by the mean BM25 score of the terms asked, and in full if all of them occur; its vector counts by
    the cosine, which words can raise by up to three tenths of what it lacks to 1. Without a vector, words alone decide;
    with one that is trusted less, words decide the rest.
    """
    asked = len(text.terms) + sum(len(phrase) for phrase in text.phrases)
    return _weigh(candidate.lexical / max(1, asked), candidate.all_terms, candidate.cosine, trust)


def _weigh(mean: float, has_all: bool, cosine: float | None, trust: float = 1.0) -> float:
    words = 1.0 if has_all and mean > 0.0 else mean**2 / (mean**2 + _TYPICAL_TERM_SCORE**2)
    if cosine is None:
        return words
    both = 1.0 - (1.0 - min(1.0, max(0.0, cosine))) * (1.0 - _WORDS_TRUST * words)
    return both if trust == 1.0 else words + trust * (both - words)


def convex(lexical: Sequence[float], cosine: Sequence[float | None], dense_weight: float = DENSE_WEIGHT) -> list[float]:
    """Return one score in [0, 1] per candidate: the weighted mean of its two scores, each divided by the best such one.

    A score of 0 or below adds nothing. A kind of score that no candidate has is left out for all, and a candidate
    without a vector (`None`) is scored by the lexical score alone, so neither a pending embedding nor a query without
    terms is a disadvantage.

    Args:
        lexical: BM25 of each candidate, 0 where no term occurs.
        cosine: Cosine of each candidate in the same order, `None` while it has no vector.
        dense_weight: The weight of the cosine, from 0 to 1.
    """
    best_lexical = max(lexical, default=0.0)
    best_cosine = max((value for value in cosine if value is not None), default=0.0)
    words = 1.0 - dense_weight if best_lexical > 0.0 else 0.0
    dense = dense_weight if best_cosine > 0.0 else 0.0
    both = words + dense
    best_lexical, best_cosine = best_lexical or 1.0, best_cosine or 1.0
    return [
        (words * bm25 / best_lexical / words if words else 0.0)
        if similarity is None or not dense
        else (words * bm25 / best_lexical + (dense * similarity / best_cosine if similarity > 0.0 else 0.0)) / both
        for bm25, similarity in zip(lexical, cosine, strict=True)
    ]


def reciprocal_rank(
    lists: Sequence[Sequence[Entry]],
    k: int = RANK_CONSTANT,
    weights: Sequence[float] | None = None,
    absent: Mapping[Entry, Collection[int]] | None = None,
) -> dict[Entry, float]:
    """Return a score in (0, 1] for every entry of the lists: 1.0 for one that is first wherever it could be.

    It is the sum of `weight / (k + rank)` over the lists an entry is in, divided by the most that the lists which could
    contain it can give. An empty list could contain none.

    Args:
        lists: Entries best first, each at most once in a list.
        k: Above 0.
        weights: One per list, above 0; equal if none are given.
        absent: For an entry, the numbers of lists it cannot be in, such as the vector's while its embedding is pending.
    """
    weights = weights or [1.0] * len(lists)
    fused: dict[Entry, float] = {}
    for entries, weight in zip(lists, weights, strict=True):
        for place, entry in enumerate(entries, start=k + 1):
            fused[entry] = fused.get(entry, 0.0) + weight / place
    in_play = {number: weight / (k + 1) for number, weight in enumerate(weights) if lists[number]}
    most = sum(in_play.values())
    members = [frozenset(entries) for entries in lists] if absent else []
    excused = {
        entry: sum(in_play.get(number, 0.0) for number in set(numbers) if entry not in members[number])
        for entry, numbers in (absent or {}).items()
        if entry in fused
    }
    if not excused:
        return {entry: score / most if score < most else 1.0 for entry, score in fused.items()}
    return {entry: min(1.0, score / (most - excused.get(entry, 0.0))) for entry, score in fused.items()}


def level(values: Sequence[float]) -> list[float]:
    """Return the values nearest to these, by least squares, that never rise from one to the next.

    Source: the pool adjacent violators algorithm; Barlow et al., "Statistical Inference under Order Restrictions"
    (1972).
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            before, number = pools.pop()
            mean, size = (before * number + mean * size) / (number + size), number + size
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]
