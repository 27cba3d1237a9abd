"""Merges several states of an index into one of living documents only: what files hold, and what many become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.binary import PIECE, make_codes
from refdesk.stores.sqlite.index.columns import Integers, Rows, Scalar, expand_ranges, get_offsets
from refdesk.stores.sqlite.index.date_ranges import Spans
from refdesk.stores.sqlite.index.documents import Documents, get_lengths
from refdesk.stores.sqlite.index.facets import Facet
from refdesk.stores.sqlite.index.postings import GAPS
from refdesk.stores.sqlite.index.runs import Source, merge_sources
from refdesk.stores.sqlite.index.search import Snapshot
from refdesk.stores.sqlite.index.texts import Grams, SparseTexts, TextNumbers, Texts
from refdesk.stores.sqlite.index.vectors import CODES_FROM, Passages

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which rows go where.

    Attributes:
        kept: The living rows of each part.
        order: Sorts the kept rows of all parts, one part after another, by key.
        new_rows: The new number of each row of each part, -1 for the dead.
    """

    kept: Sequence[Integers]
    order: Integers
    new_rows: Sequence[Rows]

    def gather(self, columns: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return a column of the merged state from the columns of the parts."""
        return np.concatenate([column[rows] for column, rows in zip(columns, self.kept, strict=True)])[self.order]

    def gather_texts(self, columns: Sequence[Sequence[str]]) -> Texts:
        """Return the texts of the merged state from the texts of the parts."""
        return join_texts(columns, self.kept, self.order)


def merge_snapshots(parts: Sequence[Snapshot]) -> Snapshot:
    """Return one state with all that is alive in the parts, by key; a document may be alive in only one part."""
    plan = _make_plan([part.documents for part in parts])
    documents = _merge_documents([part.documents for part in parts], plan)
    sources = [
        Source.of(segment, part.documents, new_rows, documents.starts)
        for part, new_rows in zip(parts, plan.new_rows, strict=True)
        for segment in part.segments
    ]
    segment = merge_sources(sources, documents.count).with_bounds(documents.lengths, documents.mean_length)
    del sources
    models = dict.fromkeys(model for part in parts for model in part.passages)
    passages = {model: _merge_passages([part.passages.get(model) for part in parts], plan) for model in models}
    return Snapshot(documents, (segment,), {model: each for model, each in passages.items() if each is not None})


def join_texts(columns: Sequence[Sequence[str]], kept: Sequence[Integers], order: Integers) -> Texts:
    """Return the kept texts of all columns, one after another, put into an order."""
    encoded = [column if isinstance(column, Texts) else Texts.of(column) for column in columns]
    bases = np.cumsum([0, *(len(each.content) for each in encoded)])
    starts = np.concatenate([each.offsets[rows] + base for each, rows, base in zip(encoded, kept, bases, strict=False)])
    lengths = np.concatenate([np.diff(each.offsets)[rows] for each, rows in zip(encoded, kept, strict=True)])
    content = np.concatenate([each.content for each in encoded])
    starts, lengths = starts[order], lengths[order]
    return Texts(get_offsets(lengths), content[expand_ranges(starts, lengths)])


def _make_plan(parts: Sequence[Documents]) -> _Plan:
    kept = [np.flatnonzero(part.is_live) for part in parts]
    order = np.argsort(np.concatenate([part.keys[rows] for part, rows in zip(parts, kept, strict=True)]), kind="stable")
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    new_rows, first = list[Rows](), 0
    for part, rows in zip(parts, kept, strict=True):
        numbers = np.full(part.count, -1, np.int32)
        numbers[rows] = places[first : first + len(rows)]
        new_rows.append(numbers)
        first += len(rows)
    return _Plan(kept, order, new_rows)


def _merge_documents(parts: Sequence[Documents], plan: _Plan) -> Documents:
    heads = {
        int(numbers[row]): head
        for part, numbers in zip(parts, plan.new_rows, strict=True)
        for row, head in part.heads.items()
        if row < len(numbers) and numbers[row] >= 0
    }
    titles = plan.gather_texts([part.titles for part in parts])
    title_lengths = plan.gather([part.title_lengths for part in parts])
    text_lengths = plan.gather([part.text_lengths for part in parts])
    lengths = get_lengths(title_lengths, text_lengths)
    sizes = get_offsets(text_lengths + GAPS)
    return Documents(
        is_live=np.ones(len(plan.order), np.bool_),
        living=len(plan.order),
        total_length=float(lengths.sum()),
        keys=plan.gather([part.keys for part in parts]),
        ids=plan.gather_texts([part.ids for part in parts]),
        id_checks=plan.gather([part.id_checks for part in parts]),
        heads=SparseTexts.of(heads),
        titles=titles,
        grams=Grams.of(titles),
        states=plan.gather([part.states for part in parts]),
        created=plan.gather([part.created for part in parts]),
        modified=plan.gather([part.modified for part in parts]),
        lengths=lengths,
        title_lengths=title_lengths,
        text_lengths=text_lengths,
        starts=sizes[:-1],
        positions=int(sizes[-1]),
        facets=_merge_named([part.facets for part in parts], plan, _merge_facets),
        date_ranges=_merge_named([part.date_ranges for part in parts], plan, _merge_spans),
    )


def _merge_named(
    parts: Sequence[Mapping[str, T]], plan: _Plan, merge: Callable[[Sequence[tuple[T, Rows]]], T]
) -> dict[str, T]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: merge([(part[name], rows) for part, rows in zip(parts, plan.new_rows, strict=True) if name in part])
        for name in names
    }


def _merge_facets(parts: Sequence[tuple[Facet, Rows]]) -> Facet:
    spellings: dict[str, int] = {}
    numbers: dict[str, int] = {}
    value_of: list[int] = []
    rows, codes, firsts = list[Rows](), list[Rows](), list[NDArray[np.bool_]]()
    for facet, new_rows in parts:
        moved = new_rows[facet.rows]
        is_kept = moved >= 0
        used = np.flatnonzero(np.bincount(facet.spellings[is_kept]))
        translated = np.zeros(int(used[-1]) + 1 if len(used) else 0, np.int32)
        numbered: list[int] = used.tolist()
        for spelling in numbered:
            text = facet.texts[spelling]
            if text not in spellings:
                spellings[text] = len(spellings)
                value_of.append(numbers.setdefault(facet.get_key(spelling), len(numbers)))
            translated[spelling] = spellings[text]
        rows.append(moved[is_kept])
        codes.append(translated[facet.spellings[is_kept]])
        firsts.append(facet.is_first[is_kept])
    order = np.argsort(np.concatenate(rows), kind="stable")
    held, values = np.concatenate(codes)[order], np.array(value_of, np.int32)
    return Facet(
        rows=np.concatenate(rows)[order].astype(np.int64),
        values=values[held],
        spellings=held,
        is_first=np.concatenate(firsts)[order],
        numbers=TextNumbers.of(numbers),
        texts=Texts.of(list(spellings)),
        value_of=values,
    ).by_value()


def _merge_spans(parts: Sequence[tuple[Spans, Rows]]) -> Spans:
    rows = np.concatenate([new_rows[spans.rows] for spans, new_rows in parts])
    order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
    starts = np.concatenate([spans.starts for spans, _ in parts])
    ends = np.concatenate([spans.ends for spans, _ in parts])
    return Spans(rows[order].astype(np.int32), starts[order], ends[order])


def _merge_passages(parts: Sequence[Passages | None], plan: _Plan) -> Passages | None:
    """Return the passages of living documents; if a model has two widths, the newest part's counts."""
    width = next(each.vectors.shape[1] for each in reversed(parts) if each is not None)
    named = zip(parts, plan.new_rows, strict=True)
    held = [(each, rows) for each, rows in named if each is not None and each.vectors.shape[1] == width]
    group_rows = np.concatenate([np.append(rows, np.int32(-1))[each.group_rows] for each, rows in held])
    order = np.argsort(group_rows, kind="stable")[np.count_nonzero(group_rows < 0) :]
    if not len(order):
        return None
    bases: list[int] = np.cumsum([0, *(len(each.vectors) for each, _ in held)]).tolist()
    starts = np.concatenate([each.group_starts + base for (each, _), base in zip(held, bases, strict=False)])[order]
    sizes = np.concatenate([each.group_sizes for each, _ in held])[order]
    taken = expand_ranges(starts, sizes)
    vectors = np.empty((len(taken), width), "<f2")
    for (each, _), base in zip(held, bases, strict=False):
        places = np.flatnonzero((taken >= base) & (taken < base + len(each.vectors)))
        for at in (places[start : start + PIECE] for start in range(0, len(places), PIECE)):
            vectors[at] = each.vectors[taken[at] - base]
    codes = make_codes(vectors) if len(vectors) >= CODES_FROM else None
    rows = group_rows[order].astype(np.int32)
    group_of_row = np.full(len(plan.order), -1, np.int32)
    group_of_row[rows] = np.arange(len(rows), dtype=np.int32)
    return Passages(
        vectors=vectors,
        starts=np.concatenate([each.starts for each, _ in held])[taken],
        ends=np.concatenate([each.ends for each, _ in held])[taken],
        group_starts=get_offsets(sizes)[:-1],
        group_sizes=sizes,
        group_rows=rows,
        group_of_row=group_of_row,
        codes=codes,
    )
