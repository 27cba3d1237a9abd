"""Date ranges by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from refdesk.model import DateRange
from refdesk.stores.sqlite.index.columns import Column, Integers, Mask, Rows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_number(instant: datetime) -> int:
    """Return the microseconds since 1970, exactly."""
    return (instant - _EPOCH) // _MICROSECOND


def to_instants(numbers: Integers) -> list[datetime]:
    """Return the instants of these microseconds since 1970."""
    passed: list[timedelta] = numbers.astype("m8[us]").tolist()
    return [_EPOCH + each for each in passed]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The spans of the documents under one name, by row: one entry per document and span."""

    rows: Rows
    starts: Integers
    ends: Integers

    def mark_overlaps(self, since: datetime | None, until: datetime | None, rows: int) -> Mask:
        """Return a mask over `rows` rows of those that have a span that touches [`since`, `until`]."""
        touches = np.ones(len(self.rows), np.bool_)
        if since is not None:
            touches &= self.ends >= to_number(since)
        if until is not None:
            touches &= self.starts <= to_number(until)
        mask = np.zeros(rows, np.bool_)
        mask[self.rows[touches]] = True
        return mask


class DateRangeColumn:
    """Gathers the spans under one name, in the order of rows."""

    def __init__(self) -> None:
        self._rows = Column(np.int32)
        self._starts = Column(np.int64)
        self._ends = Column(np.int64)

    @property
    def view(self) -> Spans:
        """Return what has been gathered so far; it does not change when more is gathered."""
        return Spans(self._rows.view, self._starts.view, self._ends.view)

    def extend(self, held: Sequence[tuple[int, Sequence[DateRange]]]) -> None:
        """Append the spans of documents, given as (row, spans) by row."""
        self._rows.extend([row for row, spans in held for _ in spans])
        self._starts.extend([to_number(span.start) for _, spans in held for span in spans])
        self._ends.extend([to_number(span.end) for _, spans in held for span in spans])

    def renumber(self, new_rows: Rows) -> DateRangeColumn:
        """Return a column with each entry under its new row, without those whose new row is -1."""
        old = self.view
        rows = new_rows[old.rows]
        kept = rows >= 0
        column = DateRangeColumn()
        column._rows.extend(rows[kept])
        column._starts.extend(old.starts[kept])
        column._ends.extend(old.ends[kept])
        return column
