"""Builds the statements of one search. Every part of a request is a parameter; only the structure varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from psycopg import sql

from refdesk.core.keeping.encoding import is_storable
from refdesk.core.writing.supersession import HEAD
from refdesk.model import FindRequest, SortKey, facet_key
from refdesk.stores.postgres.connections import Statement
from refdesk.stores.postgres.filters import BY_MATCHES, OF_EACH, Condition, Values, all_of, compile_filter
from refdesk.stores.postgres.lexical import Corpus, Question
from refdesk.stores.postgres.rows import encode_vector
from refdesk.stores.postgres.vectors import Graph, Model

_COLUMNS = {
    "all_terms": sql.SQL("all_terms"),
    "lexical": sql.SQL("lexical"),
    "modified": sql.SQL("modified_at"),
    "created": sql.SQL("created_at"),
    "title": sql.SQL("title_key"),
    "id": sql.SQL("id"),
}
_COLUMNS_OF_ENTRY = sql.SQL("e.document, e.id, e.modified_at, e.created_at, e.title_key, e.state")
# Without the barrier the planner would compute each frequency once for every use of it.
_SCORED = sql.SQL("""
    SELECT document, id, modified_at, created_at, title_key, state, {score} AS lexical, {all_terms} AS all_terms,
        as_written
    FROM (SELECT {columns}, {frequencies}, {as_written} AS as_written FROM {source} OFFSET 0) frequencies
""")
_FIND = sql.SQL("""
    WITH matching AS MATERIALIZED ({matching}), counted AS ({counted}),
    first AS (SELECT * FROM matching m ORDER BY {order} LIMIT {depth}),
    listed AS (SELECT document, row_number() OVER (ORDER BY {order}) AS place FROM first m),
    titled AS ({titled}),
    near AS ({near}),
    joining AS (SELECT document FROM titled UNION SELECT document FROM near EXCEPT SELECT document FROM listed),
    chosen AS (SELECT document FROM listed UNION ALL SELECT document FROM joining)
    SELECT total, listed, near, found.* FROM (
        SELECT (SELECT total FROM counted), (SELECT count(*) FROM listed) AS listed, (SELECT count(*) FROM near) AS near
    ) counts LEFT JOIN (
        SELECT id, modified_at, lexical, all_terms, as_written, {is_titled}, cosine, starts_at, ends_at,
            state, {head} AS head_id,
            array_position(ARRAY(SELECT document FROM listed ORDER BY place), document) AS place
        FROM ({scored}) scored LEFT JOIN LATERAL ({best}) best ON true
    ) found ON true
    ORDER BY place NULLS LAST, cosine DESC NULLS LAST, id
""")
# Only few are superseded, so only their records are looked into.
_HEAD = sql.SQL("""
    CASE state WHEN 'superseded' THEN coalesce(
        (SELECT nullif(d.data ->> {name}, '') FROM documents d WHERE d.org = {org} AND d.key = scored.document), id
    ) END
""")
_AS_WRITTEN_FIRST = sql.SQL("as_written DESC")
_FIRST_START = sql.SQL(
    "(SELECT min(s.starts_at) FROM spans s WHERE s.org = {org} AND s.document = m.document AND s.name = {name})"
)
_IS_CHOSEN = sql.SQL("e.document = ANY(ARRAY(SELECT document FROM chosen))")
_IS_MARKED = sql.SQL("e.document IN (SELECT document FROM matching WHERE as_written)")
_NO_DOCUMENT = sql.SQL("SELECT NULL::bigint AS document WHERE false")
_NO_PASSAGE = sql.SQL("SELECT NULL::float8 AS cosine, NULL::integer AS starts_at, NULL::integer AS ends_at WHERE false")
_TITLED = sql.SQL("SELECT e.document FROM {source} ORDER BY e.modified_at DESC, e.id LIMIT {depth}")
# Cosines are those of the whole query with the halves that are kept: pgvector would round the query too.
_COSINE = sql.SQL("least(1, greatest(-1, -(v.vector::vector <#> {query}::vector)))")
# An array is looked up in one pass over the index. A plain join, where statistics are missing or old, may read all of
# one table for each row of the other; by an array, or behind the barrier (OFFSET 0), it cannot.
_NEAR = sql.SQL("""
    SELECT document FROM (
        SELECT document, max(cosine) AS cosine FROM (
            SELECT v.document, {cosine} AS cosine FROM vectors v
            WHERE v.org = {org} AND v.document = ANY(ARRAY(SELECT e.document FROM {entries})) AND v.model = {model}
        ) passages GROUP BY document ORDER BY cosine DESC FETCH FIRST {depth} ROWS WITH TIES
    ) compared CROSS JOIN LATERAL (
        SELECT id FROM entries
        WHERE org = {org} AND toolset = {toolset} AND entries.document = compared.document OFFSET 0
    ) e ORDER BY cosine DESC, id LIMIT {depth}
