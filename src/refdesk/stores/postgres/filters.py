"""Compiles filters to SQL: conditions on an entry's columns, and the numbers by which the index finds what may pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from refdesk.core.keeping.encoding import encode_instant, is_storable
from refdesk.model import And, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps, State
from refdesk.stores.postgres.connections import Text, quote
from refdesk.stores.postgres.indexing import Tokens, shorten

ALWAYS = Text("true")


def compile_filter(condition: Filter | None, tokens: Tokens) -> Text:
    """Return a filter as a condition on the columns of `entries`, aliased `e`."""
    return ALWAYS if condition is None else _Compiler(tokens).compile(condition)


def find_ways(condition: Filter | None, tokens: Tokens) -> tuple[int, ...] | None:
    """Return numbers of which every entry that passes holds at least one; `None` if there are no such numbers."""
    match condition:
        case HasAll(facet, asked) if asked:
            return (shorten(tokens.of_facet(facet, asked[0])),)
        case HasAny(facet, asked):
            return tuple(shorten(tokens.of_facet(facet, each)) for each in asked)
        case InState(states) if State.CURRENT not in states:
            return tuple(tokens.of_state(state) for state in states)
        case And(conditions):
            found = [ways for each in conditions if (ways := find_ways(each, tokens)) is not None]
            return min(found, key=len, default=None)
        case Or(conditions):
            ways = [find_ways(each, tokens) for each in conditions]
            return _join(ways) if ways else ()
        case _:
            return None


def is_open(condition: Filter | None) -> bool:
    """Return whether, judging by its form, a filter passes everything that searches may find, in whatever state."""
    match condition:
        case None:
            return True
        case InState(states):
            return {State.CURRENT, State.SUPERSEDED} <= {*states}
        case And(conditions):
            return all(map(is_open, conditions))
        case Or(conditions):
            states = [state for each in conditions for state in _list_states(each)]
            return {State.CURRENT, State.SUPERSEDED} <= {*states} or any(map(is_open, conditions))
        case _:
            return False


def _list_states(condition: Filter) -> Sequence[State]:
    """Return states in which every document passes."""
    match condition:
        case InState(states):
            return states
        case And(conditions) if len(conditions) == 1:
            return _list_states(conditions[0])
        case _:
            return ()


def is_selective(condition: Filter | None) -> bool:
    """Return whether only few documents may pass: a filter for what holds now lets most of them pass."""
    match condition:
        case None | InState() | Not(Overlaps()):
            return False
        case And(conditions):
            return any(map(is_selective, conditions))
        case Or(conditions):
            current = [each for each in conditions if not _is_old(each)]
            return all(map(is_selective, current))
        case _:
            return True


def _is_old(condition: Filter) -> bool:
    return isinstance(condition, InState) and State.CURRENT not in condition.states


def _join(ways: Iterable[Sequence[int] | None]) -> tuple[int, ...] | None:
    joined: list[int] = []
    for each in ways:
        if each is None:
            return None
        joined += each
    return tuple(joined)


class _Compiler:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def compile(self, condition: Filter) -> Text:
        match condition:
            case HasAll(facet, asked):
                return Text("e.facets @> {}::bigint[]").format(self._number(facet, asked))
            case HasAny(facet, asked):
                return Text("e.facets && {}::bigint[]").format(self._number(facet, asked))
            case InState(states):
                asked = [state.value for state in states]
                return Text("e.state = ANY({}::text[])").format(quote(asked))
            case HasId(ids):
                return Text("e.id = ANY({}::text[])").format(quote([*filter(is_storable, ids)]))
            case Overlaps():
                return self._compile_overlaps(condition)
            case Not(inner):
                return Text("NOT ({})").format(self.compile(inner))
            case And(conditions):
                return self._join(conditions, Text(" AND "), ALWAYS)
            case Or(conditions):
                return self._join(conditions, Text(" OR "), Text("false"))
            case _:
                assert_never(condition)

    def _number(self, facet: str, asked: Sequence[str]) -> Text:
        return quote([self._tokens.of_facet(facet, each) for each in asked])

    def _join(self, conditions: Sequence[Filter], joiner: Text, of_none: Text) -> Text:
        parts = [self.compile(each) for each in conditions]
        return Text("({})").format(joiner.join(parts)) if parts else of_none

    def _compile_overlaps(self, condition: Overlaps) -> Text:
        names = [name for name in condition.names if is_storable(name)]
        ends: list[Text] = [Text("s.name = ANY({}::text[])").format(quote(names))]
        if condition.since is not None:
            since = quote(encode_instant(condition.since))
            ends.append(Text("s.ends_at >= {}::bigint").format(since))
        if condition.until is not None:
            until = quote(encode_instant(condition.until))
            ends.append(Text("s.starts_at <= {}::bigint").format(until))
        return Text("EXISTS (SELECT FROM spans s WHERE s.org = e.org AND s.document = e.document AND {})").format(
            Text(" AND ").join(ends)
        )
