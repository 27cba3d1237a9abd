"""BM25 in SQL: the arithmetic of `refdesk.core.search.bm25`, operation for operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from refdesk.core.search.bm25 import K1, B, idf
from refdesk.model import TextQuery
from refdesk.stores.postgres.filters import AMONG_MATCHES, Condition, Values, all_of, any_of
from refdesk.stores.postgres.indexing import Tokens, spell

FREQUENT_SHARE = 20
"""A term is frequent when more than one document in this many holds it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the question that the collection knows: its number there, and how many documents hold it."""

    number: int
    documents: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 needs to know of a collection, at one moment.

    Attributes:
        words: Of all documents together, those of titles counted twice.
        terms: Those of the question that some document held once.
        prune_above: Documents from which on frequent terms make no candidates.
        as_written: The tokens of the question's words as they are written; none when that was not asked.
    """

    documents: int
    words: int
    terms: Mapping[str, Term]
    tokens: Tokens
    prune_above: int
    as_written: Sequence[str] = ()


class Question:
    """What is asked in words, of one collection."""

    def __init__(self, text: TextQuery, corpus: Corpus) -> None:
        self._text = text
        self._corpus = corpus
        self._asked = list(dict.fromkeys([*text.terms, *(term for phrase in text.phrases for term in phrase)]))

    def match(self, values: Values, terms: Sequence[str] | None = None) -> Condition:
        """Return the condition that an entry matches; with `terms`, by one of these."""
        tokens: list[str] = []
        ways = [self._corpus.tokens.of_term(term) for term in terms or self._text.terms]
        if self._corpus.as_written and (ways or not self._text.phrases):
            ways.append(all_of(list(self._corpus.as_written)))
        if ways:
            tokens.append(any_of(ways))
        held = dict.fromkeys(term for phrase in self._text.phrases for term in phrase)
        if held:
            tokens.append(all_of([self._corpus.tokens.of_term(term) for term in held]))
        if not tokens:
            return Condition(columns=(sql.SQL("false"),))
        return Condition(tuple(tokens), self._find_phrases(values))

    def get_rare_terms(self) -> tuple[str, ...] | None:
        """Return the terms that make candidates in a large collection, or `None` where all do.

        What holds frequent terms only is then no candidate. It scores less than the sum of their idf, so whatever
        scores at least that stands where exact ranking puts it, and so does whatever holds every term. A document's
        score counts all terms either way.
        """
        if self._corpus.documents <= self._corpus.prune_above or not self._text.terms:
            return None
        counts = {term: self._count(term) for term in self._text.terms}
        rare = [term for term, count in counts.items() if count * FREQUENT_SHARE <= self._corpus.documents]
        rare = [term for term in rare if counts[term]] or [min(counts, key=counts.__getitem__)]
        return tuple(rare) if len(rare) < len(counts) else None

    def make_frequencies(self, values: Values) -> sql.Composable:
        """Return columns of `e`: `norm` (the denominator's other part) and each term's frequency, `f0`, `f1`, …"""
        columns = [sql.SQL("{} AS norm").format(self._make_norm(values))]
        for index, term in enumerate(self._get_known()):
            number = values.add(self._corpus.terms[term].number)
            columns.append(_FREQUENCY.format(number=number, name=sql.Identifier(f"f{index}")))
        return sql.SQL(", ").join(columns)

    def make_score(self, values: Values) -> sql.Composable:
        """Return the BM25 score, from the columns of `make_frequencies`."""
        parts: list[sql.Composable] = [sql.SQL("0::float8")]
        for index, term in enumerate(self._get_known()):
            weight = values.add(idf(self._corpus.documents, self._count(term)))
            parts.append(_TERM_SCORE.format(weight=weight, tf=sql.Identifier(f"f{index}")))
        return sql.SQL(" + ").join(parts)

    def make_all_terms(self) -> sql.Composable:
        """Return whether every term of the question occurs, from the columns of `make_frequencies`."""
        known = self._get_known()
        if not set(self._text.terms) <= set(known):
            return sql.SQL("false")
        tests = [sql.SQL("{} > 0").format(sql.Identifier(f"f{known.index(term)}")) for term in self._text.terms]
        return sql.SQL(" AND ").join([sql.SQL("true"), *tests])

    def make_as_written(self, values: Values, passing: Condition) -> sql.Composable:
        """Return whether `e`, which is known to pass a filter, holds the question as it is written."""
        if not self._corpus.as_written:
            return sql.SQL("false")
        return AMONG_MATCHES.format(values.add(all_of([*passing.tokens, *self._corpus.as_written])))

    def _get_known(self) -> list[str]:
        return [term for term in self._asked if term in self._corpus.terms]

    def _count(self, term: str) -> int:
        known = self._corpus.terms.get(term)
        return known.documents if known else 0

    def _make_norm(self, values: Values) -> sql.Composable:
        if not self._corpus.words:
            return sql.SQL("{}::float8").format(values.add(K1))
        mean = values.add(self._corpus.words / self._corpus.documents)
        return _NORM.format(k1=values.add(K1), rest=values.add(1.0 - B), b=values.add(B), mean=mean)

    def _find_phrases(self, values: Values) -> tuple[sql.Composable, ...]:
        if not self._text.phrases:
            return ()
        tests = [_HAS_PHRASE.format(values.add(spell(phrase))) for phrase in self._text.phrases]
        return (_IN_WORDS.format(sql.SQL(" AND ").join(tests)),)


# The terms of an entry ascend, so `width_bucket` finds a number by halving, whatever the document's length.
_FREQUENCY = sql.SQL(
    "(CASE WHEN e.terms[width_bucket({number}::integer, e.terms)] = {number}::integer "
    "THEN e.frequencies[width_bucket({number}::integer, e.terms)] ELSE 0 END)::float8 AS {name}"
)
_NORM = sql.SQL("{k1}::float8 * ({rest}::float8 + {b}::float8 * (e.length::float8 / {mean}::float8))")
_TERM_SCORE = sql.SQL("{weight}::float8 * {tf} / ({tf} + norm)")
_HAS_PHRASE = sql.SQL("strpos(d.words, {}) > 0")
_IN_WORDS = sql.SQL("EXISTS (SELECT FROM documents d WHERE d.org = e.org AND d.key = e.document AND {})")
