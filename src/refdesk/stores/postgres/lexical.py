"""BM25 in SQL: the arithmetic of `refdesk.core.search.bm25`, operation for operation, and the counts it needs.

How many documents hold a term is stored in two parts: `term_counts`, and what changed after that was last brought up to
date, so that a write need not touch a row for each of its terms.
"""

from __future__ import annotations

from refdesk.core.search.bm25 import K1, B
from refdesk.model import TextQuery
from refdesk.stores.postgres.connections import Statement, Text, quote
from refdesk.stores.postgres.indexing import NONE, Tokens

FREQUENT_SHARE = 20
"""A term is frequent when more than one document in this many holds it."""

MOST_UNCOUNTED = 256
"""Most changes that searches look through besides the counted terms, before these are counted too."""

MOST_UNCOUNTED_IN_LOAD = 50_000
"""The same while a store is being loaded: each time counts are rewritten, the old ones leave unused room behind."""

# For entries that are counted already. Those after `counted` are read from the entries themselves.
CHANGE_TERMS = """
    INSERT INTO term_changes (org, toolset, number, change, terms)
    SELECT entries.org, entries.toolset, number, %s::smallint, terms
    FROM unnest(%s::bigint[], %s::bigint[]) AS changed (document, number)
    JOIN entries USING (document) JOIN collections ON collections.org = %s AND collections.toolset = %s
    WHERE entries.org = collections.org AND entries.toolset = collections.toolset AND document <= counted
"""
_COUNT_TERMS = """
    WITH changed AS (
        SELECT term, sum(change)::integer AS change FROM (
            SELECT unnest(terms) AS term, 1 AS change FROM entries
            WHERE org = %(org)s AND toolset = %(toolset)s AND document > (
                SELECT counted FROM collections WHERE org = %(org)s AND toolset = %(toolset)s
            )
            UNION ALL
            SELECT unnest(terms), change FROM term_changes WHERE org = %(org)s AND toolset = %(toolset)s
        ) changes GROUP BY term
    ), merged AS (
        SELECT term, sum(documents)::integer AS documents FROM (
            SELECT term, change AS documents FROM changed
            UNION ALL
            SELECT unnest(terms), unnest(documents) FROM term_counts
            WHERE org = %(org)s AND toolset = %(toolset)s AND bucket IN (SELECT term & 1023 FROM changed)
        ) counts GROUP BY term
    )
    INSERT INTO term_counts (org, toolset, bucket, terms, documents)
    SELECT %(org)s, %(toolset)s, term & 1023, array_agg(term ORDER BY term), array_agg(documents ORDER BY term)
    FROM merged GROUP BY term & 1023
    ON CONFLICT (org, toolset, bucket) DO UPDATE SET terms = excluded.terms, documents = excluded.documents
"""
_FORGET_CHANGES = "DELETE FROM term_changes WHERE org = %(org)s AND toolset = %(toolset)s"
# Until a table has statistics, the planner takes an index on the org alone to be as good as the key, and prepared
# statements stick to that: each write would read all that its org has. The server collects statistics by itself only a
# minute later.
GET_TO_KNOW = """
    DO $$ BEGIN
        IF (SELECT reltuples < 256 FROM pg_class WHERE oid = 'documents'::regclass) THEN
            ANALYZE (SKIP_LOCKED) documents, entries;
        END IF;
    END $$
"""
_NOTE_COUNTED = """
    UPDATE collections SET uncounted = 0, counted = (SELECT changes FROM orgs WHERE org = %(org)s)
    WHERE org = %(org)s AND toolset = %(toolset)s
"""
# Sets what scores depend on, for the statements after it: the mean length, then the weight of each term, and the terms
# that make candidates. If frequent terms make none, the rarer ones do, or the rarest.
_WEIGH = """
    WITH asked AS (
        SELECT term, place FROM unnest(%(terms)s::integer[]) WITH ORDINALITY AS asked (term, place)
    ), collection AS (
        SELECT documents, words, counted FROM collections WHERE org = %(org)s AND toolset = %(toolset)s
    ), fresh AS (
        SELECT asked.term, count(*) AS documents FROM entries e CROSS JOIN asked
        WHERE e.org = %(org)s AND e.toolset = %(toolset)s AND e.document > (SELECT counted FROM collection)
            AND e.terms[width_bucket(asked.term, e.terms)] = asked.term
        GROUP BY asked.term
    ), counted AS (
        SELECT term, place, coalesce((
            SELECT c.documents[array_position(c.terms, asked.term)] FROM term_counts c
            WHERE c.org = %(org)s AND c.toolset = %(toolset)s AND c.bucket = asked.term & 1023
        ), 0) + coalesce((
            SELECT sum(c.change) FROM term_changes c
            WHERE c.org = %(org)s AND c.toolset = %(toolset)s AND asked.term = ANY(c.terms)
        ), 0) + coalesce((SELECT fresh.documents FROM fresh WHERE fresh.term = asked.term), 0) AS documents
        FROM asked
    ), weighed AS (
        SELECT array_agg(ln(
            1.0::float8 + (every.documents - counted.documents + 0.5::float8) / (counted.documents + 0.5::float8)
        ) ORDER BY place) AS weights
        FROM counted CROSS JOIN collection every
    ), ways AS (
        SELECT array_agg(term ORDER BY place) AS every,
            array_agg(term) FILTER (WHERE documents > 0 AND documents * %(share)s <= (SELECT documents FROM collection))
                AS rare,
            (array_agg(term ORDER BY documents, place))[1:1] AS rarest
        FROM counted WHERE place <= %(ways)s
    ), chosen AS (
        SELECT coalesce(every, %(nothing)s::integer[]) AS every, CASE
            WHEN documents <= %(prune_above)s THEN coalesce(every, %(nothing)s::integer[])
            ELSE coalesce(rare, rarest, %(nothing)s::integer[])
        END AS terms, documents, words
        FROM ways CROSS JOIN collection
    )
    SELECT documents, cardinality(terms) < cardinality(every),
        set_config('refdesk.weights', (
            ARRAY[words::float8 / nullif(documents, 0)] || (SELECT weights FROM weighed)
        )::text, true),
        set_config('refdesk.ways', every::text, true), set_config('refdesk.chosen', terms::text, true) \1
    FROM chosen
"""
_WEIGHT = Text("(SELECT current_setting('refdesk.weights', true)::float8[])[{}]")
_PLACE = Text("width_bucket({}::integer, e.terms) AS {}")
_FREQUENCY = Text(
    "(CASE WHEN terms[{place}] = {term}::integer THEN CASE WHEN octet_length(frequencies) < cardinality(terms) "
    "THEN get_byte(frequencies, ({place} - 1) >> 1) >> (4 * (({place} - 1) & 1)) & 15 ELSE get_byte(frequencies, "
    "{place} - 1) + coalesce(256 * get_byte(high_frequencies, {place} - 1), 0) END ELSE 0 END)::float8 AS {name}"
)
_NORM = Text("{k1}::float8 * ({rest}::float8 + {b}::float8 * coalesce(length::float8 / {mean}, 1.0::float8)) AS norm")
_TERM_SCORE = Text("{weight} * {tf} / ({tf} + norm)")
_CHARACTER = Text("chr(CASE WHEN {place} < 55296 THEN greatest({place}, 1) ELSE {place} + 2048 END)")


