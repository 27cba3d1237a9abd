"""Selects the first rows of an order without sorting the rest."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Integers, RowNumbers

SortValues: TypeAlias = Callable[[RowNumbers, int], "NDArray[np.float64] | NDArray[np.int64]"]
"""Returns the value that each of some rows is sorted by, smallest first. Rows that are certainly not among the first
`depth` may all get one value above the others."""


FEW = 512
"""This many rows are sorted as fast as the first of them are found."""


def select_first(rows: RowNumbers, order: Sequence[SortValues], depth: int) -> RowNumbers:
    """Return the first `depth` of the rows, in order; the last key must be unique."""
    if len(rows) > max(depth, FEW):
        rows = _prune(rows, order, depth)
    return _sort(rows, order)[:depth]


def _sort(rows: RowNumbers, order: Sequence[SortValues]) -> RowNumbers:
    """Return the rows in order; later keys are evaluated only if earlier ones tie."""
    values: list[NDArray[np.float64] | NDArray[np.int64]] = []
    at = np.arange(len(rows))
    for get_values in order:
        values.insert(0, get_values(rows, len(rows)))
        at = np.lexsort(values)
        ties = np.ones(max(len(rows) - 1, 0), np.bool_)
        for each in values:
            ties &= each[at[1:]] == each[at[:-1]]
        if not ties.any():
            break
    return rows[at]


def _prune(rows: RowNumbers, order: Sequence[SortValues], depth: int) -> RowNumbers:
    """Return the first `depth` rows in any order: by each key, those below the edge value are in, those at it open."""
    chosen: list[RowNumbers] = []
    for get_values in order:
        values = get_values(rows, depth)
        edge = np.partition(values, depth - 1)[depth - 1]
        below = rows[values < edge]
        chosen.append(below)
        rows, depth = rows[values == edge], depth - len(below)
        if len(rows) == depth:
            break
    return np.concatenate([*chosen, rows[:depth]])


def rank_texts(texts: Sequence[str], depth: int, *, descending: bool) -> Integers:
    """Return numbers that compare as the texts do, or in reverse; see `SortValues` about `depth`."""
    if len(texts) > depth:
        pick = heapq.nlargest if descending else heapq.nsmallest
        distinct = sorted(set(pick(depth, texts)), reverse=descending)
    else:
        distinct = sorted(set(texts), reverse=descending)
    ranks = {text: rank for rank, text in enumerate(distinct)}
    return np.array([ranks.get(text, len(distinct)) for text in texts], np.int64)
