"""Document attributes other than text, by row.

Every version of a document gets a row of its own; the previous version's row stays, dead. So columns only grow, and an
older view stays true to its time.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from refdesk.core.search.bm25 import TITLE_WEIGHT
from refdesk.model import State, facet_key
from refdesk.stores.sqlite.index.columns import (
    Column,
    Floats,
    Integers,
    Mask,
    RowNumbers,
    Rows,
    expand_ranges,
    get_offsets,
)
from refdesk.stores.sqlite.index.date_ranges import DateRangeColumn, Spans, to_number
from refdesk.stores.sqlite.index.facets import Facet, FacetColumn
from refdesk.stores.sqlite.index.passing import Passing
from refdesk.stores.sqlite.index.postings import GAPS, TokenStream
from refdesk.stores.sqlite.index.rows import IndexRow
from refdesk.stores.sqlite.index.texts import Grams

STATES = tuple(State)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """A snapshot of the documents.

    Attributes:
        is_live: Whether a row is its document's present version.
        living: How many are.
        total_length: Sum of `lengths` over the living.
        keys: The document's number in the store, by row.
        ids: By row; there may be more of them than rows, as of `titles`.
        id_checks: CRC-32 of each id.
        heads: See `refdesk.model.Candidate.head_id`, by row; rows that are missing have none.
        titles: `facet_key` of the title.
        grams: Of the titles, if there are many.
        states: Place in `STATES`.
        created: Microseconds since 1970; so is `modified`.
        lengths: Terms of the body plus `TITLE_WEIGHT` times those of the title.
        title_lengths: Terms of the title; `text_lengths` of title and body.
        starts: Position of the first token.
        positions: How many positions the tokens of all rows take.
    """

    is_live: Mask
    living: int
    total_length: float
    keys: Integers
    ids: Sequence[str]
    id_checks: NDArray[np.uint32]
    heads: Mapping[int, str]
    titles: Sequence[str]
    grams: Grams | None
    states: NDArray[np.int8]
    created: Integers
    modified: Integers
    lengths: Floats
    title_lengths: Integers
    text_lengths: Integers
    starts: Integers
    positions: int
    facets: Mapping[str, Facet]
    date_ranges: Mapping[str, Spans]

    @property
    def count(self) -> int:
        """How many rows there are, dead ones included."""
        return len(self.is_live)

    @property
    def mean_length(self) -> float:
        """Mean of `lengths` over the living; 1.0 if every text is empty."""
        return self.total_length / max(self.living, 1) or 1.0

    def find_rows(self, keys: Sequence[int] | Integers) -> RowNumbers:
        """Return the rows of those documents that have one; rows must be ordered by key."""
        wanted = np.asarray(keys, np.int64)
        rows = np.searchsorted(self.keys, wanted)
        return rows[np.append(self.keys, np.int64(-1))[rows] == wanted] if len(self.keys) else rows[:0]

    def bury(self, rows: RowNumbers) -> Documents:
        """Return the same with these rows dead."""
        dying = rows[self.is_live[rows]]
        if not len(dying):
            return self
        is_live = self.is_live.copy()
        is_live[dying] = False
        total_length = self.total_length - float(self.lengths[dying].sum())
        return replace(self, is_live=is_live, living=self.living - len(dying), total_length=total_length)

    def find_ids(self, ids: Sequence[str]) -> RowNumbers:
        """Return the rows that are versions of these documents, ascending."""
        checks = np.array([_check_id(id) for id in ids], np.uint32)
        maybe, wanted = np.flatnonzero(np.isin(self.id_checks, checks)), set(ids)
        return maybe[np.array([self.ids[row] in wanted for row in maybe.tolist()], np.bool_)]

    def find_titled(self, text: str, among: Passing) -> RowNumbers:
        """Return those of the rows whose title contains the text, both as `facet_key`."""
        wanted = facet_key(text)
        holders = self.grams.find_holders(wanted) if self.grams else None
        rows = among.rows if holders is None else holders[among.mask[holders]]
        numbers: list[int] = rows.tolist()
        return rows[np.array([wanted in self.titles[row] for row in numbers], np.bool_)]


class DocumentColumns:
    """Gathers documents, row by row."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._id_checks = Column(np.uint32)
        self._heads: dict[int, str] = {}
        self._titles: list[str] = []
        self._keys = Column(np.int64)
        self._states = Column(np.int8)
        self._created = Column(np.int64)
        self._modified = Column(np.int64)
        self._numbers = (self._keys, self._id_checks, self._states, self._created, self._modified)
        self._title_lengths = Column(np.int64)
        self._text_lengths = Column(np.int64)
        self._lengths = Column(np.float64)
        self._starts = Column(np.int64)
        self._facets: dict[str, FacetColumn] = {}
        self._spans: dict[str, DateRangeColumn] = {}
        self.positions = 0
        """How many positions the tokens of all rows take."""

    def __len__(self) -> int:
        return len(self._ids)

    def view(self, is_live: Mask) -> Documents:
        """Return what has been gathered so far, with these rows alive."""
        living = int(np.count_nonzero(is_live))
        lengths = self._lengths.view
        return Documents(
            is_live=is_live,
            living=living,
            total_length=float(np.sum(lengths, where=is_live)),
            keys=self._keys.view,
            ids=self._ids,
            id_checks=self._id_checks.view,
            heads=self._heads,
            titles=self._titles,
            grams=None,
            states=self._states.view,
            created=self._created.view,
            modified=self._modified.view,
            lengths=lengths,
            title_lengths=self._title_lengths.view,
            text_lengths=self._text_lengths.view,
            starts=self._starts.view,
            positions=self.positions,
            facets={name: column.view for name, column in self._facets.items()},
            date_ranges={name: column.view for name, column in self._spans.items()},
        )

    def extend(self, rows: Sequence[IndexRow]) -> TokenStream:
        """Append documents and return their tokens."""
        stream = _read_tokens(rows, len(self), self.positions)
        self._extend_named(rows, len(self))
        self._keys.extend([row.key for row in rows])
        self._id_checks.extend([_check_id(row.id) for row in rows])
        self._heads.update({at: row.head_id for at, row in enumerate(rows, len(self)) if row.head_id is not None})
        self._ids.extend(row.id for row in rows)
        self._titles.extend(facet_key(row.title) for row in rows)
        self._states.extend([STATES.index(row.state) for row in rows])
        self._created.extend([to_number(row.created_at) for row in rows])
        self._modified.extend([to_number(row.modified_at) for row in rows])
        self._extend_lengths(stream)
        return stream

    def renumber(self, kept: Rows, tokens: NDArray[np.uint64]) -> tuple[DocumentColumns, TokenStream]:
        """Return columns of the kept rows only, in their order, and their tokens.

        Args:
            kept: Rows, ascending.
            tokens: The tokens of all rows, by position.
        """
        new_rows = np.full(len(self), -1, np.int32)
        new_rows[kept] = np.arange(len(kept))
        columns = DocumentColumns()
        columns._ids = [self._ids[row] for row in kept.tolist()]
        columns._heads = {int(new_rows[row]): head for row, head in self._heads.items() if new_rows[row] >= 0}
        columns._titles = [self._titles[row] for row in kept.tolist()]
        for column, values in zip(columns._numbers, self._numbers, strict=True):
            column.extend(values.view[kept])
        columns._facets = {name: column.renumber(new_rows) for name, column in self._facets.items()}
        columns._spans = {name: column.renumber(new_rows) for name, column in self._spans.items()}
        stream = self._select_tokens(kept, tokens)
        columns._extend_lengths(stream)
        return columns, stream

    def _select_tokens(self, kept: Rows, tokens: NDArray[np.uint64]) -> TokenStream:
        title_lengths, lengths = self._title_lengths.view[kept], self._text_lengths.view[kept]
        starts = self._starts.view[kept]
        part_starts = np.stack((starts, starts + title_lengths + 1), axis=1).ravel()
        part_lengths = np.stack((title_lengths, lengths - title_lengths), axis=1).ravel()
        return TokenStream(0, 0, tokens[expand_ranges(part_starts, part_lengths)], title_lengths, lengths)

    def _extend_named(self, rows: Sequence[IndexRow], first: int) -> None:
        for name, values in _group_by_name([row.facets for row in rows], first).items():
            self._facets.setdefault(name, FacetColumn()).extend(values)
        for name, spans in _group_by_name([row.date_ranges for row in rows], first).items():
            self._spans.setdefault(name, DateRangeColumn()).extend(spans)

    def _extend_lengths(self, stream: TokenStream) -> None:
        self._starts.extend(self.positions + get_offsets(stream.lengths + GAPS)[:-1])
        self._title_lengths.extend(stream.title_lengths)
        self._text_lengths.extend(stream.lengths)
        self._lengths.extend(get_lengths(stream.title_lengths, stream.lengths))
        self.positions += stream.size


