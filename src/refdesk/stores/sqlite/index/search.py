"""One search over one state of the index, which stands in parts: each is asked, and the answers are put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from refdesk.core.keeping.encoding import decode_instant
from refdesk.model import BEST_FIRST, Candidate, FacetCount, Found, SortKey, State, facet_key
from refdesk.stores.sqlite.index.columns import Floats, Mask, RowNumbers
from refdesk.stores.sqlite.index.documents import STATES, Documents
from refdesk.stores.sqlite.index.filters import mark_passing
from refdesk.stores.sqlite.index.lexical import Question, Scores, find_best, make_question, score_rows, score_some
from refdesk.stores.sqlite.index.ordering import SortValues, rank_texts, select_first
from refdesk.stores.sqlite.index.postings import Segment
from refdesk.stores.sqlite.index.texts import get_texts
from refdesk.stores.sqlite.index.vectors import Passages

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from refdesk.model import FindRequest, VectorQuery

_BY_ID = SortKey("id")

_SUPERSEDED = STATES.index(State.SUPERSEDED)
_NOT_COMPARED = (None, None)

_FEW = 2048
"""Up to so many rows that pass a filter, each is scored by itself."""

_Comparisons: TypeAlias = "dict[int, tuple[float, tuple[int, int]]]"
"""Row → cosine and place of its best passage, for those that have one."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A part of the index as it stood at one time; never changes, so any number of searches may read it at once.

    Attributes:
        passages: By model.
    """

    documents: Documents
    segments: tuple[Segment, ...]
    passages: Mapping[str, Passages]


@dataclass(slots=True)
class _Answer:
    """What one part says; its rows are numbers of its own.

    Attributes:
        listed: The first matches in the order asked.
        titled: The newest whose title contains what was asked.
        nearest: The nearest, in order; `cosines` are theirs.
        matching: All matches, where all were looked at.
        scored: The lexical score of some rows, and whether every term occurs there.
    """

    part: Snapshot
    passing: Mask
    listed: RowNumbers
    total: int
    titled: RowNumbers = field(default_factory=lambda: np.empty(0, np.intp))
    nearest: RowNumbers = field(default_factory=lambda: np.empty(0, np.intp))
    cosines: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    matching: Mask | None = None
    scored: dict[int, tuple[float, bool]] = field(default_factory=dict[int, tuple[float, bool]])


def find(request: FindRequest, parts: Sequence[Snapshot]) -> Found:
    """Return what matches; see `refdesk.protocols.Store.find`."""
    held = [part for part in parts if part.documents.living]
    question = None
    if request.text is not None:
        question = make_question(request.text, [(part.documents, part.segments) for part in held])
    answers = [_ask(request, question, part) for part in held]
    listed = _join_listed(request, question, answers)
    joining = _join_nearest(request, answers) | _join_titled(request, answers)
    joining -= set(listed)
    candidates = _describe(request, question, answers, [*listed, *joining])
    found = [candidates[each] for each in listed]
    others = sorted((candidates[each] for each in joining), key=_get_nearness)
    facets = {name: _count_facet(name, answers) for name in request.facets}
    return Found((*found, *others), sum(answer.total for answer in answers), facets)


_Place: TypeAlias = tuple[int, int]
"""Number of a part, and a row of it."""


def _ask(request: FindRequest, question: Question | None, part: Snapshot) -> _Answer:
    documents = part.documents
    passing = documents.is_live
    if request.where is not None:
        passing = passing & mark_passing(request.where, documents)
    answer = _list_best(request, question, part, passing) or _list_all(request, question, part, passing)
    if request.title_contains is not None:
        titled = np.flatnonzero(documents.mark_titled(request.title_contains, passing))
        answer.titled = _select_newest(titled, documents, request.depth)
    passages = part.passages.get(request.vector.model) if request.vector else None
    if request.vector and passages and passages.vectors.shape[1] == len(request.vector.vector):
        answer.nearest, answer.cosines = _select_nearest(request, request.vector, passages, answer, documents)
    return answer


def _list_best(request: FindRequest, question: Question | None, part: Snapshot, passing: Mask) -> _Answer | None:
    """Return the best matches by words where nothing else was asked for, or `None`."""
    if question is None or request.counts or request.facets or request.order != BEST_FIRST:
        return None
    if question.phrases or len(part.segments) != 1:
        return None
    documents, few = part.documents, None
    is_everything = passing is documents.is_live and documents.living == documents.count
    if passing is not documents.is_live and int(np.count_nonzero(passing)) <= _FEW:
        few = np.flatnonzero(passing)
    wanted = None if is_everything else passing
    rows = few if few is not None else find_best(question, documents, part.segments[0], wanted, request.depth)
    if rows is None:
        return None
    lexical, has_all = score_some(question, (documents, part.segments), rows)
    is_match = lexical > 0.0
    rows, lexical, has_all = rows[is_match], lexical[is_match], has_all[is_match]
    order: list[SortValues] = [
        lambda at, _: -lexical[at],
        lambda at, _: -documents.modified[rows[at]],
        lambda at, depth: _get_text_values(documents.ids, descending=False)(rows[at], depth),
    ]
    first = select_first(np.arange(len(rows)), order, request.depth)
    scores = zip(lexical[first].tolist(), has_all[first].tolist(), strict=True)
    scored = dict(zip(_to_list(rows[first]), scores, strict=True))
    return _Answer(part, passing, rows[first], len(rows), scored=scored)


def _list_all(request: FindRequest, question: Question | None, part: Snapshot, passing: Mask) -> _Answer:
    documents = part.documents
    scores = _score(request, question, part)
    matching = passing & scores.matches
    order = [_get_sort_values(key, documents, scores) for key in (*request.order, _BY_ID)]
    listed = select_first(np.flatnonzero(matching), order, request.depth)
    return _Answer(part, passing, listed, int(np.count_nonzero(matching)), matching=matching)


def _score(request: FindRequest, question: Question | None, part: Snapshot) -> Scores:
    if question is not None:
        return score_rows(question, (part.documents, part.segments))
    count = part.documents.count
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
    return lambda rows, depth: rank_texts(get_texts(texts, rows), depth, descending=descending)


def _select_newest(rows: RowNumbers, documents: Documents, depth: int) -> RowNumbers:
    order: list[SortValues] = [
        lambda rows, _: -documents.modified[rows],
        _get_text_values(documents.ids, descending=False),
    ]
    return select_first(rows, order, depth)


def _select_nearest(
    request: FindRequest, query: VectorQuery, passages: Passages, answer: _Answer, documents: Documents
) -> tuple[RowNumbers, NDArray[np.float32]]:
    """Return the rows of the nearest documents, nearest first, ties by id, with their cosines."""
    is_everything = answer.passing is documents.is_live and documents.living == documents.count
    wanted = None if is_everything else answer.passing
    groups, cosines = passages.find_nearest(wanted, query.vector, request.depth, request.effort)
    rows = passages.group_rows[groups].astype(np.intp)
    by_id = _get_text_values(documents.ids, descending=False)
    order: list[SortValues] = [
        lambda at, _: -cosines[at].astype(np.float64),
        lambda at, wanted: by_id(rows[at], wanted),
    ]
    first = select_first(np.arange(len(rows)), order, request.depth)
    return rows[first], cosines[first]


def _join_listed(request: FindRequest, question: Question | None, answers: Sequence[_Answer]) -> list[_Place]:
    places = [(number, row) for number, answer in enumerate(answers) for row in _to_list(answer.listed)]
    if sum(bool(len(answer.listed)) for answer in answers) < 2:
        return places
    places.sort(key=lambda place: answers[place[0]].part.documents.ids[place[1]])
    for key in reversed(request.order):
        values = _get_sort_texts(key, question, answers)
        places.sort(key=values.__getitem__, reverse=key.descending)
    return places[: request.depth]


def _get_sort_texts(
    key: SortKey, question: Question | None, answers: Sequence[_Answer]
) -> dict[_Place, SupportsRichComparison]:
    """Return what each listed row is sorted by, across parts."""
    values: dict[_Place, SupportsRichComparison] = {}
    for number, answer in enumerate(answers):
        documents, rows = answer.part.documents, answer.listed
        lexical, has_all = _score_some(question, answer, rows)
        columns: dict[str, Sequence[SupportsRichComparison]] = {
            "all_terms": has_all.tolist(),
            "lexical": lexical.tolist(),
            "modified": documents.modified[rows].tolist(),
            "created": documents.created[rows].tolist(),
            "title": get_texts(documents.titles, rows),
            "id": get_texts(documents.ids, rows),
        }
        values.update(zip([(number, row) for row in rows.tolist()], columns[key.by], strict=True))
    return values


def _join_nearest(request: FindRequest, answers: Sequence[_Answer]) -> set[_Place]:
    if sum(bool(len(each.nearest)) for each in answers) < 2:
        return {(number, row) for number, each in enumerate(answers) for row in _to_list(each.nearest)}
    found = [
        (-cosine, id, (number, row))
        for number, each in enumerate(answers)
        for cosine, id, row in zip(
            each.cosines.tolist(),
            get_texts(each.part.documents.ids, each.nearest),
            _to_list(each.nearest),
            strict=True,
        )
    ]
    return {place for _, _, place in sorted(found)[: request.depth]}


def _join_titled(request: FindRequest, answers: Sequence[_Answer]) -> set[_Place]:
    found = [
        (-int(answer.part.documents.modified[row]), answer.part.documents.ids[row], (number, row))
        for number, answer in enumerate(answers)
        for row in _to_list(answer.titled)
    ]
    return {place for _, _, place in sorted(found)[: request.depth]}


def _to_list(rows: RowNumbers) -> list[int]:
    return rows.tolist()


def _get_nearness(candidate: Candidate) -> tuple[bool, float, str]:
    return candidate.cosine is None, -(candidate.cosine or 0.0), candidate.id


def _describe(
    request: FindRequest, question: Question | None, answers: Sequence[_Answer], places: Sequence[_Place]
) -> dict[_Place, Candidate]:
    candidates: dict[_Place, Candidate] = {}
    for number, answer in enumerate(answers):
        rows = np.array([row for part, row in places if part == number], np.intp)
        if len(rows):
            described = _describe_rows(request, question, answer, rows)
            candidates.update(zip([(number, row) for row in rows.tolist()], described, strict=True))
    return candidates


def _describe_rows(
    request: FindRequest, question: Question | None, answer: _Answer, rows: RowNumbers
) -> list[Candidate]:
    documents, query = answer.part.documents, request.vector
    passages = answer.part.passages.get(query.model) if query else None
    comparisons: _Comparisons = _compare(rows, documents.count, passages, query) if query and passages else {}
    _score_more(question, answer, rows)
    titled = None if request.title_contains is None else facet_key(request.title_contains)
    has_title = [titled in title for title in get_texts(documents.titles, rows)] if titled is not None else None
    modified: list[int] = documents.modified[rows].tolist()
    states: list[int] = documents.states[rows].tolist()
    values = zip(_to_list(rows), get_texts(documents.ids, rows), modified, states, strict=True)
    return [
        Candidate(
            id,
            decode_instant(instant),
            answer.scored[row][0],
            *comparisons.get(row, _NOT_COMPARED),
            answer.scored[row][1],
            has_title is not None and has_title[at],
            state=STATES[state],
            head_id=documents.heads.get(row) if state == _SUPERSEDED else None,
        )
        for at, (row, id, instant, state) in enumerate(values)
    ]


def _score_more(question: Question | None, answer: _Answer, rows: RowNumbers) -> None:
    """Score the rows that are not yet."""
    more = np.array([row for row in _to_list(rows) if row not in answer.scored], np.intp)
    if len(more):
        scores = zip(*(each.tolist() for each in _score_some(question, answer, more)), strict=True)
        answer.scored.update(zip(_to_list(more), scores, strict=True))


def _score_some(question: Question | None, answer: _Answer, rows: RowNumbers) -> tuple[Floats, Mask]:
    if question is None:
        return np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    return score_some(question, (answer.part.documents, answer.part.segments), rows)


def _compare(rows: RowNumbers, count: int, passages: Passages, query: VectorQuery) -> _Comparisons:
    if passages.vectors.shape[1] != len(query.vector):
        return {}
    groups = passages.find_groups_of(rows, count)
    has_group = groups >= 0
    cosines, best = passages.find_best_passages(groups[has_group], query.vector)
    places = zip(passages.starts[best].tolist(), passages.ends[best].tolist(), strict=True)
    return dict(zip(rows[has_group].tolist(), zip(cosines.tolist(), places, strict=True), strict=True))


def _count_facet(name: str, answers: Sequence[_Answer]) -> tuple[FacetCount, ...]:
    held = [(each.part.documents.facets.get(name), each.matching) for each in answers]
    counted = [(facet, matching) for facet, matching in held if facet is not None and matching is not None]
    if len(counted) <= 1:
        return counted[0][0].count(counted[0][1]) if counted else ()
    holders: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for facet, matching in counted:
        for total, tally in zip((holders, uses), facet.tally(matching), strict=True):
            total.update(tally)
    usual: dict[str, str] = {}
    for spelling, _ in sorted(uses.items(), key=lambda use: (-use[1], use[0])):
        usual.setdefault(facet_key(spelling), spelling)
    ranked = sorted((-count, usual[key]) for key, count in holders.items())
    return tuple(FacetCount(text, -count) for count, text in ranked)
