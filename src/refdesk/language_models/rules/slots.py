"""Questions whose answers a tool is called with: what a call needs is asked for, however seldom that was necessary.

Most customers say at once where they want to go; those who do not must still be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import regex

from refdesk.language_models.rules.moves import NOT_FACTS

if TYPE_CHECKING:
    from refdesk.language_models.rules.acts import Act

OFTEN = 0.5
"""Share of a question's answers, or of a call's uses, that an argument must be in."""

MIN_VALUE = 2
"""Code points of a value that is recognised in what a customer says."""

CONDITION = "the customer has not said it"


def find_missing(chosen: Sequence[Act], others: Sequence[Act], least: int) -> list[Act]:
    """Return the acts that ask for what a chosen call needs and no chosen act asks for, most cases first.

    Args:
        chosen: The acts that are steps.
        others: The questions that are not steps, those of the most cases first.
        least: How many cases must support one.
    """
    calls = [act for act in chosen if act.kind == "call"]
    needed = {name for act in calls for name in _list_arguments(act)}
    asked = {name for act in chosen for name in _list_given(act, calls)}
    missing: list[Act] = []
    for act in others:
        new = (_list_given(act, calls) & needed) - asked if len(act.cases) >= least else set[str]()
        if new:
            missing.append(act)
            asked |= new
    return missing


def _list_arguments(call: Act) -> set[str]:
    names = Counter(name for move in call.moves for name in move.arguments if name.casefold() not in NOT_FACTS)
    return {name for name, count in names.items() if count >= OFTEN * len(call.moves)}


def _list_given(act: Act, calls: Sequence[Act]) -> set[str]:
    """Return the arguments that the answers to an act gave to calls after it."""
    answered = (
        [move for move in act.moves if move.after and not move.after.startswith("{")] if act.kind == "say" else []
    )
    counts: Counter[str] = Counter()
    for move in answered:
        later = (c for call in calls for c in call.moves if c.case == move.case and c.place > move.place)
        said = move.after.casefold()
        counts.update({name for call in later for name, value in call.arguments.items() if _is_said(value, said)})
    return {name for name, count in counts.items() if count >= OFTEN * len(answered)}


def _is_said(value: str, said: str) -> bool:
    bare = value.strip().casefold()
    return len(bare) >= MIN_VALUE and regex.search(rf"(?<!\w){regex.escape(bare)}(?!\w)", said) is not None
