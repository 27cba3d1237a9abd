"""Evaluates filters to masks over the rows."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import numpy as np

from refdesk.model import And, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps
from refdesk.stores.sqlite.index.columns import Mask
from refdesk.stores.sqlite.index.documents import STATES, Documents


def mark_passing(condition: Filter, documents: Documents) -> Mask:
    """Return which rows the condition holds for; what it says of dead ones means nothing."""
    match condition:
        case HasAll(facet, values):
            return _combine(np.logical_and, [_mark_holders(facet, each, documents) for each in values], documents)
        case HasAny(facet, values):
            return _combine(np.logical_or, [_mark_holders(facet, each, documents) for each in values], documents)
        case Overlaps():
            return _mark_overlaps(condition, documents)
        case InState(states):
            return _combine(np.logical_or, [documents.states == STATES.index(state) for state in states], documents)
        case HasId(ids):
            return documents.mark_ids(ids)
        case Not(inner):
            return ~mark_passing(inner, documents)
        case And(conditions):
            return _combine(np.logical_and, [mark_passing(each, documents) for each in conditions], documents)
        case Or(conditions):
            return _combine(np.logical_or, [mark_passing(each, documents) for each in conditions], documents)
        case _:
            assert_never(condition)


def _combine(operation: np.ufunc, masks: list[Mask], documents: Documents) -> Mask:
    """Return all masks joined by `and` or `or`; none at all holds always under `and`, never under `or`."""
    return reduce(operation, masks, np.full(documents.count, operation.identity, np.bool_))


def _mark_holders(facet: str, value: str, documents: Documents) -> Mask:
    held = documents.facets.get(facet)
    return held.mark_holders(value, documents.count) if held else np.zeros(documents.count, np.bool_)


def _mark_overlaps(condition: Overlaps, documents: Documents) -> Mask:
    mask = np.zeros(documents.count, np.bool_)
    for name in condition.names:
        if spans := documents.date_ranges.get(name):
            mask |= spans.mark_overlaps(condition.since, condition.until, documents.count)
    return mask
