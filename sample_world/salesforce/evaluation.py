"""Conditions, orders and selections, bound to the fields of an object."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import Any, cast

from sample_world.salesforce.articles import Record
from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.ids import to_long
from sample_world.salesforce.lexing import read_instant
from sample_world.salesforce.periods import resolve_period
from sample_world.salesforce.schema import Field, FieldType, ObjectType
from sample_world.salesforce.statements import (
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Negation,
    Path,
    SortKey,
    Value,
    ValueKind,
)

Predicate = Callable[[Record], bool]

_TOKENS_OF_PATTERN = re.compile(r"\\(.)|(.)", re.DOTALL)
_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_QUOTED: frozenset[FieldType] = frozenset(("id", "reference", "string", "textarea", "picklist"))
_KINDS: Mapping[FieldType, tuple[ValueKind, ...]] = {
    **dict.fromkeys(_QUOTED, cast("tuple[ValueKind, ...]", ("string",))),
    "boolean": ("boolean",),
    "datetime": ("datetime", "period"),
    "int": ("number",),
}
_TYPE_NAMES: Mapping[FieldType, str] = {"datetime": "dateTime", "id": "string", "reference": "string"}


@dataclass(frozen=True, slots=True)
class Binding:
    """A field that a path names: how to read it, and the canonical names of the path."""

    field: Field
    names: tuple[str, ...]

    def read(self, record: Record) -> object:
        """Return the value in a record, or in a record related to it."""
        for name in self.names[:-1]:
            record = cast("Record", record[name])
        return record.get(self.names[-1])


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in one statement: the object asked, what else the org has, and the time it is."""

    object: ObjectType
    objects: Mapping[str, ObjectType]
    now: datetime
    alias: str | None = None

    def resolve(self, path: Path) -> Binding:
        """Return the field that a path names.

        Raises:
            StatementError: there is none, or the user may not see it.
        """
        *relations, name = path.names
        if relations and relations[0].lower() in (self.object.name.lower(), (self.alias or "").lower()):
            relations = relations[1:]
        object, canonical = self.object, list[str]()
        for relation in relations:
            object, called = self._follow(object, relation, path)
            canonical.append(called)
        field = object.get_field(name)
        if field is None:
            raise StatementError("INVALID_FIELD", _NO_COLUMN.format(name, object.name), path.position)
        return Binding(field, (*canonical, field.name))

    def _follow(self, object: ObjectType, relation: str, path: Path) -> tuple[ObjectType, str]:
        field = object.get_relation(relation)
        target = self.objects.get(field.refers_to or "") if field else None
        if field is None or field.relation is None or target is None:
            raise StatementError("INVALID_FIELD", _NO_RELATION.format(relation), path.position)
        return target, field.relation

    def compile(self, condition: Condition | None) -> Predicate:
        """Return the predicate that a condition states; the absent one holds for all.

        Raises:
            StatementError: a field is unknown, may not be filtered, or is compared with what it cannot be.
        """
        if condition is None:
            return lambda _record: True
        if isinstance(condition, Comparison):
            return self._compile_comparison(condition)
        if isinstance(condition, Negation):
            inner = self.compile(condition.part)
            return lambda record: not inner(record)
        parts = [self.compile(part) for part in condition.parts]
        decide = all if isinstance(condition, AllOf) else any
        return lambda record: decide(part(record) for part in parts)

    def _compile_comparison(self, comparison: Comparison) -> Predicate:
        binding = self.resolve(comparison.path)
        field = binding.field
        if not field.filterable:
            text = f"field '{field.name}' can not be filtered in a query call"
            raise StatementError("INVALID_FIELD", text, comparison.path.position)
        _check_operator(field, comparison)
        for value in comparison.values:
            _check_value(field, comparison, value)
        if comparison.operator == "LIKE":
            return _match_pattern(binding, comparison.values[0])
        tests = [self._compile_value(binding, _single(comparison.operator), value) for value in comparison.values]
        decide = all if comparison.operator in ("!=", "NOT IN") else any
        return lambda record: decide(test(record) for test in tests)

    def _compile_value(self, binding: Binding, sign: str, value: Value) -> Predicate:
        if value.kind == "null":
            return lambda record: (binding.read(record) is None) == (sign == "=")
        if value.kind == "period":
            return _compare_span(binding, sign, resolve_period(value.text, value.count, self.now))
        wanted = _read_value(binding.field, value)
        if sign in ("=", "!="):
            return lambda record: (_normalize(binding.read(record)) == wanted) == (sign == "=")
        compare = _ORDERED[sign]

        def ordered(record: Record) -> bool:
            found = _normalize(binding.read(record))
            return found is not None and compare(found, wanted)

        return ordered

    def sort(self, records: Sequence[Record], order: Sequence[SortKey]) -> list[Record]:
        """Return the records in order; equal ones stay as they are.

        Raises:
            StatementError: a field is unknown or has no order.
        """
        keys = [(self._resolve_key(key), key) for key in order]

        def compare(left: Record, right: Record) -> int:
            for binding, key in keys:
                if decided := _compare(_normalize(binding.read(left)), _normalize(binding.read(right)), key):
                    return decided
            return 0

        return sorted(records, key=cmp_to_key(compare))

    def _resolve_key(self, key: SortKey) -> Binding:
        binding = self.resolve(key.path)
        if not binding.field.sortable:
            text = f"field '{binding.field.name}' can not be sorted in a query call"
            raise StatementError("INVALID_FIELD", text, key.path.position)
        return binding


