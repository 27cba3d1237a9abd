"""The words of SOQL, which the clauses of SOSL behind its braces share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sample_world.salesforce.errors import StatementError

TokenKind = Literal["name", "string", "number", "date", "datetime", "mark", "end"]

# Words that no field, object or alias may be called, in capitals.
RESERVED = frozenset(
    (
        *("ALL", "AND", "ASC", "BY", "DESC", "ELSE", "END", "EXCLUDES", "FALSE", "FIRST", "FOR", "FROM", "GROUP"),
        *("HAVING", "IN", "INCLUDES", "LAST", "LIKE", "LIMIT", "NOT", "NULL", "NULLS", "OFFSET", "OR", "ORDER"),
        *("SELECT", "THEN", "TRUE", "TYPEOF", "UPDATE", "USING", "WHEN", "WHERE", "WITH"),
    )
)

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<datetime>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)(?![0-9A-Za-z_]))
    |(?P<date>\d{4}-\d\d-\d\d(?![0-9A-Za-z_]))
    |(?P<number>\d+(?:\.\d+)?(?![0-9A-Za-z_.]))
    |(?P<name>[A-Za-z][A-Za-z0-9_]*)
    |(?P<string>'(?:[^'\\\r\n]|\\.)*')
    |(?P<mark><=|>=|!=|<>|[(),.=<>:+-])
    )""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.ASCII)
_SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LONGEST_STRING = 4000


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a statement as it stands there, without the blanks before it."""

    kind: TokenKind
    text: str
    position: int

    @property
    def end(self) -> int:
        """The position behind the token."""
        return self.position + len(self.text)


def tokenize(statement: str, *, code: str, start: int = 0) -> list[Token]:
    """Return the tokens from `start` on; the last is of kind `end`.

    Raises:
        StatementError: with `code`; at a character that starts no token, in a string that does not end, at a date that
            is none.
    """
    tokens: list[Token] = []
    position, end = start, len(statement.rstrip())
    while position < end:
        match = _TOKEN.match(statement, position)
        if match is None or match.lastgroup is None:
            raise _bad_character(statement, position, code)
        token = Token(_KINDS[match.lastgroup], match[match.lastgroup], match.start(match.lastgroup))
        _check_dates(token, code)
        tokens.append(token)
        position = match.end()
    return [*tokens, Token("end", "<EOF>", end)]


def read_string(token: Token, *, code: str, pattern: bool = False) -> str:
    r"""Return what a string literal means. With `pattern` the escapes `\%` and `\_` of LIKE stay as they are.

    Raises:
        StatementError: a backslash stands before anything but what may be escaped, or the string is too long.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if pattern and match[2] in "%_\\":
            return match[0]
        if match[2].lower() not in _SIMPLE_ESCAPES:
            text = f"Invalid string literal {token.text}. Illegal character sequence '{match[0]}' in string literal."
            raise StatementError(code, text, token.position + match.start())
        return _SIMPLE_ESCAPES[match[2].lower()]

    if len(token.text) - 2 > _LONGEST_STRING:
        raise StatementError(code, "maximum length of a string in a WHERE clause is 4000 characters", token.position)
    return _ESCAPE.sub(replace, token.text[1:-1])


_KINDS: dict[str, TokenKind] = {
    "name": "name",
    "string": "string",
    "number": "number",
    "date": "date",
    "datetime": "datetime",
    "mark": "mark",
}


def _bad_character(statement: str, position: int, code: str) -> StatementError:
    position += len(statement[position:]) - len(statement[position:].lstrip())
    found = statement[position]
    if found == ":":
        return StatementError(code, "Bind variables only allowed in Apex code", position)
    return StatementError(code, f"line 1:{position} no viable alternative at character '{found}'", position)


def _check_dates(token: Token, code: str) -> None:
    if token.kind in ("date", "datetime"):
        try:
            read_instant(token.text)
        except ValueError as error:
            raise StatementError(code, f"Invalid date: {token.text}", token.position) from error


def read_instant(text: str) -> datetime:
    """Return the day (without a zone) or the instant (with one) that a literal names.

    Raises:
        ValueError: there is no such day or time.
    """
    text = text.upper().replace("Z", "+00:00")
    text = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text) if "T" in text else text
    return datetime.fromisoformat(re.sub(r"\.(\d{1,6})\d*", lambda match: "." + match[1].ljust(6, "0"), text))
