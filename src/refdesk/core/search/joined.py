"""Joined words: identifiers, codes and quantities that people write apart as well: CrashLoopBackOff, PAY1234, 25MB.

What is joined of two capitalised words is left whole: nearly all of these are names (GitHub, PowerPoint, JavaScript),
and whoever asks for Java does not ask for those.
"""

from __future__ import annotations

import re

_RUN = re.compile(r"[A-Za-z]+|[0-9]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HEXADECIMAL = re.compile(r"0[xX]([0-9a-fA-F]{6,})")
_FEWEST_HUMPS = 3

_LEAST = 2
"""Fewest characters of a part: single letters and digits (S3, k8s, Gen2) would be found everywhere."""

MOST_CHARACTERS = 64
"""Most characters of a word that is taken apart."""


def list_parts(word: str) -> tuple[str, ...]:
    """Return the parts of a word of letters and digits, in its order; empty if it is not joined of several."""
    if not word.isascii() or not word.isalnum():
        return ()
    if code := _HEXADECIMAL.fullmatch(word):
        return (code[1],)
    if word.isalpha():
        return () if word.islower() else _list_humps(word)
    runs = tuple(_RUN.findall(word))
    return runs if len(runs) == 2 and min(map(len, runs)) >= _LEAST else ()


def _list_humps(word: str) -> tuple[str, ...]:
    humps = _HUMP.findall(word)
    is_identifier = len(humps) >= _FEWEST_HUMPS if word[0].isupper() else len(humps) > 1 and len(humps[0]) >= _LEAST
    return tuple(hump for hump in humps if len(hump) >= _LEAST) if is_identifier else ()


def is_joint(text: str, place: int) -> bool:
    """Return whether a part of a word could begin at a place within it."""
    before, after = text[place - 1], text[place]
    return before.isdigit() != after.isdigit() or after.isupper() or before in "xX"


def find_word(text: str, place: int) -> tuple[int, int]:
    """Return (start, end) of the letters and digits of ASCII around a place; of very long words the nearest ones."""
    start = end = place
    while start > 0 and place - start < MOST_CHARACTERS and _is_of_word(text[start - 1]):
        start -= 1
    while end < len(text) and end - place < MOST_CHARACTERS and _is_of_word(text[end]):
        end += 1
    return start, end


def _is_of_word(character: str) -> bool:
    return character.isascii() and character.isalnum()
