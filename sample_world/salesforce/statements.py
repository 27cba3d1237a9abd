"""What statements are made of, and the reading of what SOQL and SOSL share: conditions, orders, numbers, categories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.lexing import RESERVED, Token, read_string, tokenize

ValueKind = Literal["string", "number", "boolean", "null", "date", "datetime", "period"]
MAXIMUM_DEPTH = 50

_PERIOD = re.compile(
    r"YESTERDAY|TODAY|TOMORROW|(?:LAST|NEXT)_90_DAYS|(?:LAST|THIS|NEXT)_(?:WEEK|(?:FISCAL_)?(?:QUARTER|YEAR)|MONTH)"
)
_COUNTED_PERIOD = re.compile(
    r"(?:LAST|NEXT)_N_(?:DAYS|WEEKS|MONTHS|(?:FISCAL_)?(?:QUARTERS|YEARS))"
    r"|N_(?:DAYS|WEEKS|MONTHS|(?:FISCAL_)?(?:QUARTERS|YEARS))_AGO"
)
_COMPARISONS = ("=", "!=", "<>", "<", "<=", ">", ">=")
_CATEGORY_SELECTORS = ("AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Path:
    """A field, or a field of a related record, as it is written; `("RecordType", "Name")`."""

    names: tuple[str, ...]
    position: int

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Value:
    """A literal. `text` is what a string means, a LIKE pattern with its escapes, or else what stands there."""

    kind: ValueKind
    text: str
    position: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field compared; `operator` in capitals, `!=` for `<>`. Only operators with lists have more than one value."""

    path: Path
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions that must all hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions of which one must hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """A condition that must not hold."""

    part: Condition


