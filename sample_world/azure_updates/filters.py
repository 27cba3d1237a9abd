"""OData's `$filter`, as far as clients of the feed use it: parsed once, then asked of each record.

Grammar, loosest first (OData 4.01, part 2, section 5.1.1; `not` binds tighter than `and`, `and` tighter than `or`)::

    or         = and *( "or" and )
    and        = not *( "and" not )
    not        = "not" not | "(" or ")" | lambda | comparison
    lambda     = collection "/" ("any" | "all") "(" variable ":" or ")" | collection "/" "any" "(" ")"
    comparison = property ("eq" | "ne" | "gt" | "ge" | "lt" | "le") literal
    literal    = string | instant | number | "null"

Everything else is refused, as the service refuses it, so that a client's slip shows at once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from sample_world.azure_updates.instants import to_ticks

ValueKind = Literal["string", "instant", "number"]
Scope: TypeAlias = Mapping[str, object]
Predicate: TypeAlias = Callable[[Scope], bool]

PROPERTIES: Mapping[str, ValueKind] = {
    "id": "string",
    "title": "string",
    "description": "string",
    "status": "string",
    "locale": "string",
    "created": "instant",
    "modified": "instant",
    "generalAvailabilityDate": "string",
    "previewAvailabilityDate": "string",
    "privatePreviewAvailabilityDate": "string",
}
COLLECTIONS: Mapping[str, ValueKind | Mapping[str, ValueKind]] = {
    "tags": "string",
    "products": "string",
    "productCategories": "string",
    "availabilities": {"ring": "string", "year": "number", "month": "string"},
}
MAXIMUM_DEPTH = 50

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<instant>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))
  | (?P<date>\d{4}-\d\d-\d\d)
  | (?P<number>-?\d+(?:\.\d+)?)
  | (?P<string>'(?:[^']|'')*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark>[()/:])
    )""",
    re.VERBOSE,
)


class BadFilterError(ValueError):
    """The text is no filter that the service would take; the message says where it goes wrong."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def parse_filter(text: str) -> Predicate:
    """Return the condition that `text` states; asked of a record, it says whether the record meets it.

    A property that is absent, null or of another type than the feed's meets only `ne`, and `eq null` where it is absent
    or null.

    Raises:
        BadFilterError: the text does not parse, names an unknown property, or compares different types.
    """
    return _Parser(_tokenize(text)).parse()


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadFilterError(f"Syntax error at position {position}.")
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        position = match.end()
    return [*tokens, _Token("end", "the end", end)]


class _Parser:
    """Recursive descent over the tokens; variables of lambdas in force are kept with their types."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._variables: dict[str, ValueKind | Mapping[str, ValueKind]] = {}

    def parse(self) -> Predicate:
        predicate = self._parse_or()
        if self._peek().kind != "end":
            raise self._unexpected()
        return predicate

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        token = self._peek()
        if token.kind in ("name", "mark") and token.text in texts:
            self._at += 1
            return token
        return None

    def _require(self, *texts: str) -> _Token:
        token = self._take(*texts)
        if token is None:
            raise self._unexpected()
        return token

    def _require_name(self) -> str:
        token = self._peek()
        if token.kind != "name":
            raise self._unexpected()
        self._at += 1
        return token.text

    def _unexpected(self) -> BadFilterError:
        token = self._peek()
        return BadFilterError(f"Syntax error: unexpected {token.text} at position {token.position}.")

    def _parse_or(self) -> Predicate:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise BadFilterError("The filter is nested too deeply.")
        parts = [self._parse_and()]
        while self._take("or"):
            parts.append(self._parse_and())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else lambda scope: any(part(scope) for part in parts)

    def _parse_and(self) -> Predicate:
        parts = [self._parse_not()]
        while self._take("and"):
            parts.append(self._parse_not())
        return parts[0] if len(parts) == 1 else lambda scope: all(part(scope) for part in parts)

    def _parse_not(self) -> Predicate:
        negated = False
        while self._take("not"):
            negated = not negated
        inner = self._parse_primary()
        return (lambda scope: not inner(scope)) if negated else inner

    def _parse_primary(self) -> Predicate:
        if self._take("("):
            inner = self._parse_or()
            self._require(")")
            return inner
        name = self._require_name()
        if name in COLLECTIONS and name not in self._variables:
            return self._parse_lambda(name)
        return self._parse_comparison(name)

    def _parse_lambda(self, collection: str) -> Predicate:
        self._require("/")
        quantifier = self._require("any", "all").text
        self._require("(")
        if quantifier == "any" and self._take(")"):
            return lambda scope: bool(_items(scope, collection))
        variable = self._require_name()
        if variable in self._variables or variable in PROPERTIES or variable in COLLECTIONS:
            raise BadFilterError(f"The range variable {variable} is already in use.")
        self._require(":")
        self._variables[variable] = COLLECTIONS[collection]
        inner = self._parse_or()
        del self._variables[variable]
        self._require(")")
        return _quantify(any if quantifier == "any" else all, collection, variable, inner)

    def _parse_comparison(self, name: str) -> Predicate:
        read, kind = self._resolve(name)
        compare = _COMPARISONS[self._require(*_COMPARISONS).text]
        literal = self._parse_literal(name, kind)
        return lambda scope: _compare(compare, _typed(read(scope), kind), literal)

    def _resolve(self, name: str) -> tuple[Callable[[Scope], object], ValueKind]:
        kind = self._variables.get(name) or PROPERTIES.get(name)
        if kind is None:
            raise BadFilterError(f"Could not find a property named '{name}' on type 'Azure'.")
        if isinstance(kind, str):
            return (lambda scope: scope.get(name)), kind
        self._require("/")
        member = self._require_name()
        if member not in kind:
            raise BadFilterError(f"Could not find a property named '{member}' on an availability.")
        return (lambda scope: _member(scope[name], member)), kind[member]

    def _parse_literal(self, name: str, kind: ValueKind) -> object:
        token = self._peek()
        if token.kind == "name" and token.text == "null":
            self._at += 1
            return None
        value = _read_literal(token) if token.kind == kind else None
        if value is None:
            raise BadFilterError(f"'{name}' is compared with {token.text}, which is no {kind}.")
        self._at += 1
        return value


def _read_literal(token: _Token) -> object:
    if token.kind == "string":
        return token.text[1:-1].replace("''", "'")
    return to_ticks(token.text) if token.kind == "instant" else float(token.text)


def _member(item: object, name: str) -> object:
    return cast("Scope", item).get(name) if isinstance(item, dict) else None


def _items(scope: Scope, collection: str) -> list[object]:
    value = scope.get(collection)
    return cast("list[object]", value) if isinstance(value, list) else []


def _quantify(quantifier: Callable[[list[bool]], bool], collection: str, variable: str, inner: Predicate) -> Predicate:
    return lambda scope: quantifier([inner({**scope, variable: item}) for item in _items(scope, collection)])


def _typed(value: object, kind: ValueKind) -> object:
    if kind == "instant":
        return to_ticks(value)
    return value if isinstance(value, str if kind == "string" else int | float) else None


def _compare(compare: Callable[[object, object], bool], value: object, literal: object) -> bool:
    if value is None or literal is None:
        return compare(value, literal) if compare in (operator.eq, operator.ne) else False
    return compare(value, literal)
