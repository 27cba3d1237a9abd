"""Splits a text into stretches of one language each: manuals are half translated, and tickets quote program output.

A text shorter than a stretch is in one language. If a longer one begins in English, or in no language that can be
recognised, the rest is looked at only if it has some function words of another language: nearly all texts have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import regex

from refdesk.core.search.languages import (
    ENGLISH,
    MOST_CHARACTERS,
    get_markers,
    recognise,
    recognise_by_words,
    recognise_document,
)

Stretch: TypeAlias = tuple[int, int, str]
"""Where it begins and ends, in code points, and its language, which is not English."""

_STRETCH = regex.compile(
    r".{60,240}?(?:[.!?…]\s*\n|\n\s*\n)|.{120,240}?(?:\n|[.!?:;…]\s)|.{1,240}(?:\s|$)|.{1,240}", regex.DOTALL
)
"""Some two hundred characters, up to the end of a paragraph if possible, or else of a line or sentence."""

_FEWEST_SIGNS = 4
"""How many different function words of one other language make a text worth looking at: a stretch in that language has
twice as many, and English with foreign names hardly ever three."""

_LEAST = 2.0
"""Least evidence of a stretch for a language other than that of the preceding one."""


class Languages(NamedTuple):
    """The languages of a document where it is not in English: of its title, and of stretches of its body in order."""

    of_title: str | None
    of_body: Sequence[Stretch]


_NONE = Languages(None, ())


def find_languages(title: str, body: str, pieces: Sequence[str]) -> Languages:
    """Return where a document is in a language other than English.

    Args:
        title: Of the document; taken to be in the language in which the text begins, or else in that of most of the
            body.
        body: Of the document.
        pieces: Words of the body, at least those between blanks.
    """
    first = recognise_document(title, body)
    other = None if first == ENGLISH else first
    if other is None and (len(body) <= MOST_CHARACTERS or not _holds_another(pieces)):
        return _NONE
    stretches = _find(body, first)
    return Languages(other or _get_language_of_most(stretches, len(body)), stretches)


def find_stretches(text: str) -> Sequence[Stretch]:
    """Return where a question is in a language other than English."""
    first = recognise(text)
    if first in (None, ENGLISH) and (len(text) <= MOST_CHARACTERS or not _holds_another(text.split())):
        return ()
    return _find(text, first)


def _holds_another(pieces: Sequence[str]) -> bool:
    found = _read_signs().intersection(pieces)
    if len(found) < _FEWEST_SIGNS:
        return False
    counts = Counter(language for word in found for language, _ in get_markers()[word])
    return max(counts.values()) >= _FEWEST_SIGNS


@lru_cache(maxsize=1)
def _read_signs() -> frozenset[str]:
    """Return the function words that English does not have, without single letters."""
    markers = get_markers().items()
    return frozenset(word for word, owners in markers if len(word) > 1 and ENGLISH not in dict(owners))


def _find(text: str, first: str | None) -> list[Stretch]:
    """Return the stretches of a text that begins in the language `first`; neighbours in one language are merged."""
    if len(text) <= MOST_CHARACTERS:
        return [(0, len(text), first)] if text and first else []
    found: list[Stretch] = []
    for language, group in groupby(_recognise_each(text, first), key=itemgetter(2)):
        spans = list(group)
        if language is not None and language != ENGLISH:
            found.append((spans[0][0], spans[-1][1], language))
    return found


def _recognise_each(text: str, before: str | None) -> Iterator[tuple[int, int, str | None]]:
    """Yield each stretch with its language; an unrecognised one takes the language of the preceding one."""
    for match in _STRETCH.finditer(text):
        before = recognise_by_words(match[0], _LEAST, before) or before
        yield *match.span(), before


def _get_language_of_most(stretches: Sequence[Stretch], length: int) -> str | None:
    lengths = Counter[str]()
    for start, end, language in stretches:
        lengths[language] += end - start
    return next((language for language, most in lengths.most_common(1) if 2 * most > length), None)
