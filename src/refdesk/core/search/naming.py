"""What questions call by its exact name: error codes, ticket numbers, versions, variables.

Such an identifier means one thing and nothing that is near it: vectors hardly tell ERR_402 from ERR_403.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_MOST = 16
"""Identifiers of a question; what has more is a paste, of which these are as good as all."""

_WORD = re.compile(r"[a-z0-9]++(?:[_.\-]++[a-z0-9]++)*+")
_NAMING = re.compile(r"[0-9_]")
_PART = re.compile(r"[a-z]+|[0-9]+")
_LONG_NUMBER = re.compile(r"[0-9]{6}|^0x[0-9a-f]{3}")
_HASH = re.compile(r"(?<![a-z0-9])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![a-z0-9])")
_DIGIT = re.compile(r"[0-9]")


def list_identifiers(folded: str) -> tuple[str, ...]:
    """Return the words of a folded text that have a digit or an underscore in them, each once, in its order."""
    if _NAMING.search(folded) is None:
        return ()
    return tuple(dict.fromkeys(word for word in _WORD.findall(folded) if _NAMING.search(word)))[:_MOST]


@lru_cache(maxsize=1024)
def is_exact(identifier: str) -> bool:
    """Return whether an identifier names one thing, so that what lacks it is about another: a code or a long number.

    Quantities (30min, 5GB), years, ordinals and names that everybody knows (S3, IPv6) do not: texts say them otherwise.
    """
    if _LONG_NUMBER.search(identifier) or _HASH.search(identifier):
        return True
    digits = len(_DIGIT.findall(identifier))
    least = 2 if "_" in identifier or "-" in identifier else 3
    return identifier[0].isalpha() and digits >= least


def holds(text: str, identifier: str) -> bool:
    """Return whether a text in lower case has an identifier, however its parts are joined: ERR-402, err 402."""
    longest, pattern = _prepare(identifier)
    return longest in text and pattern.search(text) is not None


@lru_cache(maxsize=1024)
def _prepare(identifier: str) -> tuple[str, re.Pattern[str]]:
    """Return the longest part of an identifier, which is quick to look for, and what the whole looks like."""
    parts = _PART.findall(identifier)
    if parts[0] == "v" and len(parts) > 1:
        parts = parts[1:]
    joints = [r"[\W_]{1,3}" if one.isdigit() and other.isdigit() else r"[\W_]{0,3}" for one, other in pairwise(parts)]
    # A number may have letters before it, which many leave out: 80070005 of 0x80070005.
    before = r"(?<![0-9])" if parts[0].isdigit() else r"(?<![a-z0-9])"
    joined = "".join(part + joint for part, joint in zip(parts, [*joints, ""], strict=True))
    return max(parts, key=len), re.compile(f"{before}{joined}(?![a-z0-9])")
