"""One search over one state of the index, which consists of parts: each is asked, and the answers are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, cast

import numpy as np
from numpy.typing import NDArray

from refdesk.model import BEST_FIRST, Candidate, FacetCount, Found, SortKey, State, facet_key
from refdesk.stores.sqlite.index.columns import Floats, Integers, Mask, RowNumbers
from refdesk.stores.sqlite.index.date_ranges import to_instants
from refdesk.stores.sqlite.index.documents import STATES, Documents
from refdesk.stores.sqlite.index.filters import select_passing
from refdesk.stores.sqlite.index.lexical import Question, Scores, find_best, make_question, score_rows, score_some
from refdesk.stores.sqlite.index.ordering import SortValues, rank_texts, select_first
from refdesk.stores.sqlite.index.passing import Passing
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
"""If no more rows than this pass a filter, each is scored by itself."""

_Place: TypeAlias = tuple[int, int]
"""Number of a part, and which of its listed rows."""

_Compared: TypeAlias = "tuple[Iterable[float | None], Iterable[tuple[int, int] | None]]"

_MAKE: Callable[[type[Candidate], Iterable[object]], Candidate] = cast("Any", tuple).__new__
"""Does what `Candidate._make` does, without its check of the length."""

_NOTHING = np.empty(0, np.intp), (np.empty(0), np.empty(0, np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A part of the index as it was at one time; it never changes, so any number of searches may read it at once.

    Attributes:
        passages: By model.
    """

    documents: Documents
    segments: tuple[Segment, ...]
    passages: Mapping[str, Passages]


@dataclass(slots=True)
class _Answer:
    """The answer of one part; row numbers are that part's own.

    Attributes:
        listed: The first matches, in the order asked for.
        scores: For `listed`: the lexical score, and whether every term occurs.
        titled: The newest whose title contains what was asked for.
        nearest: The nearest, in order; `cosines` are theirs.
        matching: All matches, if all were looked at.
    """

    part: Snapshot
    passing: Passing
    listed: RowNumbers
    scores: tuple[Floats, Mask]
    total: int
    titled: RowNumbers = field(default_factory=lambda: np.empty(0, np.intp))
    nearest: RowNumbers = field(default_factory=lambda: np.empty(0, np.intp))
    cosines: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    matching: Mask | None = None


def find(request: FindRequest, parts: Sequence[Snapshot]) -> Found:
    """Return what matches; see `refdesk.protocols.Store.find`."""
    held = [part for part in parts if part.documents.living]
    question = None
    if request.text is not None:
        question = make_question(request.text, [(part.documents, part.segments) for part in held])
    answers = [_ask(request, question, part) for part in held]
    order = _order_listed(request, answers)
    _cut_nearest(request, answers)
    _cut_titled(request, answers)
    described = [_describe(request, question, answer) for answer in answers]
    listed = (
        [described[number][0][at] for number, at in order] if order else [each for one, _ in described for each in one]
    )
    others = [each for _, joining in described for each in joining]
    if len(answers) > 1 or request.title_contains is not None:
        others.sort(key=_get_nearness)
    facets = {name: _count_facet(name, answers) for name in request.facets}
    return Found((*listed, *others), sum(answer.total for answer in answers), facets)


def _ask(request: FindRequest, question: Question | None, part: Snapshot) -> _Answer:
    documents = part.documents
    passing = select_passing(request.where, documents)
    answer = _list_best(request, question, part, passing) or _list_all(request, question, part, passing)
    if request.title_contains is not None:
        titled = documents.find_titled(request.title_contains, passing)
        answer.titled = _select_newest(titled, documents, request.depth)
    passages = _get_passages(request, part)
    if request.vector is not None and passages is not None:
        answer.nearest, answer.cosines = _select_nearest(request, request.vector, passages, answer, documents)
    return answer


def _get_passages(request: FindRequest, part: Snapshot) -> Passages | None:
    """Return the passages that the query can be compared with."""
    if request.vector is None:
        return None
    passages = part.passages.get(request.vector.model)
    return passages if passages is not None and passages.vectors.shape[1] == len(request.vector.vector) else None


def _list_best(request: FindRequest, question: Question | None, part: Snapshot, passing: Passing) -> _Answer | None:
    """Return the best lexical matches if nothing else was asked for, or `None`."""
    if question is None or request.counts or request.facets or request.order != BEST_FIRST:
        return None
    if question.phrases or len(part.segments) != 1:
        return None
    documents, rows = part.documents, None
    if not passing.is_everything and passing.count <= _FEW:
        rows = passing.rows
    if rows is None:
        wanted = None if passing.is_everything else passing.mask
        rows = find_best(question, documents, part.segments[0], wanted, request.depth)
    if rows is None:
        return None
    lexical, has_all = score_some(question, (documents, part.segments), rows)
    first = np.flatnonzero(lexical > 0.0)
    order: list[SortValues] = [
        lambda at, _: -lexical[at],
        lambda at, _: -documents.modified[rows[at]],
        lambda at, depth: _get_text_values(documents.ids, descending=False)(rows[at], depth),
    ]
    best = select_first(first, order, request.depth)
    return _Answer(part, passing, rows[best], (lexical[best], has_all[best]), len(first))


