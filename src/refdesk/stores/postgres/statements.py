"""Builds the statements of a search, sent together. Every part of a request is a parameter; only structure varies.

What one statement finds, the next ones read from settings of the transaction. The words by which entries are visible
are such a setting too (see the policy of `entries`), so each statement ends by setting them for the next one. While
entries are reached by their keys, the planner must not use the index of words, which would then return all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import LiteralString, cast

from refdesk.core.keeping.encoding import is_storable
from refdesk.core.writing.supersession import HEAD
from refdesk.model import FindRequest, SortKey, facet_key
from refdesk.stores.postgres.connections import Statement, Text, quote
from refdesk.stores.postgres.filters import compile_filter, find_ways
from refdesk.stores.postgres.indexing import EVERY, NONE, Tokens
from refdesk.stores.postgres.lexical import Question
from refdesk.stores.postgres.rows import encode_vector
from refdesk.stores.postgres.vectors import Graph, Model

_COLUMNS = {
    "all_terms": Text("all_terms"),
    "lexical": Text("lexical"),
    "modified": Text("modified_at"),
    "created": Text("created_at"),
    "title": Text("title_key"),
    "id": Text("id"),
}
_PLAN = Text("set_config('enable_bitmapscan', '{}', true), set_config('cpu_operator_cost', '{}', true)")
_BY_WORDS, _BY_KEYS = _PLAN.format("on", "0.0025"), _PLAN.format("off", "0.0025")
# The planner takes the test of an entry's words to be as cheap as one of numbers, and would rather test up to a
# thousand entries than use the index of words, which takes a tenth of the time. Where any entries will do, up to a
# limit, expensive tests would make it read all by their keys instead: there the cost is the server's default.
_BY_ASKED_WORDS = _PLAN.format("on", "0.1")
_SEE = Text("set_config('refdesk.any', {}, true), set_config('refdesk.all', {}, true), {}")
_SEE_WAYS = Text("set_config('refdesk.any', current_setting('refdesk.ways'), true)")
_PREPARE = """
    SELECT set_config('refdesk.listed', '{}', true), set_config('refdesk.titled', '{}', true),
        set_config('refdesk.written', '{}', true), set_config('refdesk.passing', '', true),
        set_config('refdesk.weights', '{}', true), set_config('refdesk.ways', '{-1}', true),
        set_config('refdesk.chosen', '{-1}', true),
        set_config('refdesk.forms', ARRAY(
            SELECT refdesk_number(word, decode(%s, 'hex'))
            FROM unnest(tsvector_to_array(to_tsvector('simple', %s))) AS word
        )::text, true) \1
"""
# If there are no forms, no entry must match: the empty array would be contained in every other.
_SEE_FORMS = Text(
    "{}, set_config('refdesk.any', '{{-1}}', true), "
    "set_config('refdesk.all', coalesce(nullif(current_setting('refdesk.forms'), '{{}}'), '{{-1}}'), true)"
).format(_BY_ASKED_WORDS)
_FIND_WRITTEN = Text("""
    SELECT set_config('refdesk.written', documents::text, true)\1
    FROM (SELECT ARRAY(SELECT document FROM ({matching}) matching) AS documents OFFSET 0) found
""")
_SEE_CHOSEN = Text("{}, set_config('refdesk.any', current_setting('refdesk.chosen'), true)").format(_BY_ASKED_WORDS)
# Without the barriers (OFFSET 0) the planner would compute each place and frequency again for every use of it.
_SCORED = Text("""
    SELECT document, id, modified_at, created_at, title_key, state, {score} AS lexical, {all_terms} AS all_terms,
        {as_written} AS as_written
    FROM (
        SELECT * {frequencies} FROM (SELECT e.* {places} FROM entries e WHERE {place} AND {passing} OFFSET 0) placed
        OFFSET 0
    ) counted WHERE {matches}