GET_UNCOUNTED = "SELECT org, toolset FROM collections WHERE uncounted > 0 ORDER BY org, toolset"


def count_terms(org: str, toolset: str) -> list[Statement]:
    """Return what brings the counts of a collection's terms up to date."""
    values: dict[str, object] = {"org": org, "toolset": toolset}
    return [Statement(text, values) for text in (_COUNT_TERMS, _FORGET_CHANGES, _NOTE_COUNTED)]


class Question:
    """A keyword question to one collection.

    Attributes:
        phrases: Numbers of the terms of each phrase, which are adjacent in a match.
        places: Columns computed from `e`: where each term would be among the entry's terms, `p0`, `p1`, …
        frequencies: Columns computed from those: `norm` (the denominator's other part) and how often each term occurs,
            `f0`, `f1`, …
        score: The BM25 score, computed from those.
        all_terms: Whether every term occurs, computed from those.
    """

    def __init__(self, text: TextQuery, tokens: Tokens) -> None:
        self.phrases = [[tokens.of_term(term) for term in phrase] for phrase in text.phrases]
        self._ways = list(dict.fromkeys(map(tokens.of_term, text.terms)))
        self._terms = list(dict.fromkeys([*self._ways, *self.held]))
        self.places = self._make_places()
        self.frequencies = self._make_frequencies()
        self.score = self._make_score()
        self.all_terms = self._join_ways(Text(" AND "), Text("true"))

    @property
    def held(self) -> list[int]:
        """The numbers of the terms of all phrases."""
        return list(dict.fromkeys(number for phrase in self.phrases for number in phrase))

    @property
    def needs_way(self) -> bool:
        """Whether holding every phrase is not enough for a match."""
        return bool(self._ways or not self.phrases)

    def weigh(self, org: str, toolset: str, prune_above: int | None) -> Statement:
        """Return what prepares the scores, and says how many documents there are and whether some terms are left out.

        Args:
            org: The org.
            toolset: Which of its collections.
            prune_above: Number of documents above which frequent terms make no candidates; `None` if all terms do.
        """
        values: dict[str, object] = {"org": org, "toolset": toolset, "terms": self._terms, "ways": len(self._ways)}
        values |= {"share": FREQUENT_SHARE, "nothing": [NONE]}
        values["prune_above"] = 2**62 if prune_above is None else prune_above
        return Statement(_WEIGH, values)

    def _make_places(self) -> Text:
        """Return columns computed from `e`: where each term would be among the entry's terms, `p0`, `p1`, …"""
        places = [_PLACE.format(quote(t), Text(f"p{i}")) for i, t in enumerate(self._terms)]
        return Text("").join(Text(", ") + place for place in places)

    def _make_frequencies(self) -> Text:
        """Return columns from those: `norm` (the denominator's other part) and each term's frequency, `f0`, `f1`, …"""
        mean = _WEIGHT.format(1)
        columns = [_NORM.format(k1=quote(K1), rest=quote(1.0 - B), b=quote(B), mean=mean)]
        for index, term in enumerate(self._terms):
            place, name = Text(f"p{index}"), Text(f"f{index}")
            columns.append(_FREQUENCY.format(term=quote(term), place=place, name=name))
        return Text("").join(Text(", ") + column for column in columns)

    def _make_score(self) -> Text:
        """Return the BM25 score, from the columns of `frequencies`."""
        parts: list[Text] = [Text("0::float8")]
        for index in range(len(self._terms)):
            weight, tf = _WEIGHT.format(index + 2), Text(f"f{index}")
            parts.append(_TERM_SCORE.format(weight=weight, tf=tf))
        return Text(" + ").join(parts)

    def make_any_term(self) -> Text:
        """Return the condition that a term that makes a match occurs, from the columns of `frequencies`."""
        return self._join_ways(Text(" OR "), Text("false"))

    def make_phrases(self) -> Text:
        """Return the condition that every phrase occurs, from the columns of `frequencies`."""
        tests: list[Text] = [Text("true")]
        tests += [Text("{} > 0").format(Text(f"f{self._terms.index(number)}")) for number in self.held]
        for phrase in self.phrases:
            places = [Text(f"p{self._terms.index(number)}") for number in phrase]
            characters = [_CHARACTER.format(place=place) for place in places]
            tests.append(Text("strpos(sequence, {}) > 0").format(Text(" || ").join(characters)))
        return Text(" AND ").join(tests)

    def _join_ways(self, joiner: Text, of_none: Text) -> Text:
        tests = [Text("{} > 0").format(Text(f"f{index}")) for index in range(len(self._ways))]
        return Text("({})").format(joiner.join([of_none, *tests]))