def _list_all(request: FindRequest, question: Question | None, part: Snapshot, passing: Passing) -> _Answer:
    documents = part.documents
    if question is None and request.vector is not None:
        return _Answer(part, passing, *_NOTHING, total=0)
    scores = _score(question, part)
    matching = scores.matches if passing.is_everything else passing.mask & scores.matches
    order = [_get_sort_values(key, documents, scores) for key in (*request.order, _BY_ID)]
    listed = select_first(np.flatnonzero(matching), order, request.depth)
    held = scores.lexical[listed], scores.has_all_terms[listed]
    return _Answer(part, passing, listed, held, int(np.count_nonzero(matching)), matching=matching)


def _score(question: Question | None, part: Snapshot) -> Scores:
    if question is not None:
        return score_rows(question, (part.documents, part.segments))
    count = part.documents.count
    return Scores(np.zeros(count), np.zeros(count, np.bool_), np.ones(count, np.bool_))


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
        case "date_range":
            return lambda rows, _: sign * _get_starts(key, documents)[rows]
        case _:
            assert_never(key.by)


def _get_starts(key: SortKey, documents: Documents) -> Floats:
    """Return each row's first start under the key's name, in microseconds; if it has none, a value that comes last."""
    spans = documents.date_ranges.get(key.name)
    starts = np.full(documents.count, np.inf)
    if spans is not None:
        np.minimum.at(starts, spans.rows, spans.starts)
    return np.where(np.isinf(starts), -np.inf, starts) if key.descending else starts


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
    groups, cosines = passages.find_nearest(answer.passing, query.vector, request.depth, request.effort)
    rows = passages.group_rows[groups].astype(np.intp)
    by_id = _get_text_values(documents.ids, descending=False)
    order: list[SortValues] = [
        lambda at, _: -cosines[at].astype(np.float64),
        lambda at, wanted: by_id(rows[at], wanted),
    ]
    first = select_first(np.arange(len(rows)), order, request.depth)
    return rows[first], cosines[first]


def _order_listed(request: FindRequest, answers: Sequence[_Answer]) -> list[_Place]:
    """Keep only the first listed over all parts, and return their order; none if at most one part has any."""
    if sum(bool(len(answer.listed)) for answer in answers) < 2:
        return []
    ids = [get_texts(answer.part.documents.ids, answer.listed) for answer in answers]
    places = [(number, at) for number, held in enumerate(ids) for at in range(len(held))]
    places.sort(key=lambda place: ids[place[0]][place[1]])
    for key in reversed(request.order):
        values = [_get_listed_values(key, answer) for answer in answers]
        places.sort(key=lambda place, values=values: values[place[0]][place[1]], reverse=key.descending)
    kept = Counter(number for number, _ in places[: request.depth])
    for number, each in enumerate(answers):
        each.listed = each.listed[: kept[number]]
        each.scores = each.scores[0][: kept[number]], each.scores[1][: kept[number]]
    return places[: request.depth]


def _get_listed_values(key: SortKey, answer: _Answer) -> Sequence[SupportsRichComparison]:
    """Return what each listed row of a part is sorted by, across parts."""
    documents, rows = answer.part.documents, answer.listed
    match key.by:
        case "all_terms":
            return answer.scores[1].tolist()
        case "lexical":
            return answer.scores[0].tolist()
        case "modified":
            return documents.modified[rows].tolist()
        case "created":
            return documents.created[rows].tolist()
        case "title":
            return get_texts(documents.titles, rows)
        case "id":
            return get_texts(documents.ids, rows)
        case "date_range":
            return _get_starts(key, documents)[rows].tolist()
        case _:
            assert_never(key.by)


def _cut_nearest(request: FindRequest, answers: Sequence[_Answer]) -> None:
    """Keep only the nearest over all parts."""
    if sum(bool(len(each.nearest)) for each in answers) < 2:
        return
    found = [
        (-cosine, id, number)
        for number, each in enumerate(answers)
        for cosine, id in zip(each.cosines.tolist(), get_texts(each.part.documents.ids, each.nearest), strict=True)
    ]
    kept = Counter(number for _, _, number in sorted(found)[: request.depth])
    for number, each in enumerate(answers):
        each.nearest, each.cosines = each.nearest[: kept[number]], each.cosines[: kept[number]]