""")
_IS_WRITTEN = Text("document IN (SELECT unnest(current_setting('refdesk.written', true)::bigint[]))")
# The index also returns entries that hold the words as terms.
_HAS_FORMS = Text("(inflected && current_setting('refdesk.forms')::integer[]) IS NOT TRUE")
_FIRST_START = Text(
    "(SELECT min(s.starts_at) FROM spans s WHERE s.org = {org} AND s.document = matching.document AND s.name = {name})"
)
_LIST = Text("""
    SELECT total, cardinality(documents), set_config('refdesk.listed', documents::text, true)\1
    FROM (SELECT {total} AS total, ARRAY(
        SELECT document FROM {matching} ORDER BY {order} LIMIT {depth}
    ) AS documents OFFSET 0) listed
""")
_LIST_AND_COUNT = Text("WITH matching AS MATERIALIZED ({matching}) {listed}")
_COUNT = Text("SELECT count(*) FROM ({matching}) matching")
_COUNT_FACETS = Text("""
    SELECT name, d.facets ->> name, count(*)
    FROM ({matching}) matching CROSS JOIN LATERAL (
        SELECT facets FROM documents d WHERE d.org = {org} AND d.key = matching.document OFFSET 0
    ) d CROSS JOIN unnest({names}::text[]) AS asked (name)
    WHERE d.facets -> name IS NOT NULL GROUP BY 1, 2
""")
_FIND_TITLED = Text("""
    SELECT set_config('refdesk.titled', documents::text, true) \1 FROM (SELECT ARRAY(
        SELECT e.document FROM entries e WHERE {place} AND {passing} AND {has_title}
        ORDER BY e.modified_at DESC, e.id LIMIT {depth}
    ) AS documents OFFSET 0) titled
""")
_FIND_PASSING = Text("""
    SELECT set_config(
        'refdesk.passing', CASE WHEN cardinality(documents) <= {limit} THEN documents::text ELSE '' END, true
    )\1
    FROM (SELECT ARRAY(
        SELECT e.document FROM entries e WHERE {place} AND {passing} LIMIT {limit} + 1
    ) AS documents OFFSET 0) passing
""")
_CHOOSE = Text("""
    WITH asked AS MATERIALIZED (SELECT {vector}::vector AS vector), listed AS (
        SELECT document, place
        FROM unnest(current_setting('refdesk.listed', true)::bigint[]) WITH ORDINALITY AS l (document, place)
    ), {near}, joining AS (
        SELECT unnest(current_setting('refdesk.titled', true)::bigint[]) AS document
        UNION SELECT document FROM near EXCEPT SELECT document FROM listed
    ), chosen AS MATERIALIZED (
        SELECT document FROM listed UNION ALL SELECT document FROM joining
    ), best AS MATERIALIZED ({best})
    SELECT document IN (SELECT document FROM near), id, modified_at, lexical, all_terms, as_written, is_titled,
        cosine, starts_at, ends_at, state, {head} AS head_id, {shown}
    FROM (
        SELECT *, {is_titled} AS is_titled, lexical / nullif(max(lexical) OVER (), 0) AS in_words,
            cosine / nullif(max(cosine) OVER (), 0) AS in_meaning
        FROM ({scored}) scored LEFT JOIN listed USING (document) LEFT JOIN best USING (document)
    ) scored
    ORDER BY place NULLS LAST, cosine DESC NULLS LAST, id
""")
# Nearly in the order in which the core will rank them: what it shows beyond these takes another query.
_SHOWN = Text("""
    CASE WHEN row_number() OVER (ORDER BY is_titled DESC, {likelihood}, id) <= {most} THEN (
        SELECT json_build_array(
            version, state, created_at, modified_at, author, facets::text, spans::text, data::text, encode(texts, 'hex')
        )::text
        FROM documents d WHERE d.org = {org} AND d.key = scored.document AND octet_length(texts) <= {longest}
    ) END
""")
_BY_BOTH = Text("coalesce(in_words, 0) + coalesce(in_meaning, in_words, 0) DESC")
_AS_LISTED = Text("place NULLS LAST")
_NOT_SHOWN = Text("NULL::text")
# Few are superseded, so only their documents are looked up.
_HEAD = Text("""
    CASE state WHEN 'superseded' THEN coalesce(
        (SELECT nullif(d.data ->> {name}, '') FROM documents d WHERE d.org = {org} AND d.key = scored.document), id
    ) END