""")
_NEAR_BY_GRAPH = sql.SQL("""
    SELECT document FROM (
        SELECT document, id, max(cosine) AS cosine FROM (
            SELECT e.document, e.id, {cosine} AS cosine
            FROM vectors v CROSS JOIN LATERAL (SELECT {columns} FROM {entries} OFFSET 0) e
            WHERE v.model = {model} AND v.org = {org}
            ORDER BY v.vector::halfvec({width}) <#> {query}::halfvec({width}) LIMIT {fetch}
        ) fetched GROUP BY document, id
    ) compared ORDER BY cosine DESC, id LIMIT {depth}
""")
_IS_THAT_OF_VECTOR = sql.SQL("e.document = v.document")
_BEST = sql.SQL("""
    SELECT {cosine} AS cosine, v.first AS starts_at, v.last AS ends_at FROM vectors v
    WHERE v.org = {org} AND v.document = scored.document AND v.model = {model} ORDER BY cosine DESC, v.number LIMIT 1
""")
_COUNT_FACETS = sql.SQL("""
    SELECT f.name, f.key, f.value, sum(f.uses), count(*) FILTER (WHERE f.is_first)
    FROM (SELECT e.document FROM {source}) matching
    JOIN facet_values f ON f.org = {org} AND f.document = matching.document
    WHERE f.name = ANY({names}::text[]) GROUP BY f.name, f.key, f.value
