"""What stands in the braces of FIND: words, phrases, wildcards and operators.

AND and AND NOT bind closer than OR. Between words without an operator stands OR: the rule for articles, which are all
that is searched here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sample_world.salesforce.errors import StatementError
from sample_world.salesforce.words import split_words

OPERATORS_DROPPED_ABOVE = 4000
NO_ROWS_ABOVE = 10_000
_CODE = "MALFORMED_SEARCH"
_MAXIMUM_DEPTH = 50
_PIECE = re.compile(r'\s+|"(?:\\.|[^"\\])*"|[()]|(?:\\.|[^\s"()\\])+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow one another, with wildcards in them where `wild`; one not `exact` may be inflected."""

    words: tuple[str, ...]
    exact: bool = False
    wild: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """Expressions that must all be found."""

    parts: tuple[SearchExpression, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Expressions of which one must be found; none of none."""

    parts: tuple[SearchExpression, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """An expression that must not be found."""

    part: SearchExpression


SearchExpression: TypeAlias = Term | Every | Some | Without
NOTHING = Some(())


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Literal["word", "phrase", "mark", "operator"]
    text: str
    position: int


def parse_search_text(text: str, position: int = 0) -> SearchExpression:
    """Return what is searched for. Over 4,000 characters operators count as blanks; over 10,000 nothing is found.

    Raises:
        StatementError: quotes or parentheses do not close, an operator has nothing beside it, a word starts with a
            wildcard, or there are fewer than two characters to search for. `position` is where the text starts.
    """
    pieces = list(_split(text, position))
    if _count_characters(text) < 2:
        raise StatementError(_CODE, f"search term must be longer than one character: {text}", position)
    if len(text) > NO_ROWS_ABOVE:
        return NOTHING
    if len(text) > OPERATORS_DROPPED_ABOVE:
        return _gather(pieces)
    return _Parser(pieces, position + len(text)).parse()


def parse_forgiving(text: str) -> SearchExpression:
    """Return what a search outside SOSL looks for: as `parse_search_text`, but what would be an error there counts as
    a blank here.

    Raises:
        StatementError: there are fewer than two characters to search for.
    """
    softened = re.sub(r"(?<!\S)[*?]+", " ", text.replace("\\", " "))
    for candidate in (softened, re.sub(r'["()]', " ", softened)):
        try:
            return parse_search_text(candidate)
        except StatementError as error:
            failed = error
    if "longer than one character" in failed.message:
        raise failed
    return _gather(list(_split(re.sub(r'["()]', " ", softened), 0)))


def _count_characters(text: str) -> int:
    return len(re.sub(r"[\\\s()\"*?]", "", text))


def _split(text: str, offset: int) -> Iterator[_Piece]:
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise StatementError(_CODE, "line 1:0 mismatched character '<EOF>' expecting '\"'", offset + position)
        if not match[0].isspace():
            yield _classify(match[0], offset + position)
        position = match.end()


def _classify(text: str, position: int) -> _Piece:
    if text in ("(", ")"):
        return _Piece("mark", text, position)
    if text.startswith('"'):
        return _Piece("phrase", text[1:-1], position)
    if text.upper() in ("AND", "OR"):
        return _Piece("operator", text.upper(), position)
    return _Piece("word", text, position)


def _is_term(piece: _Piece) -> bool:
    return piece.kind in ("word", "phrase")


def _gather(pieces: Sequence[_Piece]) -> SearchExpression:
    terms = [_read_term(piece) for piece in pieces if _is_term(piece)]
    return Some(tuple(term for term in terms if term.words))


def _read_term(piece: _Piece) -> Term:
    # Escaped wildcards are punctuation like any other; those that are left are kept in their words.
    plain = re.sub(r"\\(.)", lambda match: " " if match[1] in "*?" else match[1], piece.text, flags=re.DOTALL)
    words = tuple(split_words(plain, wild=True))
    wild = any("*" in word or "?" in word for word in words)
    return Term(words, exact=piece.kind == "phrase" or len(words) > 1, wild=wild)


class _Parser:
    def __init__(self, pieces: Sequence[_Piece], end: int) -> None:
        self._pieces = pieces
        self._end = end
        self._at = 0
        self._depth = 0

    def parse(self) -> SearchExpression:
        expression = self._parse_any()
        if self._at < len(self._pieces):
            raise self._unexpected()
        return expression or NOTHING

    def _peek(self) -> _Piece | None:
        return self._pieces[self._at] if self._at < len(self._pieces) else None

    def _take(self, kind: str, text: str) -> bool:
        piece = self._peek()
        found = piece is not None and piece.kind == kind and piece.text.upper() == text
        self._at += found
        return found

    def _unexpected(self) -> StatementError:
        piece = self._peek()
        position = piece.position if piece else self._end
        text = f"line 1:{position} unexpected token: {piece.text if piece else '}'}"
        return StatementError(_CODE, text, position)

    def _parse_any(self) -> SearchExpression | None:
        self._depth += 1
        if self._depth > _MAXIMUM_DEPTH:
            raise self._unexpected()
        parts = [self._parse_every()]
        while self._take("operator", "OR") or self._starts_term():
            parts.append(self._parse_every())
        self._depth -= 1
        return _join(Some, parts)

    def _starts_term(self) -> bool:
        piece = self._peek()
        return piece is not None and (_is_term(piece) or (piece.kind == "mark" and piece.text == "("))

    def _parse_every(self) -> SearchExpression | None:
        parts = [self._parse_term()]
        while self._take("operator", "AND"):
            if self._take("word", "NOT"):
                part = self._parse_term()
                parts.append(Without(part) if part else None)
            else:
                parts.append(self._parse_term())
        return _join(Every, parts)

    def _parse_term(self) -> SearchExpression | None:
        if self._take("mark", "("):
            inner = self._parse_any()
            if not self._take("mark", ")"):
                raise self._unexpected()
            return inner
        piece = self._peek()
        if piece is None or not _is_term(piece) or piece.text[:1] in ("*", "?"):
            raise self._unexpected()
        self._at += 1
        term = _read_term(piece)
        return term if term.words else None


def _join(kind: type[Every] | type[Some], parts: Sequence[SearchExpression | None]) -> SearchExpression | None:
    # A term without a letter or digit, as `++`, neither finds nor excludes anything.
    kept = tuple(part for part in parts if part)
    return kept[0] if len(kept) == 1 else kind(kept) if kept else None
