"""Folding: the form in which words are compared, without case, diacritics and compatibility forms."""

from __future__ import annotations

import unicodedata

import regex

INVISIBLE = "\u00ad\u200c\u200d\u2060"
"""Invisible characters within words."""

_DIACRITIC = regex.compile(
    rf"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20e3\ufe0e\ufe0f\ufe20-\ufe2f{INVISIBLE}]"
)
_UNDECOMPOSED = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_SPECIAL = regex.compile("[" + "".join(_UNDECOMPOSED) + r"]|[\p{Nd}--0-9]", regex.VERSION1)


def fold(text: str) -> str:
    """Return the text in NFKC, without case and diacritics, digits as 0 to 9; folding again changes nothing."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _SPECIAL.sub(_replace, _DIACRITIC.sub("", decomposed)))


def _replace(special: regex.Match[str]) -> str:
    sign = special[0]
    return _UNDECOMPOSED.get(sign) or str(unicodedata.decimal(sign, sign))