def get_lengths(title_lengths: Integers, text_lengths: Integers) -> Floats:
    """Return the weighted lengths of documents from the terms of their titles and of their texts."""
    return (text_lengths + (TITLE_WEIGHT - 1) * title_lengths).astype(np.float64)


def _check_id(id: str) -> int:
    return zlib.crc32(id.encode("utf-8", "surrogatepass"))


def _group_by_name(held: Sequence[Mapping[str, Sequence[T]]], first: int) -> dict[str, list[tuple[int, Sequence[T]]]]:
    """Return name → (row, items) of every document that has items under it, by row; the documents begin at `first`."""
    named: dict[str, list[tuple[int, Sequence[T]]]] = {}
    for row, each in enumerate(held, first):
        for name, items in each.items():
            if items:
                named.setdefault(name, []).append((row, items))
    return named


def _read_tokens(rows: Sequence[IndexRow], first_row: int, first_position: int) -> TokenStream:
    """Return the tokens of documents; see `encode_terms` for how they are written."""
    numbers = np.frombuffer(b"".join(row.terms for row in rows), "<u8").astype(np.uint64)
    counts = np.array([len(row.terms) // 8 for row in rows], np.int64)
    headers = get_offsets(counts)[:-1]
    title_lengths = numbers[headers].astype(np.int64)
    return TokenStream(first_row, first_position, np.delete(numbers, headers), title_lengths, counts - 1)
