"""Identifiers, by which questions name things exactly: error codes, ticket numbers, versions, variables.

An identifier means exactly one thing and nothing similar, whereas vectors hardly distinguish ERR_402 from ERR_403.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_MOST = 16
"""Most identifiers of a question; a question with more contains pasted text, for which these suffice."""

_WORD = re.compile(r"[a-z0-9]++(?:[_.\-]++[a-z0-9]++)*+")
_NAMING = re.compile(r"[0-9_]")
_PART = re.compile(r"[a-z]+|[0-9]+")
_LONG_NUMBER = re.compile(r"[0-9]{6}|^0x[0-9a-f]{3}")
_HASH = re.compile(r"(?<![a-z0-9])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![a-z0-9])")
_DIGIT = re.compile(r"[0-9]")


def list_identifiers(folded: str) -> tuple[str, ...]:
    """Return the words of a folded text that contain a digit or an underscore, each once, in its order."""
    if _NAMING.search(folded) is None:
        return ()
    return tuple(dict.fromkeys(word for word in _WORD.findall(folded) if _NAMING.search(word)))[:_MOST]


@lru_cache(maxsize=1024)
def is_exact(identifier: str) -> bool:
    """Return whether an identifier names one thing, so that a text without it is about another: a code or long number.

    Quantities (30min, 5GB), years, ordinals and well-known names (S3, IPv6) do not: texts may write them differently.
    """
    if _LONG_NUMBER.search(identifier) or _HASH.search(identifier):
        return True
    digits = len(_DIGIT.findall(identifier))
    least = 2 if "_" in identifier or "-" in identifier else 3
    return identifier[0].isalpha() and digits >= least


def holds(text: str, identifier: str) -> bool:
    """Return whether a lower-case text contains an identifier, however its parts are joined: err-402, err 402."""
    longest, pattern = _prepare(identifier)
    return longest in text and pattern.search(text) is not None


@lru_cache(maxsize=1024)
def _prepare(identifier: str) -> tuple[str, re.Pattern[str]]:
    """Return the longest part of an identifier, which is quick to look for, and a pattern for the whole."""
    parts = _PART.findall(identifier)
    if parts[0] == "v" and len(parts) > 1:
        parts = parts[1:]
    joints = [r"[\W_]{1,3}" if one.isdigit() and other.isdigit() else r"[\W_]{0,3}" for one, other in pairwise(parts)]
    # A number may follow letters that many people leave out: 80070005 for 0x80070005.
    before = r"(?<![0-9])" if parts[0].isdigit() else r"(?<![a-z0-9])"
    joined = "".join(part + joint for part, joint in zip(parts, [*joints, ""], strict=True))
    return max(parts, key=len), re.compile(f"{before}{joined}(?![a-z0-9])")
