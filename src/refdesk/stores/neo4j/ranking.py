"""Ranks the retrieved documents: exact scores, sort orders, facet counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refdesk.core.search import bm25
from refdesk.model import Candidate, FacetCount, SortKey, facet_key

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

    from refdesk.model import FindRequest, TextQuery, Vector
    from refdesk.stores.neo4j.cache import Row, Vectors


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the database found for a request.

    Attributes:
        holders: Ids of all documents of the collection, except withdrawn ones, that hold a word of the question.
        passing: Those of the holders, or of all documents if there are no words, that pass the filter.
        titled: Ids of the newest documents whose title contains the text asked for.
        nearest: Ids of the documents nearest to the query's vector.
        living: How many documents of the collection are not withdrawn.
        length: The sum of the weighted lengths of those documents.
    """

    holders: Sequence[str] = ()
    passing: Sequence[str] = ()
    titled: Sequence[str] = ()
    nearest: Sequence[str] = ()
    living: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates without cosines: the first of those that match, in order, and those that join them."""

    listed: list[Candidate]
    joining: list[Candidate]
    total: int
    facets: dict[str, tuple[FacetCount, ...]]


class _Scorer:
    """BM25 of one question; see `refdesk.core.search.bm25`."""

    def __init__(self, text: TextQuery, rows: Mapping[str, Row], gathered: Gathered) -> None:
        self._text = text
        self._mean_length = gathered.length / max(gathered.living, 1)
        self._counts: dict[str, dict[str, int]] = {}
        asked = dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)])
        holders = [rows[id] for id in gathered.holders if id in rows]
        for row in rows.values():
            self._counts[row.id] = {term: count for term in asked if (count := _count(term, row))}
        frequencies = Counter(term for row in holders for term in self._counts[row.id])
        self._idf = {term: bm25.idf(gathered.living, frequencies[term]) for term in asked}

    def score(self, row: Row) -> float:
        counts = self._counts[row.id]
        return sum(
            bm25.term_score(counts.get(term, 0), row.length, self._mean_length, idf) for term, idf in self._idf.items()
        )

    def has_all_terms(self, row: Row) -> bool:
        return all(term in self._counts[row.id] for term in self._text.terms)

    def is_match(self, row: Row) -> bool:
        counts = self._counts[row.id]
        some_term = any(term in counts for term in self._text.terms) or bool(
            not self._text.terms and self._text.phrases
        )
        return some_term and all(_has_phrase(row, phrase) for phrase in self._text.phrases)


def rank(request: FindRequest, rows: Mapping[str, Row], gathered: Gathered) -> Ranked:
    """Return what matches and what joins it, without documents that have no row since they are gone by now."""
    scorer = _Scorer(request.text, rows, gathered) if request.text is not None else None
    candidates = {id: _make_candidate(row, request, scorer) for id, row in rows.items()}
    matching = [
        row for id in gathered.passing if (row := rows.get(id)) is not None and (scorer is None or scorer.is_match(row))
    ]
    listed = [row.id for row in _sort(matching, candidates, request.order)[: request.depth]]
    joining = set(rows).intersection([*gathered.nearest, *gathered.titled]).difference(listed)
    return Ranked(
        listed=[candidates[id] for id in listed],
        joining=[candidates[id] for id in joining],
        total=len(matching),
        facets={facet: _count_facet(matching, facet) for facet in request.facets},
    )


def compare(candidates: Iterable[Candidate], vectors: Mapping[str, Vectors], query: Vector) -> list[Candidate]:
    """Return the candidates with the cosines of their best passages."""
    return [_compare(each, vectors[each.id], query) if each.id in vectors else each for each in candidates]


def get_nearness(candidate: Candidate) -> SupportsRichComparison:
    """Return the sort key of candidates that join: nearest first, those without a vector last, ties by id."""
    return candidate.cosine is None, -(candidate.cosine or 0.0), candidate.id


def _count(term: str, row: Row) -> int:
    if term.split() != [term]:
        return 0
    wanted = f" {term} "
    return bm25.TITLE_WEIGHT * row.title_terms.count(wanted) + row.body_terms.count(wanted)


def _has_phrase(row: Row, phrase: Sequence[str]) -> bool:
    wanted = f" {'  '.join(phrase)} "
    return " ".join(phrase).split() == [*phrase] and (wanted in row.title_terms or wanted in row.body_terms)


def _make_candidate(row: Row, request: FindRequest, scorer: _Scorer | None) -> Candidate:
    return Candidate(
        id=row.id,
        modified_at=row.modified_at,
        lexical=scorer.score(row) if scorer else 0.0,
        all_terms=scorer is not None and scorer.has_all_terms(row),
        title_contains=request.title_contains is not None and facet_key(request.title_contains) in row.title_key,
        state=row.state,
        head_id=row.head_id,
    )


def _compare(candidate: Candidate, vectors: Vectors, query: Vector) -> Candidate:
    cosines = vectors.matrix @ query
    best = int(cosines.argmax())
    cosine = min(1.0, max(-1.0, float(cosines[best])))
    return candidate._replace(cosine=cosine, passage=vectors.places[best])


def _sort(rows: Iterable[Row], candidates: Mapping[str, Candidate], order: Sequence[SortKey]) -> list[Row]:
    ordered = sorted(rows, key=lambda row: row.id)
    for key in reversed(order):
        ordered.sort(key=lambda row: _get_sort_value(row, candidates[row.id], key), reverse=key.descending)
    return ordered


def _get_sort_value(row: Row, candidate: Candidate, key: SortKey) -> SupportsRichComparison:
    if key.by == "date_range":
        start = row.starts.get(key.name)
        return (start is not None) is key.descending, *([start] if start is not None else [])
    values: dict[str, SupportsRichComparison] = {
        "all_terms": candidate.all_terms,
        "lexical": candidate.lexical,
        "modified": row.modified_at,
        "created": row.created_at,
        "title": row.title_key,
        "id": row.id,
    }
    return values[key.by]


@dataclass(slots=True)
class _Value:
    """A facet's value: how many documents hold it, and how they spell it."""

    holders: int = 0
    spellings: Counter[str] = field(default_factory=Counter[str])


def _count_facet(rows: Iterable[Row], facet: str) -> tuple[FacetCount, ...]:
    values: defaultdict[str, _Value] = defaultdict(_Value)
    for row in rows:
        held = row.facets.get(facet, ())
        for spelling in held:
            values[facet_key(spelling)].spellings[spelling] += 1
        for key in {facet_key(spelling) for spelling in held}:
            values[key].holders += 1
    counts = [FacetCount(_get_usual(value.spellings), value.holders) for value in values.values()]
    return tuple(sorted(counts, key=lambda each: (-each.count, each.value)))


def _get_usual(spellings: Counter[str]) -> str:
    return min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
