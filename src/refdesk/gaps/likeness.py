"""Whether two questions ask the same: by their vectors where there are any, and by the words that they share.

The thresholds were fitted on questions of ours (`benchmarks/gaps/wordings_dev.txt`); `python -m benchmarks.gaps` says
how they do on others.
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
"""From this likeness on two questions are taken to ask the same."""

SHARED_WORDS = 0.46
"""The part of their words that two questions share from which on they are that alike where there are no vectors."""

WORDS_TRUST = 0.25
"""How much of what meaning leaves open words can make up for."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Wording:
    """A question and its vector, where there is one."""

    text: str
    vector: VectorQuery | None = None


def compare(one: Wording, other: Wording) -> float:
    """Return how alike two questions are, in [0, 1]: 0 where they name other numbers, 1 where they use equal words."""
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
