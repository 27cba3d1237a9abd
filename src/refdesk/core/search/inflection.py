"""Takes inflection off words of languages other than English, and splits German compounds.

The terms carry their language's code, so that they never coincide with those that every text gives (see `analysis`).
Source: the stemmers of Snowball, one for each language.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache

import regex
import Stemmer

from refdesk.core.search.folding import fold
from refdesk.core.search.languages.german_parts import PARTS

STEMMERS: Mapping[str, str] = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Snowball's name of each language's stemmer, by its ISO 639-1 code."""

MARK = "."
"""Separates the language from the stem in a term; no word contains it."""

LONGEST = 48
"""Most code points of a word that are passed to a stemmer."""

LEAST_COMPOUND = 8
_LEAST_PART = 3
_LEAST_UNKNOWN_FIRST, _LEAST_UNKNOWN_LAST = 4, 5

_LINKS = ("", "s", "es", "n", "en", "er", "e", "ns")
"""What joins the parts of a German compound."""

_VOWEL = regex.compile(r"[aeiouy]")

_of_thread = threading.local()


@lru_cache(maxsize=1 << 16)
def inflect(word: str, language: str) -> tuple[str, ...]:
    """Return the terms of a word in a language of `STEMMERS`: its stem, then the stems of a compound's parts."""
    plain = unicodedata.normalize("NFC", word[:LONGEST].lower())
    stem = _stem(plain, language)
    if language != "de" or len(plain) < LEAST_COMPOUND or not plain.isalpha() or stem in _read_parts():
        return (f"{language}{MARK}{stem}",)
    parts = dict.fromkeys((stem, *_take_apart(fold(plain))))
    return tuple(f"{language}{MARK}{part}" for part in parts)


def get_language(term: str) -> str | None:
    """Return the language of a term that `inflect` returned; `None` for any other term."""
    code, mark, _ = term.partition(MARK)
    return code if mark and code in STEMMERS else None


def _stem(word: str, language: str) -> str:
    # A stemmer keeps state while it works and must not be shared between threads.
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_of_thread, "stemmers", None)
    if stemmers is None:
        stemmers = _of_thread.stemmers = {}
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(STEMMERS[language], 0)
    return fold(stemmers[language].stemWord(word)).replace(" ", "") or fold(word)


@lru_cache(maxsize=1)
def _read_parts() -> frozenset[str]:
    return frozenset(_stem(part, "de") for part in PARTS.split())


def _take_apart(word: str) -> tuple[str, ...]:
    """Return the stems of both parts of a compound, at least one of which is known; empty if there is no such split."""
    return min(_cut(word), default=((), ()))[1]


def _cut(word: str) -> Iterator[tuple[tuple[int, ...], tuple[str, str]]]:
    """Yield each way to cut a word: its cost, the lower the better, and the stems of the parts."""
    known, places = _read_parts(), range(_LEAST_PART, len(word) - _LEAST_PART + 1)
    stems = {end: _stem(word[:end], "de") for end in places}
    for place in places:
        last, head = word[place:], _stem(word[place:], "de")
        for link in _LINKS:
            first = word[: place - len(link)]
            if len(first) < _LEAST_PART or not word.endswith(link, 0, place):
                continue
            stem = stems[len(first)]
            if stem in known and head in known:
                yield (0, -min(len(first), len(last)), len(link)), (stem, head)
            elif head in known and len(last) > _LEAST_PART and _could_be_word(first, _LEAST_UNKNOWN_FIRST):
                yield (1, -len(last), len(link)), (stem, head)
            elif stem in known and len(first) > _LEAST_PART and _could_be_word(last, _LEAST_UNKNOWN_LAST):
                yield (2, -len(first), len(link)), (stem, head)


def _could_be_word(part: str, least: int) -> bool:
    return len(part) >= least and _VOWEL.search(part) is not None
