"""Facet values by row: membership, and counts over the matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refdesk.model import FacetCount, facet_key
from refdesk.stores.sqlite.index.columns import Column, Integers, Mask, RowNumbers, Rows, expand_ranges, get_offsets

FEW = 16
"""If fewer than one row in this many matches, values are looked up row by row instead of by scanning all."""


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """The values of the documents under one facet name: one entry per document and value, by row.

    Attributes:
        rows: Row of each entry, ascending.
        values: Number of each entry's value, independent of its spelling.
        spellings: Number of each entry's spelling.
        is_first: Whether the entry is the first of its document with that value.
        numbers: The value numbers by `facet_key`. May hold more values than the entries do.
        texts: The spellings by their number. May hold more than the entries do, too.
        value_of: The value number of each spelling.
        holders: The rows that hold each value, one value after another; `None` if not made (see `by_value`).
        offsets: `holders[offsets[i]:offsets[i + 1]]` hold value i.
    """

    rows: Integers
    values: Rows
    spellings: Rows
    is_first: Mask
    numbers: Mapping[str, int]
    texts: Sequence[str]
    value_of: Rows
    holders: Rows | None = None
    offsets: Integers | None = None

    def by_value(self) -> Facet:
        """Return the same with the holders of each value."""
        first = np.flatnonzero(self.is_first)
        order = first[np.argsort(self.values[first], kind="stable")]
        counts = np.bincount(self.values[first], minlength=len(self.numbers))
        return replace(self, holders=self.rows[order].astype(np.int32), offsets=get_offsets(counts))

    def get_key(self, spelling: int) -> str:
        """Return the `facet_key` of a spelling."""
        return facet_key(self.texts[spelling])

    def find_holders(self, value: str) -> RowNumbers:
        """Return the rows that hold the value, ascending."""
        number = self.numbers.get(facet_key(value))
        if number is None:
            return np.empty(0, np.intp)
        if self.holders is not None and self.offsets is not None:
            held = self.holders[int(self.offsets[number]) : int(self.offsets[number + 1])]
        else:
            held = self.rows[(self.values == number) & self.is_first]
        return held.astype(np.intp)

    def tally(self, matching: Mask) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many matching documents hold each value, by `facet_key`, and how often each spelling is used."""
        entries = self._get_entries(matching)
        uses = np.bincount(self.spellings[entries])
        used = np.flatnonzero(uses)
        spelled = {
            self.texts[spelling]: count for spelling, count in zip(used.tolist(), uses[used].tolist(), strict=True)
        }
        firsts = np.bincount(self.spellings[entries[self.is_first[entries]]])
        held: dict[str, int] = {}
        for spelling in np.flatnonzero(firsts).tolist():
            key = self.get_key(spelling)
            held[key] = held.get(key, 0) + int(firsts[spelling])
        return held, spelled

    def count(self, matching: Mask) -> tuple[FacetCount, ...]:
        """Return how many matching documents hold each value, most frequent first, ties by value."""
        entries = self._get_entries(matching)
        values = self.values[entries]
        holders = np.bincount(values[self.is_first[entries]])
        held = np.flatnonzero(holders)
        texts = self._get_usual_spellings(held, entries)
        ranked = sorted(zip((-holders[held]).tolist(), texts, strict=True))
        return tuple(FacetCount(text, -count) for count, text in ranked)

    def _get_entries(self, matching: Mask) -> RowNumbers:
        if FEW * np.count_nonzero(matching) > len(matching):
            return np.flatnonzero(matching[self.rows])
        wanted = np.flatnonzero(matching)
        starts = np.searchsorted(self.rows, wanted)
        return expand_ranges(starts, np.searchsorted(self.rows, wanted, side="right") - starts)

    def _get_usual_spellings(self, values: RowNumbers, entries: RowNumbers) -> Iterable[str]:
        """Return the most frequent spelling of each value in the entries; if several are, the first as text."""
        if self._has_one_spelling_each:
            return map(self.texts.__getitem__, values.tolist())
        uses = np.bincount(self.spellings[entries])
        used = np.flatnonzero(uses)
        ranked = zip((-uses[used]).tolist(), map(self.texts.__getitem__, used.tolist()), strict=True)
        usual: dict[int, tuple[int, str]] = {}
        for value, rank in zip(self.value_of[used].tolist(), ranked, strict=True):
            usual[value] = min(rank, usual.get(value, rank))
        return (usual[value][1] for value in values.tolist())

    @property
    def _has_one_spelling_each(self) -> bool:
        """Whether spellings and values have the same numbers; both are numbered in order of arrival."""
        return not len(self.value_of) or int(self.value_of[-1]) == len(self.value_of) - 1


class FacetColumn:
    """Gathers the entries of one facet, in the order of rows."""

    def __init__(self) -> None:
        self._rows = Column(np.int64)
        self._values = Column(np.int32)
        self._spellings = Column(np.int32)
        self._is_first = Column(np.bool_)
        self._value_of = Column(np.int32)
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._spelling_numbers: dict[str, int] = {}

    @property
    def view(self) -> Facet:
        """Return what has been gathered so far; it does not change when more is gathered."""
        return Facet(
            rows=self._rows.view,
            values=self._values.view,
            spellings=self._spellings.view,
            is_first=self._is_first.view,
            numbers=self._numbers,
            texts=self._texts,
            value_of=self._value_of.view,
        )

    def extend(self, held: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Append the values of documents, given as (row, values) by row."""
        spellings = [self._get_spelling(text) for _, texts in held for text in texts]
        rows = np.array([row for row, texts in held for _ in texts], np.int64)
        values = self._value_of.view[spellings]
        pairs = rows << 32 | values
        is_first = np.zeros(len(pairs), np.bool_)
        is_first[np.unique(pairs, return_index=True)[1]] = True
        self._append(rows, values, np.asarray(spellings, np.int32), is_first)

    def renumber(self, new_rows: Rows) -> FacetColumn:
        """Return a column with each entry under its new row, without those whose new row is -1."""
        old = self.view
        kept = new_rows[old.rows] >= 0
        used, codes = np.unique(old.spellings[kept], return_inverse=True)
        column = FacetColumn()
        texts = map(self._texts.__getitem__, used.tolist())
        spellings = np.array([column._get_spelling(text) for text in texts], np.int32)[codes]
        column._append(new_rows[old.rows[kept]], column._value_of.view[spellings], spellings, old.is_first[kept])
        return column

    def _append(self, rows: Integers | Rows, values: Rows, spellings: Rows, is_first: Mask) -> None:
        self._rows.extend(rows)
        self._values.extend(values)
        self._spellings.extend(spellings)
        self._is_first.extend(is_first)

    def _get_spelling(self, text: str) -> int:
        number = self._spelling_numbers.get(text)
        if number is None:
            number = self._spelling_numbers[text] = len(self._texts)
            self._texts.append(text)
            self._value_of.extend([self._numbers.setdefault(facet_key(text), len(self._numbers))])
        return number