def _cut_titled(request: FindRequest, answers: Sequence[_Answer]) -> None:
    """Keep only the newest over all parts."""
    if sum(bool(len(each.titled)) for each in answers) < 2:
        return
    found = [
        (-modified, id, number)
        for number, each in enumerate(answers)
        for modified, id in zip(
            _to_list(each.part.documents.modified[each.titled]),
            get_texts(each.part.documents.ids, each.titled),
            strict=True,
        )
    ]
    kept = Counter(number for _, _, number in sorted(found)[: request.depth])
    for number, each in enumerate(answers):
        each.titled = each.titled[: kept[number]]


def _to_list(rows: RowNumbers | Integers) -> list[int]:
    return rows.tolist()


def _get_nearness(candidate: Candidate) -> tuple[bool, float, str]:
    return candidate.cosine is None, -(candidate.cosine or 0.0), candidate.id


def _describe(
    request: FindRequest, question: Question | None, answer: _Answer
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the listed candidates, in order, and those found only by title or vector, nearest first."""
    listed = _to_list(answer.listed)
    known = set(listed)
    joining = [at for at, row in enumerate(_to_list(answer.nearest)) if row not in known]
    cosines, rows = answer.cosines[joining], answer.nearest[joining]
    if len(answer.titled):
        known.update(_to_list(rows))
        titled = [row for row in _to_list(answer.titled) if row not in known]
        rows = np.concatenate((rows, np.array(titled, np.intp)))
    lexical, has_all = answer.scores
    if len(rows):
        more = _score_some(question, answer.part, rows)
        lexical, has_all = np.concatenate((lexical, more[0])), np.concatenate((has_all, more[1]))
    rows = np.concatenate((answer.listed, rows))
    compared = _compare(request, answer.part, rows, slice(len(listed), len(listed) + len(joining)), cosines)
    candidates = _make_candidates(request, answer.part, rows, lexical, has_all, compared)
    return candidates[: len(listed)], candidates[len(listed) :]


def _make_candidates(
    request: FindRequest, part: Snapshot, rows: RowNumbers, lexical: Floats, has_all: Mask, compared: _Compared
) -> list[Candidate]:
    documents = part.documents
    states: list[int] = documents.states[rows].tolist()
    heads: Iterable[str | None] = repeat(None)
    if _SUPERSEDED in states:
        at_rows = zip(states, _to_list(rows), strict=True)
        heads = [documents.heads.get(row) if state == _SUPERSEDED else None for state, row in at_rows]
    has_title: Iterable[bool] = repeat(False)
    if request.title_contains is not None:
        wanted = facet_key(request.title_contains)
        has_title = [wanted in title for title in get_texts(documents.titles, rows)]
    columns = zip(
        get_texts(documents.ids, rows),
        to_instants(documents.modified[rows]),
        lexical.tolist(),
        *compared,
        has_all.tolist(),
        has_title,
        repeat(False),
        [STATES[state] for state in states],
        heads,
        strict=False,
    )
    return [*map(_MAKE, repeat(Candidate), columns)]


def _score_some(question: Question | None, part: Snapshot, rows: RowNumbers) -> tuple[Floats, Mask]:
    if question is None:
        return np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    return score_some(question, (part.documents, part.segments), rows)


def _compare(
    request: FindRequest, part: Snapshot, rows: RowNumbers, known: slice, cosines: NDArray[np.float32]
) -> _Compared:
    """Return the cosine of each row's best passage, and its place; `None` for rows that have no passage.

    Args:
        known: Which of the rows have been compared by at least one of their passages.
        cosines: The cosines of those.
    """
    passages = _get_passages(request, part)
    if request.vector is None or passages is None or not len(passages.vectors):
        return repeat(None), repeat(None)
    groups = passages.find_groups_of(rows, part.documents.count)
    is_open, values, best = groups >= 0, np.zeros(len(rows), np.float32), groups.copy()
    has_passage = is_open.tolist()
    if passages.are_single:
        values[known], is_open[known] = cosines, False
    open_rows = np.flatnonzero(is_open)
    if len(open_rows):
        values[open_rows], best[open_rows] = passages.find_best_passages(groups[open_rows], request.vector.vector)
    places = zip(passages.starts[best].tolist(), passages.ends[best].tolist(), strict=True)
    if all(has_passage):
        return values.tolist(), places
    pairs = zip(has_passage, values.tolist(), places, strict=True)
    compared = [(cosine, place) if has else _NOT_COMPARED for has, cosine, place in pairs]
    return [cosine for cosine, _ in compared], [place for _, place in compared]


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