Condition: TypeAlias = Comparison | AllOf | AnyOf | Negation


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order; nulls come first unless it is said otherwise."""

    path: Path
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class CategoryFilter:
    """One group of data categories, a selector in capitals, and the categories named."""

    group: str
    selector: str
    categories: tuple[str, ...]
    position: int


class Reader:
    """Recursive descent over the tokens of one statement; `code` is the error code of its language."""

    def __init__(self, statement: str, *, code: str, start: int = 0) -> None:
        self._code = code
        self._tokens = tokenize(statement, code=code, start=start)
        self._at = 0
        self._depth = 0

    def fail(self, message: str, token: Token | None = None) -> StatementError:
        """Return the error to raise at `token`, or at the next token."""
        return StatementError(self._code, message, (token or self.peek()).position)

    def unexpected(self) -> StatementError:
        """Return the error to raise when the next token does not belong there."""
        token = self.peek()
        if token.text == ":":
            return self.fail("Bind variables only allowed in Apex code")
        return self.fail(f"unexpected token: {token.text if token.kind == 'end' else repr(token.text)}")

    def peek(self, ahead: int = 0) -> Token:
        """Return a token without taking it."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def sees(self, *words: str) -> bool:
        """Say whether these words, in capitals, come next, in this order."""
        tokens = [self.peek(index) for index in range(len(words))]
        return all(
            token.kind == "name" and token.text.upper() == word for token, word in zip(tokens, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Take these words if they come next, all or none."""
        found = self.sees(*words)
        self._at += len(words) if found else 0
        return found

    def take_mark(self, *marks: str) -> Token | None:
        """Take one of these marks if it comes next."""
        token = self.peek()
        if token.kind != "mark" or token.text not in marks:
            return None
        self._at += 1
        return token

    def require(self, *words: str) -> None:
        """Take these words, which must come next."""
        for word in words:
            if not self.take(word):
                raise self.unexpected()

    def require_mark(self, mark: str) -> Token:
        """Take this mark, which must come next."""
        token = self.take_mark(mark)
        if token is None:
            raise self.unexpected()
        return token

    def require_end(self) -> None:
        """Fail unless nothing is left."""
        if self.peek().kind != "end":
            raise self.unexpected()

    def read_name(self) -> Token:
        """Take a name that is no reserved word."""
        token = self.peek()
        if token.kind != "name" or token.text.upper() in RESERVED:
            raise self.unexpected()
        self._at += 1
        return token

    def read_path(self) -> Path:
        """Take a field, or a dotted path to one; no blanks around the dots."""
        tokens = [self.read_name()]
        position = tokens[0].position
        while (dot := self.peek()).text == ".":
            self._at += 1
            if dot.position != tokens[-1].end or self.peek().position != dot.end:
                raise self.fail("unexpected token: '.'", dot)
            tokens.append(self.read_name())
        return Path(tuple(token.text for token in tokens), position)

    def read_number(self) -> int:
        """Take a whole number without a sign."""
        token = self.peek()
        if token.kind != "number" or not token.text.isdigit():
            raise self.unexpected()
        self._at += 1
        return int(token.text)

    def read_string(self) -> str:
        """Take a string literal and return what it means."""
        token = self.peek()
        if token.kind != "string":
            raise self.unexpected()
        self._at += 1
        return read_string(token, code=self._code)

    def read_list(self, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        """Take one or more of something, separated by commas."""
        items = [read()]
        while self.take_mark(","):
            items.append(read())
        return tuple(items)

    def read_condition(self) -> Condition:
        """Take a condition. AND and OR may be mixed only under parentheses, and NOT stands alone or under them."""
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise self.fail("the condition is nested too deeply")
        condition = Negation(self._read_part()) if self.take("NOT") else self._read_chain()
        self._depth -= 1
        return condition

    def _read_chain(self) -> Condition:
        parts = [self._read_part()]
        word = next((word for word in ("AND", "OR") if self.sees(word)), None)
        while word and self.take(word):
            parts.append(self._read_part())
        if len(parts) == 1:
            return parts[0]
        return AllOf(tuple(parts)) if word == "AND" else AnyOf(tuple(parts))

    def _read_part(self) -> Condition:
        if self.take_mark("("):
            condition = self.read_condition()
            self.require_mark(")")
            return condition
        return self._read_comparison()

    def _read_comparison(self) -> Comparison:
        path = self.read_path()
        mark = self.take_mark(*_COMPARISONS)
        if mark:
            return Comparison(path, "!=" if mark.text == "<>" else mark.text, (self._read_value(),))
        if self.take("LIKE"):
            return Comparison(path, "LIKE", (self._read_value(pattern=True),))
        for words in (("IN",), ("NOT", "IN"), ("INCLUDES",), ("EXCLUDES",)):
            if self.take(*words):
                self.require_mark("(")
                values = self.read_list(self._read_value)
                self.require_mark(")")
                return Comparison(path, " ".join(words), values)
        raise self.unexpected()

    def _read_value(self, *, pattern: bool = False) -> Value:
        token = self.peek()
        if token.kind == "mark" and token.text in "+-":
            return self._read_signed()
        self._at += 1
        if token.kind == "string":
            return Value("string", read_string(token, code=self._code, pattern=pattern), token.position)
        if token.kind in ("number", "date", "datetime"):
            return Value(token.kind, token.text, token.position)
        if token.kind == "name" and (value := self._read_word(token)):
            return value
        self._at -= 1
        raise self.unexpected()

    def _read_signed(self) -> Value:
        sign = self.peek()
        number = self.peek(1)
        if number.kind != "number" or number.position != sign.end:
            raise self.unexpected()
        self._at += 2
        return Value("number", sign.text + number.text, sign.position)

    def _read_word(self, token: Token) -> Value | None:
        word = token.text.upper()
        if word in ("TRUE", "FALSE"):
            return Value("boolean", word.lower(), token.position)
        if word == "NULL":
            return Value("null", "null", token.position)
        if _PERIOD.fullmatch(word):
            return Value("period", word, token.position)
        return self._read_counted_period(token, word) if _COUNTED_PERIOD.fullmatch(word) else None

    def _read_counted_period(self, token: Token, word: str) -> Value:
        colon = self.require_mark(":")
        number = self.peek()
        if colon.position != token.end or number.position != colon.end:
            raise self.unexpected()
        count = self.read_number()
        if not 0 < count <= 10_000:
            raise self.fail(f"invalid number of a date literal: {count}", number)
        return Value("period", word, token.position, count)

    def read_order(self) -> tuple[SortKey, ...]:
        """Take what follows `ORDER BY`."""
        return self.read_list(self._read_sort_key)

    def _read_sort_key(self) -> SortKey:
        path = self.read_path()
        descending = not self.take("ASC") and self.take("DESC")
        nulls_last = False
        if self.take("NULLS"):
            nulls_last = self.take("LAST")
            if not nulls_last:
                self.require("FIRST")
        return SortKey(path, descending, nulls_last)

    def read_categories(self) -> tuple[CategoryFilter, ...]:
        """Take what follows `WITH DATA CATEGORY`; several groups are joined by AND only."""
        filters = [self._read_category()]
        while self.take("AND"):
            filters.append(self._read_category())
        return tuple(filters)

    def _read_category(self) -> CategoryFilter:
        group = self.read_name()
        selector = next((word for word in _CATEGORY_SELECTORS if self.take(word)), None)
        if selector is None:
            raise self.unexpected()
        if not self.take_mark("("):
            return CategoryFilter(group.text, selector, (self.read_name().text,), group.position)
        names = self.read_list(lambda: self.read_name().text)
        self.require_mark(")")
        return CategoryFilter(group.text, selector, names, group.position)

    def read_updates(self) -> tuple[str, ...]:
        """Take what follows `UPDATE`: TRACKING, VIEWSTAT or both, each once."""
        updates = self.read_list(self._read_update)
        if len(set(updates)) < len(updates):
            raise self.unexpected()
        return updates

    def _read_update(self) -> str:
        for word in ("TRACKING", "VIEWSTAT"):
            if self.take(word):
                return word
        raise self.unexpected()


def walk(condition: Condition | None) -> Iterator[Comparison]:
    """Yield every comparison in a condition, in the order in which they stand."""
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, Negation):
        yield from walk(condition.part)
    elif condition is not None:
        for part in condition.parts:
            yield from walk(part)


def get_conjuncts(condition: Condition | None) -> Iterator[Comparison]:
    """Yield the comparisons that must hold whatever else does: those that only ANDs stand above."""
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, AllOf):
        for part in condition.parts:
            yield from get_conjuncts(part)
