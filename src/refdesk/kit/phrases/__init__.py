"""What people say in support conversations in other languages than English: one module for each language.

Each module has one text for each kind, with one phrase per line as it is spelt, with or without its accents. In a
phrase, `…` stands for up to 30 characters of the same sentence, and the rest is a regular expression. The phrases of
all languages are searched for at once: a customer's answer is often too short to tell its language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Literal, TypeAlias

import regex

from refdesk.kit.phrases import chinese, dutch, french, german, italian, japanese, polish, portuguese, spanish

Kind: TypeAlias = Literal[
    "GREETING",
    "ASSENT",
    "CIVIL",
    "OFFERING",
    "CLOSING",
    "REPAIR",
    "WORKED",
    "GONE",
    "NEGATION",
    "FAILED",
    "UNSOLVED",
    "ORDER",
    "FORBIDDEN",
    "REPORT",
    "QUESTION",
    "AGREES",
    "DECLINES",
    "REFUSES",
    "MENDED",
    "TAKEN_BACK",
    "HANDED_OVER",
    "WISH",
]
"""The kinds of phrases.

Attributes:
    GREETING: What a sentence may begin with.
    ASSENT: The same, but only before punctuation.
    CIVIL: Whole sentences that say nothing.
    OFFERING: An offer to help.
    CLOSING: The end of a conversation.
    REPAIR: That somebody was not understood.
    WORKED: That something helped, in a clause without a negation.
    GONE: That something is gone, including any negation.
    NEGATION: Words that turn what worked into its opposite.
    FAILED: That advice did not help.
    UNSOLVED: As last words, that it did not end well.
    ORDER: How a sentence begins that tells somebody to do something.
    FORBIDDEN: How one begins that tells somebody not to.
    REPORT: How a sentence begins that says what an agent has done.
    QUESTION: How a question begins, or a request for information.
    AGREES: How an answer begins that agrees.
    DECLINES: How an answer begins that does not.
    REFUSES: That a customer cannot give what is asked.
    MENDED: That customers found the solution themselves.
    TAKEN_BACK: That an agent takes back advice.
    HANDED_OVER: That an agent hands over to somebody else.
    WISH: That a sentence says what the customer wants, or what is wrong.
"""

_SPACED = (german, french, spanish, italian, portuguese, dutch, polish)
_UNSPACED = (chinese, japanese)
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_LETTERS = str.maketrans({"ł": "l", "Ł": "l", "ß": "ss", "’": "'", "´": "'", "œ": "oe", "¿": " ", "¡": " "})
_GAP = r"[^.!?。！？\n]{0,30}?"
_JOINED = r"(?:(?:und|et|y|e|en|i|oraz) )?"
_MAX_REMEMBERED = 8192


@lru_cache(_MAX_REMEMBERED)
def fold(text: str) -> str:
    """Return a text in the form in which phrases are looked for: in lower case, without accents, on one line."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold().translate(_LETTERS)))
    return " ".join(unicodedata.normalize("NFC", bare).split())


def has(kind: Kind, text: str) -> bool:
    """Return whether a text contains a phrase of a kind."""
    return find(kind, fold(text)) is not None


@lru_cache(_MAX_REMEMBERED)
def find(kind: Kind, folded: str) -> regex.Match[str] | None:
    """Return the first phrase of a kind in a folded text."""
    return _compile(kind).search(folded)


def is_whole(kind: Kind, text: str) -> bool:
    """Return whether a text is nothing but phrases of a kind, with names and punctuation between them."""
    return _compile_whole(kind).fullmatch(fold(text)) is not None


@cache
def _compile(kind: Kind) -> regex.Pattern[str]:
    spaced, unspaced = _join(kind)
    return regex.compile(rf"(?<![\p{{L}}'-])(?:{spaced})(?![\p{{L}}-])|(?:{unspaced})")


@cache
def _compile_whole(kind: Kind) -> regex.Pattern[str]:
    spaced, unspaced = _join(kind)
    names = r"\[name[\ \d]{0,3}\]|(?:herr|frau|mevrouw|meneer|madame|monsieur|sr\.?|sra\.?|senora?|signor[ae]?|pani?)\b"
    return regex.compile(
        rf"(?:(?:(?<!\p{{L}}){_JOINED}(?:{spaced})(?!\p{{L}})|{unspaced}|{names})[\s\p{{P}}~^]*+){{1,4}}"
    )


def _join(kind: Kind) -> tuple[str, str]:
    texts: Mapping[bool, list[str]] = {True: [], False: []}
    for is_spaced, languages in ((True, _SPACED), (False, _UNSPACED)):
        for language in languages:
            texts[is_spaced].extend(_read(getattr(language, kind)))
    return "|".join(texts[True]) or r"(?!)", "|".join(texts[False]) or r"(?!)"


def _read(phrases: str) -> Iterator[str]:
    for line in phrases.splitlines():
        if phrase := fold_pattern(line.strip()):
            yield phrase.replace("…", _GAP)


def fold_pattern(phrase: str) -> str:
    """Return a phrase in the form that matches a folded text."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", phrase.translate(_LETTERS)))
    return unicodedata.normalize("NFC", bare)


@cache
def write_greetings() -> str:
    """Return the greetings of languages with blanks as a regular expression, with and without accents.

    An assent counts only before punctuation: many of them are also words of another language.
    """
    greetings = _spell(language.GREETING for language in _SPACED)
    assents = _spell(language.ASSENT for language in _SPACED)
    return rf"{_JOINED}(?:(?:{greetings})(?!\p{{L}})|(?:{assents})(?=[,.!?:;–…]|\s-|$))"


def _spell(texts: Iterable[str]) -> str:
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    return "|".join(dict.fromkeys(each for line in lines for each in (line, fold_pattern(line))))


@cache
def write_unspaced_greetings() -> str:
    """Return the greetings of languages without blanks as a regular expression."""
    return _spell(language.GREETING for language in _UNSPACED)
