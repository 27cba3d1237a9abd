"""Finds what may have been meant by an unknown value: the known values whose spelling is closest to it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 3
ALIKE = 0.4
"""Least similarity of two values (Dice's coefficient of their character pairs) for one to be suggested for the
other."""


def find_nearest(value: str, known: Iterable[str]) -> list[str]:
    """Return at most `MOST` known values that are spelt alike or share a word with the value, most similar first.

    Args:
        value: The unknown value, folded like the known ones.
        known: The known values, each once.
    """
    pairs, words = _get_pairs(value), _get_words(value)
    alike = {other: 2 * len(pairs & of) / (len(pairs) + len(of)) for other in known if (of := _get_pairs(other))}
    near = [other for other in alike if alike[other] >= ALIKE or words & _get_words(other)]
    return sorted(near, key=lambda other: (-alike[other], other))[:MOST]


def _get_words(value: str) -> set[str]:
    return set(re.findall(r"\w+", value))


def _get_pairs(value: str) -> set[str]:
    """Return the pairs of neighbouring characters, including the start and the end of the value."""
    return {f"{left}{right}" for left, right in pairwise(f"^{value}$")}