_NO_COLUMN = (
    "No such column '{}' on entity '{}'. If you are attempting to use a custom field, be sure to append the '__c' after"
    " the custom field name. Please reference your WSDL or the describe call for the appropriate names."
)
_NO_RELATION = (
    "Didn't understand relationship '{}' in field path. If you are attempting to use a custom relationship, be sure to"
    " append the '__r' after the custom relationship name. Please reference your WSDL or the describe call for the"
    " appropriate names."
)


def format_value(value: object) -> object:
    """Return a value as it goes on the wire: instants with milliseconds and an offset without a colon."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
    return value


def project(scope: Scope, bindings: Sequence[tuple[str | None, Binding]], record: Record, version: str) -> Record:
    """Return a record with these fields, each under its alias where it has one, as it goes on the wire."""
    row = with_attributes(scope.object.name, record, version)
    for alias, binding in bindings:
        target = row
        for name in binding.names[:-1]:
            related = cast("Record", record[name])
            fresh = with_attributes(_relation_type(scope, name), related, version)
            target = cast("Record", target.setdefault(name, fresh))
        target[alias or binding.names[-1]] = format_value(binding.read(record))
    return row


def with_attributes(type: str, record: Record, version: str) -> Record:
    """Return the start of a record on the wire: what it is and where it is read."""
    return {"attributes": {"type": type, "url": f"/services/data/v{version}/sobjects/{type}/{record['Id']}"}}


def _relation_type(scope: Scope, name: str) -> str:
    relation = scope.object.get_relation(name)
    return relation.refers_to if relation and relation.refers_to else name


def _check_operator(field: Field, comparison: Comparison) -> None:
    sign = comparison.operator
    if sign in ("INCLUDES", "EXCLUDES"):
        text = f"{sign.lower()} operator only valid on multipicklist field"
        raise StatementError("INVALID_QUERY_FILTER_OPERATOR", text, comparison.path.position)
    ordered = sign in _ORDERED
    if (sign == "LIKE" and field.type not in ("string", "textarea", "picklist")) or (
        ordered and field.type in ("boolean", "id", "reference")
    ):
        text = f"invalid operator on {_TYPE_NAMES.get(field.type, field.type)} field"
        raise StatementError("INVALID_QUERY_FILTER_OPERATOR", text, comparison.path.position)


def _check_value(field: Field, comparison: Comparison, value: Value) -> None:
    if value.kind == "null":
        if comparison.operator in _ORDERED or comparison.operator == "LIKE":
            raise StatementError("MALFORMED_QUERY", "unexpected token: 'null'", value.position)
    elif value.kind not in _KINDS[field.type]:
        name = _TYPE_NAMES.get(field.type, field.type if field.type not in ("textarea", "picklist") else "string")
        quotes = "should be enclosed in quotes" if field.type in _QUOTED else "should not be enclosed in quotes"
        text = f"value of filter criterion for field '{field.name}' must be of type {name} and {quotes}"
        raise StatementError("INVALID_FIELD", text, comparison.path.position)
    elif field.type in ("id", "reference") and to_long(value.text) is None:
        text = f"invalid ID field: {value.text}"
        raise StatementError("INVALID_QUERY_FILTER_OPERATOR", text, value.position)


def _single(sign: str) -> str:
    return {"IN": "=", "NOT IN": "!="}.get(sign, sign)


def _read_value(field: Field, value: Value) -> object:
    if field.type in ("id", "reference"):
        return _normalize(to_long(value.text))
    if field.type == "boolean":
        return value.text == "true"
    if field.type == "int":
        return float(value.text)
    return read_instant(value.text) if field.type == "datetime" else value.text.casefold()


def _normalize(value: object) -> object:
    # Ids differ in their case only together with their checksum, so they stay apart without regard to case.
    return value.casefold() if isinstance(value, str) else value


def _match_pattern(binding: Binding, value: Value) -> Predicate:
    pattern = _compile_pattern(value.text)

    def matches(record: Record) -> bool:
        found = binding.read(record)
        return isinstance(found, str) and pattern.fullmatch(found) is not None

    return matches


def _compile_pattern(text: str) -> re.Pattern[str]:
    wild = {"%": ".*", "_": "."}
    parts = [
        re.escape(match[1]) if match[1] else wild.get(match[2]) or re.escape(match[2])
        for match in _TOKENS_OF_PATTERN.finditer(text)
    ]
    return re.compile("".join(parts), re.DOTALL | re.IGNORECASE)


def _compare_span(binding: Binding, sign: str, span: tuple[datetime, datetime]) -> Predicate:
    start, end = span
    tests: Mapping[str, Callable[[datetime], bool]] = {
        "=": lambda found: start <= found < end,
        "!=": lambda found: not start <= found < end,
        "<": lambda found: found < start,
        "<=": lambda found: found < end,
        ">": lambda found: found >= end,
        ">=": lambda found: found >= start,
    }

    def matches(record: Record) -> bool:
        found = binding.read(record)
        return tests[sign](found) if isinstance(found, datetime) else sign == "!="

    return matches


def _compare(left: object, right: object, key: SortKey) -> int:
    if left is None or right is None:
        return ((left is None) - (right is None)) * (1 if key.nulls_last else -1)
    first, second = cast("tuple[str, str]", (left, right))
    return ((first > second) - (first < second)) * (-1 if key.descending else 1)


def find_status_outside_conjunction(condition: Condition | None, *, inside: bool = False) -> Path | None:
    """Return where the publication status is asked below an OR or a NOT, or `None`."""
    if isinstance(condition, Comparison):
        return condition.path if inside and condition.path.names[-1].lower() == "publishstatus" else None
    if isinstance(condition, Negation):
        return find_status_outside_conjunction(condition.part, inside=True)
    parts = condition.parts if condition else ()
    found = (find_status_outside_conjunction(part, inside=inside or isinstance(condition, AnyOf)) for part in parts)
    return next((path for path in found if path), None)
