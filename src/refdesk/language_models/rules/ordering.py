"""The order of acts that most cases agree with: precedence by majority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from refdesk.language_models.rules.acts import Act


def order(acts: Sequence[Act]) -> list[Act]:
    """Return the acts in the order that contradicts the fewest cases, as far as moving single acts finds it.

    Each case votes for a pair of acts by which of them it does first. Acts that no case does together are placed by how
    far into the conversation they come, then by how many do them.
    """
    if len(acts) < 2:
        return list(acts)
    votes = _count(acts)
    places = np.array([_get_depth(act) for act in acts])
    often = np.array([len(act.cases) for act in acts])
    apart = np.sign(places[None, :] - places[:, None]) * 0.1 + np.sign(often[:, None] - often[None, :]) * 0.05
    votes = votes + apart
    ordered = sorted(range(len(acts)), key=lambda act: (-votes[act].sum(), places[act]))
    return [acts[act] for act in _improve(ordered, votes)]


def _get_depth(act: Act) -> float:
    first: dict[int, int] = {}
    for move in act.moves:
        first.setdefault(move.case, move.place)
    return sum(first.values()) / len(first)


def _count(acts: Sequence[Act]) -> NDArray[np.float64]:
    """Return in how many cases each act comes before each other one, less those in which it comes after it."""
    firsts: dict[int, dict[int, int]] = defaultdict(dict)
    for number, act in enumerate(acts):
        for move in act.moves:
            firsts[move.case].setdefault(number, move.place)
    votes = np.zeros((len(acts), len(acts)))
    for found in firsts.values():
        for one, place in found.items():
            for other, later in found.items():
                votes[one, other] += (place < later) - (place > later)
    return votes


def _improve(ordered: list[int], votes: NDArray[np.float64]) -> list[int]:
    """Return the order after moving single acts to where they contradict the fewest cases, until no move gains."""
    for _ in range(len(ordered)):
        moved = False
        for act in ordered:
            rest = [each for each in ordered if each != act]
            gains = np.concatenate(([0.0], np.cumsum(votes[rest, act] - votes[act, rest])))
            best = int(gains.argmax())
            if gains[best] > gains[ordered.index(act)] + 1e-9:
                ordered = [*rest[:best], act, *rest[best:]]
                moved = True
        if not moved:
            break
    return ordered
