"""One search over one state of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np

from refdesk.model import Candidate, FindRequest, Found, SortKey, VectorQuery
from refdesk.stores.sqlite.index.columns import Mask, RowNumbers
from refdesk.stores.sqlite.index.documents import Documents
from refdesk.stores.sqlite.index.filters import mark_passing
from refdesk.stores.sqlite.index.lexical import Scores, score_rows
from refdesk.stores.sqlite.index.ordering import SortValues, rank_texts, select_first
from refdesk.stores.sqlite.index.postings import Segment
from refdesk.stores.sqlite.index.vectors import Passages

_BY_ID = SortKey("id")

_Comparisons: TypeAlias = "dict[int, tuple[float, tuple[int, int]]]"
"""Row → cosine and place of its best passage, for those that have one."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The whole index as it stood at one time; never changes, so any number of searches may read it at once.

    Attributes:
        passages: By model.
    """

    documents: Documents
    segments: tuple[Segment, ...]
    passages: Mapping[str, Passages]


def find(request: FindRequest, snapshot: Snapshot) -> Found:
    """Return what matches; see `refdesk.protocols.Store.find`."""
    documents = snapshot.documents
    passing = documents.is_live
    if request.where is not None:
        passing = passing & mark_passing(request.where, documents)
    scores = _score(request, snapshot)
    matching = passing & scores.matches
    order = [_get_sort_values(key, documents, scores) for key in (*request.order, _BY_ID)]
    rows = select_first(np.flatnonzero(matching), order, request.depth)
    comparisons: _Comparisons = {}
    if request.vector is not None and (passages := snapshot.passages.get(request.vector.model)) is not None:
        near = _select_nearest(request.vector, passages, passing, documents, request.depth)
        rows = np.concatenate((rows, near[~np.isin(near, rows)]))
        comparisons = _compare(rows, documents.count, passages, request.vector)
    counts = {name: held.count(matching) for name in request.facets if (held := documents.facets.get(name))}
    return Found(
        candidates=_make_candidates(rows, scores, documents, comparisons),
        total=int(np.count_nonzero(matching)),
        facets={name: counts.get(name, ()) for name in request.facets},
    )


def _score(request: FindRequest, snapshot: Snapshot) -> Scores:
    if request.text is not None:
        return score_rows(request.text, snapshot.documents, snapshot.segments)
    count = snapshot.documents.count
    nothing_asked = np.full(count, request.vector is None)
    return Scores(np.zeros(count), np.zeros(count, np.bool_), nothing_asked)


def _get_sort_values(key: SortKey, documents: Documents, scores: Scores) -> SortValues:
    sign = -1 if key.descending else 1
    match key.by:
        case "all_terms":
            return lambda rows, _: sign * scores.has_all_terms[rows].astype(np.int64)
        case "lexical":
            return lambda rows, _: sign * scores.lexical[rows]
        case "modified":
            return lambda rows, _: sign * documents.modified[rows]
        case "created":
            return lambda rows, _: sign * documents.created[rows]
        case "title":
            return _get_text_values(documents.titles, descending=key.descending)
        case "id":
            return _get_text_values(documents.ids, descending=key.descending)
        case _:
            assert_never(key.by)


def _get_text_values(texts: Sequence[str], *, descending: bool) -> SortValues:
    return lambda rows, depth: rank_texts([*map(texts.__getitem__, rows.tolist())], depth, descending=descending)


def _select_nearest(
    query: VectorQuery, passages: Passages, passing: Mask, documents: Documents, depth: int
) -> RowNumbers:
    """Return the rows of the nearest documents, nearest first, ties by id."""
    groups, cosines = passages.find_nearest(passing, query.vector, depth)
    rows = passages.group_rows[groups].astype(np.intp)
    by_id = _get_text_values(documents.ids, descending=False)
    order: list[SortValues] = [
        lambda at, _: -cosines[at].astype(np.float64),
        lambda at, wanted: by_id(rows[at], wanted),
    ]
    return rows[select_first(np.arange(len(rows)), order, depth)]


def _compare(rows: RowNumbers, count: int, passages: Passages, query: VectorQuery) -> _Comparisons:
    groups = passages.find_groups_of(rows, count)
    has_group = groups >= 0
    cosines, best = passages.find_best_passages(groups[has_group], query.vector)
    places = zip(passages.starts[best].tolist(), passages.ends[best].tolist(), strict=True)
    return dict(zip(rows[has_group].tolist(), zip(cosines.tolist(), places, strict=True), strict=True))


def _make_candidates(
    rows: RowNumbers, scores: Scores, documents: Documents, comparisons: _Comparisons
) -> tuple[Candidate, ...]:
    lexical, has_all_terms = scores.lexical[rows].tolist(), scores.has_all_terms[rows].tolist()
    numbers: list[int] = rows.tolist()
    return tuple(
        Candidate(documents.ids[row], documents.instants[row], score, *comparisons.get(row, (None, None)), has_all)
        for row, score, has_all in zip(numbers, lexical, has_all_terms, strict=True)
    )
