"""Finds what may have been meant: the known values that are spelt most like one that is not known."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 3
ALIKE = 0.4
"""How alike two values are at least (Dice's coefficient of their character pairs) to be taken for each other."""


def find_nearest(value: str, known: Iterable[str]) -> list[str]:
    """Return at most `MOST` known values: spelt alike or with a word in common, most alike first.

    Args:
        value: Folded as the known ones are.
        known: Each once.
    """
    pairs, words = _get_pairs(value), _get_words(value)
    alike = {other: 2 * len(pairs & of) / (len(pairs) + len(of)) for other in known if (of := _get_pairs(other))}
    near = [other for other in alike if alike[other] >= ALIKE or words & _get_words(other)]
    return sorted(near, key=lambda other: (-alike[other], other))[:MOST]


def _get_words(value: str) -> set[str]:
    return set(re.findall(r"\w+", value))


def _get_pairs(value: str) -> set[str]:
    """Return the pairs of neighbouring characters, the ends of the value included."""
    return {f"{left}{right}" for left, right in pairwise(f"^{value}$")}