""")


@dataclass(slots=True)
class Search:
    """A request, and what is known of its collection.

    Attributes:
        model: Of the request's vector; `None` when nothing of the collection was embedded with it.
    """

    request: FindRequest
    corpus: Corpus
    model: Model | None
    question: Question | None = field(init=False)

    def __post_init__(self) -> None:
        self.question = Question(self.request.text, self.corpus) if self.request.text else None

    def get_rare_terms(self) -> tuple[str, ...] | None:
        """Return the terms that make candidates, or `None` where all do; see `Question.get_rare_terms`."""
        order = [key for key in self.request.order if key != SortKey("all_terms", descending=True)]
        is_by_score = order[:1] == [SortKey("lexical", descending=True)]
        return self.question.get_rare_terms() if self.question and is_by_score else None

    def find(self, graph: Graph | None, rare: Sequence[str] | None) -> Statement:
        """Return the statement that finds.

        It gives a row for each candidate, in order (one of NULLs where there is none): total, how many are listed, how
        many are near, then id, modified_at, lexical, all_terms, as_written, whether it is titled, cosine, its best
        passage, state and head.

        Args:
            graph: How the model's graph is asked, or `None` to compare all.
            rare: Which terms make candidates, or `None` for all.
        """
        values = Values()
        matching = self._match(values, rare)
        text = _FIND.format(
            matching=self._score(values, self._from(values, matching), self._mark_as_written(values)),
            counted=self._count(values, is_pruned=rare is not None and self.request.counts),
            order=sql.SQL(", ").join([_AS_WRITTEN_FIRST, *self._sort(values), sql.SQL("id")]),
            depth=values.add(self.request.depth),
            titled=self._find_titled(values),
            near=self._find_near(values, graph),
            is_titled=self._test_title(values, sql.SQL("scored")),
            head=_HEAD.format(name=sql.Literal(HEAD), org=values.add(self.request.collection.org)),
            scored=self._score(values, self._from(values, Condition(columns=(_IS_CHOSEN,))), _IS_MARKED),
            best=self._find_best(values),
        )
        return Statement(text, values.named)

    def count_facets(self) -> tuple[Statement, ...]:
        """Return the statement that counts facets over all matches, where any were requested."""
        names = [name for name in self.request.facets if is_storable(name)]
        if not names:
            return ()
        values = Values()
        source = self._from(values, self._match(values, None))
        org = values.add(self.request.collection.org)
        return (Statement(_COUNT_FACETS.format(source=source, org=org, names=values.add(names)), values.named),)

    def count_passing(self, limit: int) -> Statement:
        """Return the statement that counts the documents that the filter lets pass, up to a limit."""
        values = Values()
        source = self._from(values, self._filter(values))
        text = sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT {}) passing").format(source, values.add(limit))
        return Statement(text, values.named)

    def _filter(self, values: Values) -> Condition:
        return compile_filter(self.request.where, self.corpus.tokens, values)

    def _match(self, values: Values, rare: Sequence[str] | None) -> Condition:
        """Return what a text match is; without a question that is everything, or with a vector nothing."""
        passing = self._filter(values)
        if self.question is not None:
            return passing.join(self.question.match(values, rare))
        if self.request.vector is not None:
            return Condition(columns=(sql.SQL("false"),))
        return passing

    def _from(self, values: Values, condition: Condition, form: sql.SQL = BY_MATCHES) -> sql.Composable:
        """Return the collection's entries for which a condition holds, as `e`, for FROM."""
        org, toolset = values.add(self.request.collection.org), values.add(self.request.collection.toolset)
        place = sql.SQL("e.org = {} AND e.toolset = {}").format(org, toolset)
        tests = [place, *condition.columns, *condition.test_tokens(values, form)]
        return sql.SQL("entries e WHERE {}").format(sql.SQL(" AND ").join(tests))

    def _mark_as_written(self, values: Values) -> sql.Composable:
        if self.question is None:
            return sql.SQL("false")
        return self.question.make_as_written(values, self._filter(values))

    def _score(self, values: Values, source: sql.Composable, as_written: sql.Composable) -> sql.Composable:
        question = self.question
        if question is None:
            score, all_terms, frequencies = sql.SQL("0::float8"), sql.SQL("false"), sql.SQL("0 AS norm")
        else:
            score, all_terms = question.make_score(values), question.make_all_terms()
            frequencies = question.make_frequencies(values)
        return _SCORED.format(
            columns=_COLUMNS_OF_ENTRY,
            source=source,
            score=score,
            all_terms=all_terms,
            frequencies=frequencies,
            as_written=as_written,
        )

    def _count(self, values: Values, *, is_pruned: bool) -> sql.Composable:
        if not is_pruned:
            return sql.SQL("SELECT count(*) AS total FROM matching")
        return sql.SQL("SELECT count(*) AS total FROM {}").format(self._from(values, self._match(values, None)))

    def _find_titled(self, values: Values) -> sql.Composable:
        needle = self.request.title_contains
        if needle is None or not is_storable(needle):
            return _NO_DOCUMENT
        grams = self.corpus.tokens.of_title(facet_key(needle))
        by_grams = Condition((all_of(grams),) if grams else (), (self._test_title(values, sql.SQL("e")),))
        source = self._from(values, self._filter(values).join(by_grams))
        return _TITLED.format(source=source, depth=values.add(self.request.depth))

    def _test_title(self, values: Values, alias: sql.Composable) -> sql.Composable:
        needle = self.request.title_contains
        if needle is None or not is_storable(needle):
            return sql.SQL("false")
        return sql.SQL("strpos({}.title_key, {}) > 0").format(alias, values.add(facet_key(needle)))

    def _find_near(self, values: Values, graph: Graph | None) -> sql.Composable:
        if self.request.vector is None or self.model is None:
            return _NO_DOCUMENT
        query, condition = values.add(encode_vector(self.request.vector.vector)), self._filter(values)
        parts = {
            "cosine": _COSINE.format(query=query),
            "columns": _COLUMNS_OF_ENTRY,
            "org": values.add(self.request.collection.org),
            "toolset": values.add(self.request.collection.toolset),
            "depth": values.add(self.request.depth),
            # A partial index is only used where the planner sees its condition.
            "model": sql.Literal(self.model.key),
        }
        if graph is None:
            return _NEAR.format(**parts, entries=self._from(values, condition))
        condition = condition.join(Condition(columns=(_IS_THAT_OF_VECTOR,)))
        entries, width = self._from(values, condition, OF_EACH), sql.Literal(self.model.dimensions)
        return _NEAR_BY_GRAPH.format(**parts, entries=entries, width=width, query=query, fetch=values.add(graph.fetch))

    def _find_best(self, values: Values) -> sql.Composable:
        if self.request.vector is None or self.model is None:
            return _NO_PASSAGE
        return _BEST.format(
            cosine=_COSINE.format(query=values.add(encode_vector(self.request.vector.vector))),
            org=values.add(self.request.collection.org),
            model=values.add(self.model.key),
        )

    def _sort(self, values: Values) -> list[sql.Composable]:
        keys: list[sql.Composable] = []
        for key in self.request.order:
            column = self._get_first_start(values, key.name) if key.by == "date_range" else _COLUMNS[key.by]
            keys.append(sql.SQL("{} DESC NULLS LAST" if key.descending else "{} NULLS LAST").format(column))
        return keys

    def _get_first_start(self, values: Values, name: str) -> sql.Composable:
        org = values.add(self.request.collection.org)
        return _FIRST_START.format(org=org, name=values.add(name)) if is_storable(name) else sql.SQL("NULL::bigint")
