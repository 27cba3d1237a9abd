"""Compiles filters to Cypher. Caller input becomes a parameter, never text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from refdesk.core.keeping.encoding import is_encodable
from refdesk.model import And, Filter, HasAll, HasAny, HasId, InState, Not, Or, Overlaps
from refdesk.stores.neo4j.rows import encode_instant, get_facet_word

_EVERYTHING = And(())


@dataclass(slots=True)
class Condition:
    """A condition on the node `d`.

    Attributes:
        parameters: The parameters that the expression names.
        expression: The condition in Cypher.
        names_ids: Whether only documents with ids that it lists can meet it.
    """

    parameters: dict[str, object] = field(default_factory=dict[str, object])
    expression: str = "true"
    names_ids: bool = False

    def add(self, value: object) -> str:
        """Add a parameter with this value, and return how an expression refers to it."""
        name = f"w{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"


def compile_filter(where: Filter | None) -> Condition:
    """Return a filter as a condition, which always holds if there is no filter.

    Text with half of a surrogate pair is never stored and cannot be sent, so it is taken to match nothing.
    """
    condition = Condition(names_ids=_names_ids(where))
    condition.expression = _compile(where or _EVERYTHING, condition)
    return condition


def _names_ids(where: Filter | None) -> bool:
    return isinstance(where, HasId) or (isinstance(where, And) and any(map(_names_ids, where.conditions)))


def _compile(where: Filter, condition: Condition) -> str:
    match where:
        case HasAll(facet, values):
            if not all(is_encodable(text) for text in (facet, *values)):
                return "false"
            return f"all(word IN {_add_words(facet, values, condition)} WHERE word IN d.facet_words)"
        case HasAny(facet, values):
            storable = [value for value in values if is_encodable(facet + value)]
            return f"any(word IN {_add_words(facet, storable, condition)} WHERE word IN d.facet_words)"
        case Overlaps():
            return _compile_overlaps(where, condition)
        case InState(states):
            return f"d.state IN {condition.add([state.value for state in states])}"
        case HasId(ids):
            return f"d.id IN {condition.add([id for id in ids if is_encodable(id)])}"
        case Not(inner):
            return f"NOT {_compile(inner, condition)}"
        case And(conditions):
            return _join(" AND ", "true", (_compile(each, condition) for each in conditions))
        case Or(conditions):
            return _join(" OR ", "false", (_compile(each, condition) for each in conditions))
        case _:
            assert_never(where)


def _join(operator: str, of_none: str, expressions: Iterable[str]) -> str:
    return f"({operator.join(expressions) or of_none})"


def _add_words(facet: str, values: Iterable[str], condition: Condition) -> str:
    return condition.add([get_facet_word(facet, value) for value in values])


def _compile_overlaps(where: Overlaps, condition: Condition) -> str:
    parts = [f"d.span_names[i] IN {condition.add([name for name in where.names if is_encodable(name)])}"]
    if where.since is not None:
        parts.append(f"d.span_ends[i] >= {condition.add(encode_instant(where.since))}")
    if where.until is not None:
        parts.append(f"d.span_starts[i] <= {condition.add(encode_instant(where.until))}")
    return f"any(i IN range(0, size(d.span_names) - 1) WHERE {' AND '.join(parts)})"
