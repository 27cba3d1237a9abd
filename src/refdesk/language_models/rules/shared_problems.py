"""The problem that several conversations have in common, in the words that most of the customers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from math import log, sqrt
from typing import TYPE_CHECKING, TypeAlias

import regex

from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.kit import sentences
from refdesk.language_models.rules.moves import name_in_words
from refdesk.language_models.rules.problems import (
    FILLERS,
    MAX_CONDITIONS,
    MAX_PROBLEM,
    MAX_REMEMBERED,
    Problem,
    find_keywords,
    find_problem,
    list_said,
)

if TYPE_CHECKING:
    from refdesk.playbooks import Turn

FEW = 3
LIKE = 0.6
MAX_KEYWORDS = 24
MAX_OPENINGS = 40
MAX_OPENING = 240
OPENING_TURNS = 2
MAX_WHOLE = 600
"""Most code points that are kept of all that a customer said."""

MAX_SAID = 8000
"""Most code points of what the customers of a skill said, openings included: what it is found by."""

_OWN_FACT = regex.compile(r"\d|\[[^\]\n]+\]|(?<=\s)(?!I\b)\p{Lu}\p{Ll}+")
"""What marks a sentence as about one case: a number, a masked value, a name."""

Turns: TypeAlias = "tuple[Turn, ...]"


def share_problem(conversations: Sequence[Turns]) -> Problem | None:
    """Return the problem that the conversations share, or `None` if none of them has one.

    Its title is the one that says most of what the other customers say too, and least that belongs to one case alone.
    """
    found = [problem for turns in conversations if (problem := find_problem(turns)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    shares = _count_shares([problem.text for problem in found])
    by_title = sorted(found, key=lambda problem: -_rate(problem.title, shares))
    said = list(dict.fromkeys(sentence for turns in conversations for sentence in sentences.split(find_opening(turns))))
    said.sort(key=lambda sentence: -_rate(sentence, shares))
    conditions = _share_conditions([problem.conditions for problem in by_title])
    return Problem(
        by_title[0].title,
        " ".join(_fit(_spread(said), MAX_PROBLEM)),
        tuple(_spread(conditions))[:MAX_CONDITIONS],
    )


def _share_conditions(by_case: Sequence[Sequence[str]]) -> list[str]:
    """Return the conditions; with many cases, only those that at least two cases have in much the same words."""
    every = list(dict.fromkeys(condition for conditions in by_case for condition in conditions))
    if len(by_case) < FEW:
        return every
    terms = [[_get_terms(condition) for condition in conditions] for conditions in by_case]

    def count(condition: str) -> int:
        mine = _get_terms(condition)
        return sum(any(_is_like(mine, other) for other in case) for case in terms)

    return [condition for condition in every if count(condition) > 1]


@lru_cache(sentences.MAX_REMEMBERED)
def _get_terms(text: str) -> frozenset[str]:
    return frozenset(analyse(text)) - get_stop_terms()


def _is_like(terms: Set[str], other: Set[str]) -> bool:
    """Return whether two sets of terms have most of their terms in common."""
    fewer, more = sorted((len(terms), len(other)))
    if fewer <= LIKE * more:
        return False
    common = len(terms & other)
    return common > LIKE * (fewer + more - common)


def share_keywords(conversations: Sequence[Turns]) -> tuple[str, ...]:
    """Return the keywords of all, those of the most conversations first, then in the order within a conversation.

    The names of the tools that were called come first, in words: they say what was done.
    """
    counts: Counter[str] = Counter()
    places: dict[str, int] = {}
    for turns in conversations:
        tools = dict.fromkeys(name_in_words(turn.call) for turn in turns if turn.call)
        for place, keyword in enumerate([*tools, *find_keywords(turns)]):
            counts[keyword] += 1
            places[keyword] = min(place, places.get(keyword, place))
    ranked = sorted(counts, key=lambda keyword: (-counts[keyword], places[keyword]))
    return tuple(ranked[:MAX_KEYWORDS])


def list_openings(conversations: Sequence[Turns]) -> tuple[str, ...]:
    """Return what customers said, without pleasantries and names: how the latest of them began, one text for each.

    While there is room, all that each of them said follows: the fewer cases there are, the more is kept of each.
    """
    began = [opening for turns in reversed(conversations) if (opening := find_opening(turns))][:MAX_OPENINGS]
    room, whole = MAX_SAID - sum(map(len, began)), list[str]()
    for said in map(find_said, reversed(conversations)):
        room -= len(said)
        if room < 0:
            break
        whole.append(said)
    return tuple(dict.fromkeys(text for text in (*began, *whole) if text))


@lru_cache(MAX_REMEMBERED)
def find_opening(turns: Turns) -> str:
    """Return what the customer said in the first turns that say something; empty if none does."""
    return sentences.shorten(" ".join(_list_said(turns)[:OPENING_TURNS]), MAX_OPENING)


@lru_cache(MAX_REMEMBERED)
def find_said(turns: Turns) -> str:
    """Return everything that the customer said that says something, cut to size."""
    return sentences.shorten(" ".join(_list_said(turns)), MAX_WHOLE)


def _list_said(turns: Turns) -> list[str]:
    return [" ".join(said) for _, said in list_said(turns) if said]


def _count_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return, for each term that names something, the share of the texts in which it occurs."""
    stop = get_stop_terms() | FILLERS
    counts = Counter(term for text in texts for term in set(analyse(text)) - stop if not term.isdigit())
    return {term: count / len(texts) for term, count in counts.items()}


def _rate(sentence: str, shares: dict[str, float]) -> float:
    """Return how well a sentence says what all share: by its shared terms, less for its length and facts of its own."""
    terms = {term for term in analyse(sentence) if term in shares}
    if not terms:
        return 0.0
    own = 2 * len(_OWN_FACT.findall(sentence[1:]))
    return sum(shares[term] for term in terms) / sqrt(len(terms) + own) / log(8 + len(sentence.split()))


def _spread(texts: Iterable[str]) -> list[str]:
    """Return the texts without those that say little more than an earlier one."""
    kept: list[tuple[str, frozenset[str]]] = []
    for text in texts:
        terms = _get_terms(text)
        if not any(_is_like(terms, other) for _, other in kept):
            kept.append((text, terms))
    return [text for text, _ in kept]


def _fit(texts: Sequence[str], length: int) -> list[str]:
    kept: list[str] = []
    for text in texts:
        if kept and sum(len(each) + 1 for each in kept) + len(text) > length:
            break
        kept.append(text)
    return kept
