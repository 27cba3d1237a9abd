"""One search over a snapshot of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np

from refdesk.model import Candidate, FacetCount, FindRequest, Found, SortKey, VectorQuery
from refdesk.stores.sqlite.index.columns import Mask, RowNumbers
from refdesk.stores.sqlite.index.documents import STATES, Documents
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
    """A snapshot of the whole index; immutable, so any number of searches may read it at once.

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
    listed = select_first(np.flatnonzero(matching), order, request.depth)
    return Found(
        candidates=_make_candidates(request, snapshot, passing, scores, listed),
        total=int(np.count_nonzero(matching)),
        facets={name: _count_facet(name, matching, documents) for name in request.facets},
    )


def _count_facet(name: str, matching: Mask, documents: Documents) -> tuple[FacetCount, ...]:
    held = documents.facets.get(name)
    return held.count(matching) if held else ()


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


def _make_candidates(
    request: FindRequest, snapshot: Snapshot, passing: Mask, scores: Scores, listed: RowNumbers
) -> tuple[Candidate, ...]:
    """Return the listed rows as candidates, behind them those that join by their vector or title, nearest first."""
    documents, query = snapshot.documents, request.vector
    passages = snapshot.passages.get(query.model) if query else None
    joining = np.empty(0, np.intp)
    titled = joining
    if request.title_contains is not None:
        titled = np.flatnonzero(documents.mark_titled(request.title_contains, passing))
        joining = _select_newest(titled, documents, request.depth)
    if query and passages:
        joining = np.union1d(joining, _select_nearest(request, query, passages, passing, documents))
    rows = np.concatenate((listed, joining[~np.isin(joining, listed)]))
    comparisons = _compare(rows, documents.count, passages, query) if query and passages else {}
    candidates = _describe(rows, np.isin(rows, titled), scores, documents, comparisons)
    return (*candidates[: len(listed)], *sorted(candidates[len(listed) :], key=_get_nearness))


def _get_nearness(candidate: Candidate) -> tuple[bool, float, str]:
    return candidate.cosine is None, -(candidate.cosine or 0.0), candidate.id


def _select_newest(rows: RowNumbers, documents: Documents, depth: int) -> RowNumbers:
    order: list[SortValues] = [
        lambda rows, _: -documents.modified[rows],
        _get_text_values(documents.ids, descending=False),
    ]
    return select_first(rows, order, depth)


def _select_nearest(
    request: FindRequest, query: VectorQuery, passages: Passages, passing: Mask, documents: Documents
) -> RowNumbers:
    """Return the rows of the nearest documents, nearest first, ties by id."""
    groups, cosines = passages.find_nearest(passing, query.vector, request.depth, request.effort)
    rows = passages.group_rows[groups].astype(np.intp)
    by_id = _get_text_values(documents.ids, descending=False)
    order: list[SortValues] = [
        lambda at, _: -cosines[at].astype(np.float64),
        lambda at, wanted: by_id(rows[at], wanted),
    ]
    return rows[select_first(np.arange(len(rows)), order, request.depth)]


def _compare(rows: RowNumbers, count: int, passages: Passages, query: VectorQuery) -> _Comparisons:
    groups = passages.find_groups_of(rows, count)
    has_group = groups >= 0
    cosines, best = passages.find_best_passages(groups[has_group], query.vector)
    places = zip(passages.starts[best].tolist(), passages.ends[best].tolist(), strict=True)
    return dict(zip(rows[has_group].tolist(), zip(cosines.tolist(), places, strict=True), strict=True))


def _describe(
    rows: RowNumbers, is_titled: Mask, scores: Scores, documents: Documents, comparisons: _Comparisons
) -> list[Candidate]:
    numbers: list[int] = rows.tolist()
    states: list[int] = documents.states[rows].tolist()
    values = zip(scores.lexical[rows].tolist(), scores.has_all_terms[rows].tolist(), is_titled.tolist(), strict=True)
    return [
        Candidate(
            documents.ids[row],
            documents.instants[row],
            lexical,
            *comparisons.get(row, (None, None)),
            *marks,
            state=STATES[state],
            head_id=documents.heads.get(row),
        )
        for row, state, (lexical, *marks) in zip(numbers, states, values, strict=True)
    ]