""")
_IS_CHOSEN = Text("e.document = ANY(ARRAY(SELECT document FROM chosen))")
_NO_DOCUMENT = Text("SELECT NULL::bigint AS document WHERE false")
_NO_PASSAGE = Text("""
    SELECT NULL::bigint AS document, NULL::float8 AS cosine, NULL::integer AS starts_at, NULL::integer AS ends_at
    WHERE false
""")
# Cosines are between the unrounded query and the stored half-precision vectors: pgvector would round the query too.
_COSINE = Text("least(1, greatest(-1, -(v.vector::vector <#> (SELECT vector FROM asked))))")
# An array is looked up in one pass over the index. If statistics are missing or old, a plain join may read all of one
# table for each row of the other; with an array, or behind the barrier (OFFSET 0), it cannot.
_NEAR = Text("""
    SELECT document FROM (
        SELECT document, max(cosine) AS cosine FROM (
            SELECT v.document, {cosine} AS cosine FROM vectors v
            WHERE v.org = {org} AND v.document = ANY(ARRAY({documents})) AND v.model = {model} AND {applies}
        ) passages GROUP BY document ORDER BY cosine DESC FETCH FIRST {depth} ROWS WITH TIES
    ) compared CROSS JOIN LATERAL (
        SELECT id FROM entries e
        WHERE e.org = {org} AND e.toolset = {toolset} AND e.document = compared.document OFFSET 0
    ) e ORDER BY cosine DESC, id LIMIT {depth}
""")
_NEAR_ALONE = Text("near AS MATERIALIZED ({})")
# If everything that has a vector passes, what the graph returns is read at once: one by one takes three times as long.
_NEAR_AT_ONCE = Text("""
    fetched AS MATERIALIZED (
        SELECT v.document, v.number, {cosine} AS cosine, v.first AS starts_at, v.last AS ends_at FROM vectors v
        WHERE v.model = {model} AND v.org = {org}
        ORDER BY v.vector::halfvec({width}) <#> (SELECT vector::halfvec({width}) FROM asked)
        LIMIT {fetch}
    ), compared AS MATERIALIZED (
        SELECT DISTINCT ON (document) document, cosine, starts_at, ends_at FROM fetched
        ORDER BY document, cosine DESC, number
    ), near AS MATERIALIZED (
        SELECT * FROM compared ORDER BY cosine DESC, document LIMIT {depth}
    )
""")
_NEAR_BY_GRAPH = Text("""
    SELECT document FROM (
        SELECT document, id, max(cosine) AS cosine FROM (
            SELECT e.document, e.id, {cosine} AS cosine
            FROM vectors v CROSS JOIN LATERAL (
                SELECT e.document, e.id FROM entries e
                WHERE e.org = {org} AND e.toolset = {toolset} AND e.document = v.document AND {passing} OFFSET 0
            ) e
            WHERE v.model = {model} AND v.org = {org} AND {applies}
            ORDER BY v.vector::halfvec({width}) <#> (SELECT vector::halfvec({width}) FROM asked)
            LIMIT {fetch}
        ) fetched GROUP BY document, id
    ) compared ORDER BY cosine DESC, id LIMIT {depth}
""")
_ARE_FEW = Text("current_setting('refdesk.passing', true) <> ''")
_ARE_MANY = Text("current_setting('refdesk.passing', true) = ''")
_PASSING = Text("SELECT unnest(nullif(current_setting('refdesk.passing', true), '')::bigint[])")
_BEST = Text("""
    SELECT DISTINCT ON (document) document, cosine, starts_at, ends_at FROM (
        SELECT v.document, v.number, {cosine} AS cosine, v.first AS starts_at, v.last AS ends_at FROM vectors v
        WHERE v.org = {org} AND v.document = ANY(ARRAY({documents})) AND v.model = {model} OFFSET 0
    ) compared ORDER BY document, cosine DESC, number
