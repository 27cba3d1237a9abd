"""Groups conversations by the problem that they are about, so that one skill can be learned from each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from refdesk.language_models.rules import shared_problems
from refdesk.language_models.rules.acts import compare_words, link
from refdesk.language_models.rules.moves import get_terms, name_in_words, read_case
from refdesk.playbooks import Grouping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from refdesk.model import Vector
    from refdesk.playbooks import Case

SAME = 0.3
"""Mean similarity from which two groups are one."""

NEAR = 0.2
"""Mean similarity from which two groups are proposed to be one."""


def list_openings(cases: Sequence[Case]) -> list[str]:
    """Return what is embedded to group the cases: how each customer began; empty for one who said nothing."""
    return [shared_problems.find_opening(case.turns) for case in cases]


def group(cases: Sequence[Case], vectors: Mapping[str, Vector]) -> Grouping:
    """Return the cases in groups, by what the agents did and how the customers began.

    Args:
        cases: At least one.
        vectors: Those of the openings, by their text, of unit length; any may be missing.
    """
    similar = _compare(cases, vectors)
    groups = [sorted(members) for members in link(similar, np.ones(len(cases)), SAME)]
    groups.sort(key=lambda members: members[0])
    pairs = combinations(range(len(groups)), 2)
    near = [pair for pair in pairs if float(similar[np.ix_(groups[pair[0]], groups[pair[1]])].mean()) >= NEAR]
    return Grouping(tuple(tuple(members) for members in groups), tuple(near))


def _compare(cases: Sequence[Case], vectors: Mapping[str, Vector]) -> NDArray[np.float64]:
    done = compare_words([_list_done(number, case) for number, case in enumerate(cases)])
    openings = list_openings(cases)
    asked = compare_words([get_terms(opening) for opening in openings])
    found = [vectors.get(opening) for opening in openings]
    if all(vector is not None for vector in found):
        matrix = np.stack([vector for vector in found if vector is not None]).astype(np.float64)
        asked = (asked + np.clip(matrix @ matrix.T, 0.0, 1.0)) / 2
    return (done + asked) / 2


def _list_done(number: int, case: Case) -> list[str]:
    """Return the terms of what the agent did; a call weighs like a sentence."""
    terms: list[str] = []
    for move in read_case(number, case):
        if move.kind == "call":
            terms += [f"call {move.text}", *get_terms(name_in_words(move.text))]
        elif move.kind in {"say", "log"}:
            terms += get_terms(move.text)
    return terms
