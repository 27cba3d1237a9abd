"""Evaluates filters, to row numbers where the index has them, else to masks over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import assert_never

import numpy as np

from refdesk.model import And, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps
from refdesk.stores.sqlite.index.columns import Mask
from refdesk.stores.sqlite.index.documents import STATES, Documents
from refdesk.stores.sqlite.index.passing import Passing


def select_passing(condition: Filter | None, documents: Documents) -> Passing:
    """Return the living rows for which the condition holds."""
    passing = Passing(documents.count) if condition is None else _select(condition, documents)
    return passing if documents.living == documents.count else passing.keep(documents.is_live)


def _select(condition: Filter, documents: Documents) -> Passing:
    """Return the rows for which the condition holds; what it says of dead ones means nothing."""
    match condition:
        case HasAll(facet, values):
            return _select_all([_select_holders(facet, each, documents) for each in values], documents)
        case HasAny(facet, values):
            return _select_any([_select_holders(facet, each, documents) for each in values], documents)
        case Overlaps():
            return Passing(documents.count, mask=_mark_overlaps(condition, documents))
        case InState(states):
            masks = [documents.states == STATES.index(state) for state in states]
            return _select_any([Passing(documents.count, mask=mask) for mask in masks], documents)
        case HasId(ids):
            return Passing(documents.count, rows=documents.find_ids(ids))
        case Not(inner):
            return Passing(documents.count, mask=~_select(inner, documents).mask)
        case And(conditions):
            return _select_all([_select(each, documents) for each in conditions], documents)
        case Or(conditions):
            return _select_any([_select(each, documents) for each in conditions], documents)
        case _:
            assert_never(condition)


def _select_all(each: Sequence[Passing], documents: Documents) -> Passing:
    """Return what is in all of them: every row, if there are none."""
    with_rows = sorted((one for one in each if one.has_rows), key=lambda one: one.count)
    least = with_rows[0] if with_rows else Passing(documents.count)
    return reduce(Passing.keep, [one.mask for one in each if one is not least], least)


def _select_any(each: Sequence[Passing], documents: Documents) -> Passing:
    """Return what is in any of them: no row, if there are none."""
    if len(each) == 1:
        return each[0]
    mask = np.zeros(documents.count, np.bool_)
    for one in each:
        if one.has_rows:
            mask[one.rows] = True
        else:
            mask |= one.mask
    return Passing(documents.count, mask=mask)


def _select_holders(facet: str, value: str, documents: Documents) -> Passing:
    held = documents.facets.get(facet)
    rows = held.find_holders(value) if held else np.empty(0, np.intp)
    return Passing(documents.count, rows=rows)


def _mark_overlaps(condition: Overlaps, documents: Documents) -> Mask:
    mask = np.zeros(documents.count, np.bool_)
    for name in condition.names:
        if spans := documents.date_ranges.get(name):
            mask |= spans.mark_overlaps(condition.since, condition.until, documents.count)
    return mask