""")
_CHOSEN = Text("SELECT document FROM chosen")
_OTHERS = Text("SELECT document FROM chosen EXCEPT SELECT document FROM near")
_BEST_OF_NEAR = Text("SELECT document, cosine, starts_at, ends_at FROM near UNION ALL ({others})")
MOST_SHOWN = 20
"""Most documents that are sent along with what is found."""

SHOWN_SHARE = 1.5
"""How many documents are sent for each that is shown: the surplus is for those that the core ranks differently."""

LONGEST_SHOWN = 8_000
"""Most bytes of a document that is sent along; a longer one is read only if it is shown."""

MOST_GRAMS = 8
"""About how many pieces of a title are looked up: they leave few titles, which are then compared."""

_TRUE, _FALSE = Text("true"), Text("false")


_THEN = "\1"
"""Marks where a statement takes what is set for the next one: by the time of setting, its rows are found."""


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and what its rows tell: `weights`, `list`, `count`, `facets`, `choice`, or nothing."""

    statement: Statement
    tells: str = ""


def _join(steps: Iterable[Step | Text]) -> list[Step]:
    """Return the steps; what is set between two is set by the first if it has a place for that, else by a statement."""
    joined: list[Step] = []
    for step in steps:
        if isinstance(step, Step):
            joined.append(step)
        elif joined and _THEN in (text := str(joined[-1].statement.text)):
            joined[-1] = _put(joined[-1], text.replace(_THEN, f", {step} {_THEN}"))
        else:
            joined.append(Step(Statement(Text(f"SELECT {step} {_THEN}"))))
    return [_put(step, str(step.statement.text).replace(_THEN, "")) for step in joined]


def _put(step: Step, text: str) -> Step:
    values = step.statement.values
    same = Text(text) if isinstance(step.statement.text, Text) else cast("LiteralString", text)
    return replace(step, statement=Statement(same, values))


