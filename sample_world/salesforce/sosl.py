"""The grammar of SOSL: what stands in the braces of FIND is left to `search_text`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.search_text import SearchExpression, parse_search_text
from sample_world.salesforce.statements import CategoryFilter, Condition, Path, Reader, SortKey

SEARCH_GROUPS = ("ALL", "NAME", "EMAIL", "PHONE", "SIDEBAR")
MOST_ROWS = 2000
_CODE = "MALFORMED_SEARCH"
_START = re.compile(r"\s*FIND\s+\{", re.IGNORECASE)
_UNESCAPED = set("&|![]^~:'+-{")
_ESCAPABLE = set("?&|!{}[]()^~*:\\\"'+-")


@dataclass(frozen=True, slots=True)
class Returned:
    """One object in RETURNING. `limit` is `None` where none is said; without fields only ids are returned."""

    object: Path
    fields: tuple[Path, ...] = ()
    labels: frozenset[Path] = frozenset()
    where: Condition | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sosl:
    """A search. `snippet` is the length wanted or `None`; `scopes` are clauses about what an org may lack."""

    expression: SearchExpression
    group: str = "ALL"
    returning: tuple[Returned, ...] = ()
    scopes: tuple[str, ...] = ()
    categories: tuple[CategoryFilter, ...] = ()
    snippet: int | None = None
    metadata: bool = False
    limit: int = MOST_ROWS
    updates: tuple[str, ...] = ()


def parse_sosl(statement: str) -> Sosl:
    """Return the search that a statement makes. Clauses come in the documented order.

    Raises:
        StatementError: it is no statement of this language.
    """
    start = _START.match(statement)
    if start is None:
        text = "No search term found. The search term must be enclosed in braces."
        raise StatementError(_CODE, text, len(statement) - len(statement.lstrip()))
    end = _find_closing_brace(statement, start.end())
    expression = parse_search_text(statement[start.end() : end], start.end())
    reader = Reader(statement, code=_CODE, start=end + 1)
    group = _read_group(reader) if reader.take("IN") else "ALL"
    returning = reader.read_list(lambda: _read_returned(reader)) if reader.take("RETURNING") else ()
    search = _read_with_clauses(reader, expression, group, returning)
    reader.require_end()
    return search


def _find_closing_brace(statement: str, position: int) -> int:
    while position < len(statement) and statement[position] != "}":
        character = statement[position]
        escaped = character == "\\"
        following = statement[position + 1 : position + 2]
        if (escaped and following not in _ESCAPABLE) or character in _UNESCAPED or (escaped and not following):
            text = f"line 1:{position} mismatched character '{character}' expecting '}}'"
            raise StatementError(_CODE, text, position)
        position += 2 if escaped else 1
    if position >= len(statement):
        raise StatementError(_CODE, f"line 1:{position} mismatched character '<EOF>' expecting '}}'", position)
    return position


def _read_group(reader: Reader) -> str:
    for word in SEARCH_GROUPS:
        if reader.take(word, "FIELDS"):
            return word
    token = reader.peek(1) if any(reader.sees(word) for word in SEARCH_GROUPS) else reader.peek()
    raise reader.fail(f"Malformed search token: {token.text}", token)


def _read_returned(reader: Reader) -> Returned:
    path = _read_object(reader)
    if not reader.take_mark("("):
        return Returned(path)
    fields = reader.read_list(lambda: _read_field(reader))
    returned = Returned(
        path,
        tuple(field for field, _ in fields),
        frozenset(field for field, labelled in fields if labelled),
        where=reader.read_condition() if reader.take("WHERE") else None,
        order=reader.read_order() if reader.take("ORDER", "BY") else (),
        limit=_read_limit(reader) if reader.take("LIMIT") else None,
        offset=reader.read_number() if reader.take("OFFSET") else 0,
    )
    reader.require_mark(")")
    return returned


def _read_object(reader: Reader) -> Path:
    name = reader.read_name()
    return Path((name.text,), name.position)


def _read_field(reader: Reader) -> tuple[Path, bool]:
    path = reader.read_path()
    if str(path).upper() != "TOLABEL" or not reader.take_mark("("):
        return path, False
    inner = reader.read_path()
    reader.require_mark(")")
    return inner, True


def _read_limit(reader: Reader) -> int:
    token = reader.peek()
    limit = reader.read_number()
    if not 0 < limit <= MOST_ROWS:
        raise reader.fail(f"SOSL limit must be between 1 and {MOST_ROWS}", token)
    return limit


def _read_with_clauses(
    reader: Reader, expression: SearchExpression, group: str, returning: tuple[Returned, ...]
) -> Sosl:
    division = _read_scope(reader, "DIVISION")
    categories = reader.read_categories() if reader.take("WITH", "DATA", "CATEGORY") else ()
    snippet = _read_snippet(reader) if reader.take("WITH", "SNIPPET") else None
    scopes = (*division, *_read_network(reader), *_read_scope(reader, "PRICEBOOKID"))
    return Sosl(
        expression,
        group,
        returning,
        scopes,
        categories,
        snippet,
        metadata=reader.take("WITH", "METADATA") and _read_metadata(reader),
        limit=_read_limit(reader) if reader.take("LIMIT") else MOST_ROWS,
        updates=reader.read_updates() if reader.take("UPDATE") else (),
    )


def _read_scope(reader: Reader, word: str) -> tuple[str, ...]:
    if not reader.take("WITH", word):
        return ()
    reader.require_mark("=")
    reader.read_string()
    return (word,)


def _read_network(reader: Reader) -> tuple[str, ...]:
    if not reader.take("WITH", "NETWORK"):
        return ()
    if reader.take("IN"):
        reader.require_mark("(")
        reader.read_list(reader.read_string)
        reader.require_mark(")")
    else:
        reader.require_mark("=")
        reader.read_string()
    return ("NETWORK",)


def _read_snippet(reader: Reader) -> int:
    if not reader.take_mark("("):
        return 300
    reader.require("TARGET_LENGTH")
    reader.require_mark("=")
    token = reader.peek()
    length = reader.read_number()
    if not 50 <= length <= 1000:
        raise reader.fail("target_length must be between 50 and 1000", token)
    reader.require_mark(")")
    return length


def _read_metadata(reader: Reader) -> bool:
    reader.require_mark("=")
    token = reader.peek()
    if reader.read_string().upper() != "LABELS":
        raise reader.fail(f"unknown metadata: {token.text}", token)
    return True
