"""Contradictions: whether two notes of ours can both hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.impact.measuring import Figures, Share, fit, measure
from benchmarks.impact.reading import Labelled, read_contradictions
from refdesk.impact.disagreeing import compare, find_contradiction, read_text
from refdesk.impact.kinds import THRESHOLD, Way
from refdesk.impact.matching import weigh
from refdesk.impact.wording import get_terms

ROUNDS = 4
"""Of a pair the surest way counts; which that is depends on the weights, so both are found in turn."""

NEIGHBOURS = 4
"""So many notes that share most terms with one are put beside it."""

STRANGE = 0.34
"""Notes that share no larger part of their terms are about different things."""

WAYS: tuple[Way, ...] = ("value", "denial", "state")
FIRST = {"dice": 1.0, "shared": 1.0}


def run(part: str, *, show: bool = False) -> Figures:
    """Return the figures of a part of the labelled pairs; `show` prints what is wrong."""
    pairs = read_contradictions(part)
    found = [find_contradiction(read_text(pair.one), read_text(pair.other)) for pair in pairs]
    told = [each is not None and each.confidence >= THRESHOLD for each in found]
    if show:
        for pair, tells in zip(pairs, told, strict=True):
            if tells != pair.holds:
                print(f"{'false' if tells else 'missed'} {pair.kind}: {pair.one} | {pair.other}")
    return measure([pair.holds for pair in pairs], told)


def run_strangers(part: str) -> Share:
    """Return how many pairs of notes about different things are shown as contradictions."""
    pairs = make_strangers(part)
    found = [find_contradiction(read_text(pair.one), read_text(pair.other)) for pair in pairs]
    return Share(sum(each is not None and each.confidence >= THRESHOLD for each in found), len(pairs))


def fit_weights(part: str = "dev") -> dict[str, dict[str, float]]:
    """Return the weights of each way that a part gives."""
    pairs = [*read_contradictions(part), *make_strangers(part)]
    weights: dict[str, Mapping[str, float]] = dict.fromkeys(WAYS, FIRST)
    found = [list(compare(read_text(pair.one), read_text(pair.other))) for pair in pairs]
    evidence = {way: [[each for kind, each, _, _ in ways if kind == way] for ways in found] for way in WAYS}
    for _ in range(ROUNDS):
        weights = {way: _fit_way(evidence[way], pairs, weights[way]) for way in WAYS}
    return {way: dict(each) for way, each in weights.items()}


def make_strangers(part: str) -> list[Labelled]:
    """Return pairs of notes of a part that are about different things, though they share a word or two.

    Each note is put beside those that share most terms with it, as a search would find them.
    """
    texts = list(dict.fromkeys(text for pair in read_contradictions(part) for text in (pair.one, pair.other)))
    terms = [frozenset(get_terms(text)) for text in texts]
    found: set[tuple[int, int]] = set()
    for at, mine in enumerate(terms):
        like = sorted(
            (other for other in range(len(texts)) if other != at),
            key=lambda other: (-_share(mine, terms[other]), other),
        )
        near = [other for other in like[:NEIGHBOURS] if 0 < _share(mine, terms[other]) < STRANGE]
        found |= {(min(at, other), max(at, other)) for other in near}
    return [Labelled(texts[one], texts[other], False, "strangers") for one, other in sorted(found)]


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / max(1, len(one) + len(other))


def _fit_way(
    evidence: Sequence[Sequence[Mapping[str, float]]], pairs: Sequence[Labelled], weights: Mapping[str, float]
) -> Mapping[str, float]:
    surest = [
        (max(each, key=lambda one: weigh(one, weights)), pair.holds)
        for each, pair in zip(evidence, pairs, strict=True)
        if each
    ]
    return fit([one for one, _ in surest], [holds for _, holds in surest])