@dataclass(slots=True)
class Search:
    """A request as statements.

    Attributes:
        model: The model of the request's vector; `None` if nothing in the collection was embedded with it.
        graph: How the model's graph is queried, or `None` to compare all.
        is_open: Whether all that has a vector passes the filter, as far as is known.
        few: If at most this many pass the filter, all of these are compared after all; `None` if that is not tried.
        prune_above: Number of documents above which frequent terms make no candidates; `None` if all terms do.
    """

    request: FindRequest
    model: Model | None
    graph: Graph | None
    few: int | None
    prune_above: int | None
    is_open: bool = False
    tokens: Tokens = field(init=False)
    question: Question | None = field(init=False)
    passing: Text = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = Tokens(self.request.collection)
        self.passing = compile_filter(self.request.where, self.tokens)
        self.question = Question(self.request.text, self.tokens) if self.request.text else None

    def list_steps(self) -> list[Step]:
        """Return everything that is to be run, in order."""
        written = self.request.as_written or ""
        asked = (self.tokens.of_collection, written if self.question and is_storable(written) else "")
        steps = [Step(Statement(_PREPARE, asked)), *self._find_matches(), *self._find_titled(), *self._find_few()]
        steps += [_see([EVERY], [NONE], by_words=False), *([self.graph.settings] if self.graph else [])]
        return _join([*steps, Step(self._choose(), "choice")])

    def _find_matches(self) -> list[Step | Text]:
        if self.question is not None:
            return [*self._weigh(self.question), *self._list(self.question)]
        if self.request.vector is not None:
            return []
        ways = find_ways(self.request.where, self.tokens)
        seen = _see([EVERY], [NONE], by_words=False) if ways is None else _see(ways or [NONE], [NONE], by_words=True)
        return [seen, *self._list(None)]

    def _weigh(self, question: Question) -> list[Step | Text]:
        by_score = [key for key in self.request.order if key != SortKey("all_terms", descending=True)]
        is_by_score = by_score[:1] == [SortKey("lexical", descending=True)]
        place = (self.request.collection.org, self.request.collection.toolset)
        steps: list[Step | Text] = [Step(question.weigh(*place, self.prune_above if is_by_score else None), "weights")]
        if self.request.as_written:
            matches = Text("{} AND {}").format(question.make_phrases(), _HAS_FORMS)
            matching = self._score(self.passing, is_marked=False, matches=matches)
            found = Statement(_FIND_WRITTEN.format(matching=matching))
            steps += [_SEE_FORMS, Step(found)]
        if question.phrases:
            return [*steps, _see([NONE], question.held, by_words=True)]
        return [*steps, _SEE_CHOSEN]

    def _list(self, question: Question | None) -> list[Step | Text]:
        matching, order = self._match(), [*self._sort(), Text("id")]
        if question is not None and self.request.as_written:
            order.insert(0, Text("as_written DESC"))
        parts = {"order": Text(", ").join(order), "depth": quote(self.request.depth)}
        if self.request.counts:
            total = Text("(SELECT count(*) FROM matching)")
            listed = _LIST.format(total=total, matching=Text("matching"), **parts)
            text = _LIST_AND_COUNT.format(matching=matching, listed=listed)
        else:
            source = Text("({}) matching").format(matching)
            text = _LIST.format(total=Text("NULL::bigint"), matching=source, **parts)
        return [Step(Statement(text), "list"), *self._count_all(question)]

    def _count_all(self, question: Question | None) -> list[Step | Text]:
        """Return what counts over all matches, even if some terms make no candidates."""
        steps: list[Step | Text] = []
        is_pruned = question is not None and not question.phrases and self.prune_above is not None
        if self.request.counts and is_pruned:
            steps.append(Step(Statement(_COUNT.format(matching=self._match())), "count"))
        if names := [name for name in self.request.facets if is_storable(name)]:
            parts = {"org": quote(self.request.collection.org), "names": quote(names)}
            text = _COUNT_FACETS.format(matching=self._match(), **parts)
            steps.append(Step(Statement(text), "facets"))
        return [_SEE_WAYS, *steps] if steps and is_pruned else steps

    def _find_titled(self) -> list[Step | Text]:
        needle = self.request.title_contains
        if needle is None or not is_storable(needle):
            return []
        grams = self.tokens.of_title(facet_key(needle))
        text = _FIND_TITLED.format(
            place=self._name_place(),
            passing=self.passing,
            has_title=self._test_title(Text("e")),
            depth=quote(self.request.depth),
        )
        some = grams[:: max(1, len(grams) // MOST_GRAMS)]
        seen = _see([NONE], some, by_words=True) if grams else _see([EVERY], [NONE], by_words=False)
        return [seen, Step(Statement(text))]

    def _find_few(self) -> list[Step | Text]:
        if self.few is None or self.request.vector is None:
            return []
        ways = find_ways(self.request.where, self.tokens)
        text = _FIND_PASSING.format(limit=quote(self.few), place=self._name_place(), passing=self.passing)
        seen = _see([EVERY], [NONE], by_words=False) if ways is None else _see(ways or [NONE], [NONE], by_words=True)
        return [seen, Step(Statement(text))]

    def _choose(self) -> Statement:
        vector = None if self.request.vector is None else encode_vector(self.request.vector.vector)
        text = _CHOOSE.format(
            vector=quote(vector),
            near=self._find_near(),
            is_titled=self._test_title(Text("scored")),
            head=_HEAD.format(name=Text(f"'{HEAD}'"), org=quote(self.request.collection.org)),
            scored=self._score(_IS_CHOSEN, is_marked=True, matches=_TRUE),
            best=self._find_best(),
            shown=self._show(),
        )
        return Statement(text)

    def _show(self) -> Text:
        most = min(MOST_SHOWN, ceil(self.request.shown * SHOWN_SHARE))
        if self.request.shown > most or not most:
            return _NOT_SHOWN
        return _SHOWN.format(
            likelihood=_AS_LISTED if self.request.vector is None else _BY_BOTH,
            most=quote(most),
            org=quote(self.request.collection.org),
            longest=quote(LONGEST_SHOWN),
        )

    def _match(self) -> Text:
        """Return the visible matches: some hold words, as they are written, that are not among their terms."""
        matches: Text = _TRUE
        if self.question is not None:
            matches = self.question.make_phrases()
            if self.question.needs_way:
                way = Text("({} OR {})").format(self.question.make_any_term(), _IS_WRITTEN)
                matches = Text("{} AND {}").format(matches, way)
        return self._score(self.passing, is_marked=True, matches=matches)

    def _score(self, passing: Text, *, is_marked: bool, matches: Text) -> Text:
        """Return entries that pass, with their scores."""
        question, nothing = self.question, Text("")
        return _SCORED.format(
            place=self._name_place(),
            passing=passing,
            places=question.places if question else nothing,
            frequencies=question.frequencies if question else nothing,
            score=question.score if question else Text("0::float8"),
            all_terms=question.all_terms if question else _FALSE,
            as_written=_IS_WRITTEN if question and is_marked and self.request.as_written else _FALSE,
            matches=matches,
        )

    def _name_place(self) -> Text:
        org, toolset = quote(self.request.collection.org), quote(self.request.collection.toolset)
        return Text("e.org = {} AND e.toolset = {}").format(org, toolset)

    def _test_title(self, alias: Text) -> Text:
        needle = self.request.title_contains
        if needle is None or not is_storable(needle):
            return _FALSE
        return Text("strpos({}.title_key, {}) > 0").format(alias, quote(facet_key(needle)))

    def _find_near(self) -> Text:
        if self.request.vector is None or self.model is None:
            return _NEAR_ALONE.format(_NO_DOCUMENT)
        passing = self.passing
        parts = {
            "cosine": _COSINE,
            "org": quote(self.request.collection.org),
            "toolset": quote(self.request.collection.toolset),
            "depth": quote(self.request.depth),
            # A partial index is only used if the planner sees its condition.
            "model": self.model.key,
        }
        if self.graph is None:
            every = Text("SELECT e.document FROM entries e WHERE {} AND {}")
            documents = every.format(self._name_place(), passing)
            return _NEAR_ALONE.format(_NEAR.format(**parts, documents=documents, applies=_TRUE))
        graph = {"fetch": quote(self.graph.fetch), "width": Text(str(self.model.dimensions))}
        if self.is_open:
            return _NEAR_AT_ONCE.format(**parts, **graph)
        graph["passing"] = passing
        if self.few is None:
            return _NEAR_ALONE.format(_NEAR_BY_GRAPH.format(**parts, **graph, applies=_TRUE))
        both = Text("({}) UNION ALL ({})").format(
            _NEAR.format(**parts, documents=_PASSING, applies=_ARE_FEW),
            _NEAR_BY_GRAPH.format(**parts, **graph, applies=_ARE_MANY),
        )
        return _NEAR_ALONE.format(both)

    def _find_best(self) -> Text:
        if self.request.vector is None or self.model is None:
            return _NO_PASSAGE
        parts = {
            "cosine": _COSINE,
            "org": quote(self.request.collection.org),
            "model": quote(self.model.key),
        }
        if self.is_open:
            return _BEST_OF_NEAR.format(others=_BEST.format(**parts, documents=_OTHERS))
        return _BEST.format(**parts, documents=_CHOSEN)

    def _sort(self) -> list[Text]:
        keys: list[Text] = []
        for key in self.request.order:
            column = self._get_first_start(key.name) if key.by == "date_range" else _COLUMNS[key.by]
            keys.append(Text("{} DESC NULLS LAST" if key.descending else "{} NULLS LAST").format(column))
        return keys

    def _get_first_start(self, name: str) -> Text:
        org = quote(self.request.collection.org)
        return _FIRST_START.format(org=org, name=quote(name)) if is_storable(name) else Text("NULL::bigint")


def _see(any_of: Sequence[int], all_of: Sequence[int], *, by_words: bool) -> Text:
    """Return what shows entries that hold any of some numbers or all of others, by the index of words or by keys."""
    return _SEE.format(quote(list(any_of)), quote(list(all_of)), _BY_WORDS if by_words else _BY_KEYS)
