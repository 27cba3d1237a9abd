"""Whether two questions ask the same: judged by their vectors, if there are any, and by the words that they share.

The thresholds were fitted on refdesk's own questions (`benchmarks/gaps/wordings_dev.txt`); `python -m benchmarks.gaps`
shows how they do on others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from refdesk.core.search import cosines
from refdesk.core.search.analysis import analyse, get_stop_terms

if TYPE_CHECKING:
    from refdesk.model import VectorQuery

ALIKE = 0.70
"""From this likeness on, two questions are taken to ask the same."""

SHARED_WORDS = 0.46
"""The share of common words from which on, without vectors, two questions are taken to ask the same."""

WORDS_TRUST = 0.25
"""How much of the likeness that vectors leave missing shared words can make up for."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Wording:
    """A question and its vector, if there is one."""

    text: str
    vector: VectorQuery | None = None


def compare(one: Wording, other: Wording) -> float:
    """Return how alike two questions are, in [0, 1]: 0 if they name different numbers, 1 if they use the same words."""
    mine, theirs = _read(one.text), _read(other.text)
    if mine.numbers != theirs.numbers:
        return 0.0
    shared, all_terms = mine.terms & theirs.terms, mine.terms | theirs.terms
    if shared == all_terms:
        return 1.0
    words = len(shared) / len(all_terms)
    meaning = _compare_meaning(one.vector, other.vector)
    return (
        min(1.0, words * ALIKE / SHARED_WORDS)
        if meaning is None
        else 1.0 - (1.0 - meaning) * (1.0 - WORDS_TRUST * words)
    )


def _compare_meaning(one: VectorQuery | None, other: VectorQuery | None) -> float | None:
    if one is None or other is None or one.model != other.model or one.scale is None:
        return None
    return min(1.0, max(0.0, cosines.to_reference(float(one.vector @ other.vector), one.scale)))


@dataclass(frozen=True, slots=True)
class _Words:
    terms: frozenset[str]
    numbers: frozenset[str]


@lru_cache(4096)
def _read(text: str) -> _Words:
    terms = frozenset(analyse(text))
    return _Words(terms - get_stop_terms() or terms, frozenset(_NUMBERS.findall(text)))
