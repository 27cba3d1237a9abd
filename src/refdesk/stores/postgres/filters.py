"""Compiles filters to SQL: facets by the token index, the rest by columns; values are parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from psycopg import sql

from refdesk.core.keeping.encoding import encode_instant, is_storable
from refdesk.model import And, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps, State
from refdesk.stores.postgres.indexing import Tokens

Token: TypeAlias = str
"""A condition on tokens, as a tsquery in brackets or a single token."""

# The three forms of one test, by what the planner makes of them; each is given a tsquery.
BY_MATCHES = sql.SQL("e.document = ANY(ARRAY(SELECT t.document FROM tokens t WHERE t.tokens @@ {}::tsquery))")
"""Asks the index once and reaches the entries by their keys: where most entries do not match."""

AMONG_MATCHES = sql.SQL("e.document IN (SELECT t.document FROM tokens t WHERE t.tokens @@ {}::tsquery)")
"""Asks the index once and looks each entry up: as a part of a larger condition."""

OF_EACH = sql.SQL("(SELECT t.tokens @@ {}::tsquery FROM tokens t WHERE t.document = e.document)")
"""Looks at the tokens of one entry: where few entries are looked at, in an order of their own."""

_ALWAYS, _NEVER = sql.SQL("true"), sql.SQL("false")


@dataclass(slots=True)
class Values:
    """The parameters of a statement assembled from parts, each under a unique name."""

    named: dict[str, object] = field(default_factory=dict[str, object])

    def add(self, value: object) -> sql.Placeholder:
        """Return the placeholder of the value in the statement."""
        name = f"v{len(self.named)}"
        self.named[name] = value
        return sql.Placeholder(name)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a filter asks: of the tokens, all of which must hold, and of the columns of `entries` as `e`.

    Attributes:
        tokens: Each a tsquery.
        columns: Each SQL.
    """

    tokens: tuple[Token, ...] = ()
    columns: tuple[sql.Composable, ...] = ()

    def join(self, other: Condition) -> Condition:
        """Return the condition that holds where both do."""
        return Condition(self.tokens + other.tokens, self.columns + other.columns)

    def test_tokens(self, values: Values, form: sql.SQL) -> tuple[sql.Composable, ...]:
        """Return the test of the tokens, where there is one, in one of the forms below."""
        return (form.format(values.add(all_of(list(self.tokens)))),) if self.tokens else ()


def compile_filter(condition: Filter | None, tokens: Tokens, values: Values) -> Condition:
    """Return the condition that a filter is, for a statement with these values."""
    if condition is None:
        return Condition()
    compiler = _Compiler(tokens, values)
    tokens_asked, columns = list[Token](), list[sql.Composable]()
    for each in _flatten(condition):
        part = compiler.compile(each)
        if isinstance(part, str):
            tokens_asked.append(part)
        else:
            columns.append(part)
            tokens_asked += compiler.find_necessary(each)
    return Condition(tuple(tokens_asked), tuple(columns))


def any_of(tokens: list[Token]) -> Token:
    """Return the query that at least one of the tokens matches; there is one at least."""
    return f"({' | '.join(tokens)})"


def all_of(tokens: list[Token]) -> Token:
    """Return the query that all of the tokens match; there is one at least."""
    return f"({' & '.join(tokens)})"


def _flatten(condition: Filter) -> list[Filter]:
    if isinstance(condition, And):
        return [inner for each in condition.conditions for inner in _flatten(each)]
    return [condition]


class _Compiler:
    """Turns conditions into queries of tokens as far as that goes, so that one index answers them together."""

    def __init__(self, tokens: Tokens, values: Values) -> None:
        self._tokens = tokens
        self._values = values

    def compile(self, condition: Filter) -> Token | sql.Composable:
        match condition:
            case HasAll(facet, asked):
                return all_of([self._tokens.of_facet(facet, each) for each in asked]) if asked else _ALWAYS
            case HasAny(facet, asked):
                return any_of([self._tokens.of_facet(facet, each) for each in asked]) if asked else _NEVER
            case InState(states):
                asked = [state.value for state in states]
                return sql.SQL("e.state = ANY({}::text[])").format(self._values.add(asked))
            case HasId(ids):
                return sql.SQL("e.id = ANY({}::text[])").format(self._values.add([*filter(is_storable, ids)]))
            case Overlaps():
                return self._compile_overlaps(condition)
            case Not(inner):
                part = self.compile(inner)
                return f"(!{part})" if isinstance(part, str) else sql.SQL("NOT ({})").format(part)
            case And(conditions):
                return self._join(conditions, sql.SQL(" AND "), " & ", _ALWAYS)
            case Or(conditions):
                return self._join(conditions, sql.SQL(" OR "), " | ", _NEVER)
            case _:
                assert_never(condition)

    def find_necessary(self, condition: Filter) -> tuple[Token, ...]:
        """Return queries that all match whatever passes: the index then leaves few entries whose columns are read."""
        match condition:
            case HasAll() | HasAny():
                part = self.compile(condition)
                return (part,) if isinstance(part, str) else ()
            case InState(states) if states and State.CURRENT not in states:
                return (any_of([self._tokens.of_state(state) for state in states]),)
            case And(conditions):
                return tuple(token for each in conditions for token in self.find_necessary(each))
            case Or(conditions):
                ways = [self.find_necessary(each) for each in conditions]
                return (any_of([all_of(list(way)) for way in ways]),) if ways and all(ways) else ()
            case _:
                return ()

    def _join(
        self, conditions: Sequence[Filter], joiner: sql.SQL, of_tokens: str, of_none: sql.Composable
    ) -> Token | sql.Composable:
        parts = [self.compile(each) for each in conditions]
        tokens = [part for part in parts if isinstance(part, str)]
        if parts and len(tokens) == len(parts):
            return f"({of_tokens.join(tokens)})"
        asked = [AMONG_MATCHES.format(self._values.add(part)) if isinstance(part, str) else part for part in parts]
        return sql.SQL("({})").format(joiner.join(asked)) if asked else of_none

    def _compile_overlaps(self, condition: Overlaps) -> sql.Composable:
        names = [name for name in condition.names if is_storable(name)]
        ends: list[sql.Composable] = [sql.SQL("s.name = ANY({}::text[])").format(self._values.add(names))]
        if condition.since is not None:
            since = self._values.add(encode_instant(condition.since))
            ends.append(sql.SQL("s.ends_at >= {}::bigint").format(since))
        if condition.until is not None:
            until = self._values.add(encode_instant(condition.until))
            ends.append(sql.SQL("s.starts_at <= {}::bigint").format(until))
        return sql.SQL("EXISTS (SELECT FROM spans s WHERE s.org = e.org AND s.document = e.document AND {})").format(
            sql.SQL(" AND ").join(ends)
        )
