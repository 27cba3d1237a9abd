"""The grammar of SOQL, as much of it as reading articles takes.

Aggregates, grouping, subqueries, TYPEOF, USING SCOPE and date functions are refused, as are the parts of the language
that only Apex has: bind variables, comments, ALL ROWS, FOR UPDATE, WITH SECURITY_ENFORCED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.statements import CategoryFilter, Condition, Path, Reader, SortKey

LONGEST_STATEMENT = 20_000
LARGEST_OFFSET = 2000
_CODE = "MALFORMED_QUERY"

Selection = Literal["field", "label", "count", "all", "standard", "custom"]


@dataclass(frozen=True, slots=True)
class Selected:
    """One thing that is selected. `alias` is what it is called in the answer, where the statement says so."""

    kind: Selection
    path: Path
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Soql:
    """A query. `limit` is `None` where none is said."""

    selected: tuple[Selected, ...]
    object: Path
    alias: str | None
    where: Condition | None
    categories: tuple[CategoryFilter, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int
    updates: tuple[str, ...]


def parse_soql(statement: str) -> Soql:
    """Return the query that a statement makes.

    Raises:
        StatementError: it is no statement of this language, or longer than 20,000 characters.
    """
    if len(statement) > LONGEST_STATEMENT:
        raise StatementError(_CODE, f"SOQL statements cannot be longer than {LONGEST_STATEMENT} characters.", 0)
    reader = Reader(statement, code=_CODE)
    reader.require("SELECT")
    selected = reader.read_list(lambda: _read_selected(reader))
    reader.require("FROM")
    name = reader.read_name()
    alias = _read_alias(reader)
    query = Soql(
        selected,
        Path((name.text,), name.position),
        alias,
        where=reader.read_condition() if reader.take("WHERE") else None,
        categories=reader.read_categories() if reader.take("WITH", "DATA", "CATEGORY") else (),
        order=reader.read_order() if reader.take("ORDER", "BY") else (),
        limit=reader.read_number() if reader.take("LIMIT") else None,
        offset=_read_offset(reader) if reader.take("OFFSET") else 0,
        updates=_read_effects(reader),
    )
    reader.require_end()
    _check_selection(query)
    return query


def _read_alias(reader: Reader) -> str | None:
    token = reader.peek()
    following = reader.peek(1).text.upper()
    clause_starts = {"USING", "WITH", "FOR", "UPDATE", "WHERE", "ORDER", "LIMIT", "OFFSET", "GROUP", "ALL"}
    if token.kind != "name" or token.text.upper() in clause_starts or following == ".":
        return None
    return reader.read_name().text


def _read_selected(reader: Reader) -> Selected:
    path = reader.read_path()
    if not reader.take_mark("("):
        return Selected("field", path)
    word = str(path).upper()
    if word == "COUNT" and reader.take_mark(")"):
        return Selected("count", path)
    if word == "FIELDS":
        return _read_field_group(reader)
    if word != "TOLABEL":
        raise StatementError(_CODE, f"the function {path} is not emulated", path.position)
    inner = reader.read_path()
    reader.require_mark(")")
    aliased = reader.peek().kind == "name" and not reader.sees("FROM")
    return Selected("label", inner, reader.read_name().text if aliased else None)


def _read_field_group(reader: Reader) -> Selected:
    group = reader.peek()
    for word, kind in _GROUPS.items():
        if reader.take(word):
            reader.require_mark(")")
            return Selected(kind, Path((word,), group.position))
    raise reader.unexpected()


_GROUPS: dict[str, Selection] = {"ALL": "all", "STANDARD": "standard", "CUSTOM": "custom"}


def _read_offset(reader: Reader) -> int:
    token = reader.peek()
    offset = reader.read_number()
    if offset > LARGEST_OFFSET:
        text = f"Maximum SOQL offset allowed is {LARGEST_OFFSET}"
        raise StatementError("NUMBER_OUTSIDE_VALID_RANGE", text, token.position)
    return offset


def _read_effects(reader: Reader) -> tuple[str, ...]:
    # FOR VIEW and FOR REFERENCE note on the record that it was seen, which nothing here reads.
    if reader.take("FOR") and not reader.take("VIEW"):
        reader.require("REFERENCE")
    return reader.read_updates() if reader.take("UPDATE") else ()


def _check_selection(query: Soql) -> None:
    kinds = [selected.kind for selected in query.selected]
    if "count" in kinds and (len(kinds) > 1 or query.order):
        raise StatementError(
            _CODE, "COUNT() must be selected alone and without an order", query.selected[0].path.position
        )
    unbounded = next((selected for selected in query.selected if selected.kind in ("all", "custom")), None)
    if unbounded and (query.limit is None or query.limit > 200):
        raise StatementError(
            _CODE, "The SOQL FIELDS function must have a LIMIT of at most 200", unbounded.path.position
        )
