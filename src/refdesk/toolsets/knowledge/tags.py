"""Normalises tags, identically for storing and searching."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

MOST_TAGS = 16
LONGEST_TAG = 64


def normalise_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags in lower-case kebab form, in the order given, each once.

    Raises:
        ValueError: One is empty or holds anything but letters, digits and single hyphens, or there are more than
            `MOST_TAGS`.
    """
    normal = tuple(dict.fromkeys(_normalise(tag) for tag in tags))
    if len(normal) > MOST_TAGS:
        raise ValueError(f"has {len(normal)} different tags, and at most {MOST_TAGS} are allowed")
    return normal


def _normalise(tag: str) -> str:
    blanks, form = _get_patterns()
    normal = blanks.sub("-", unicodedata.normalize("NFKC", tag).strip().lower())
    normal = unicodedata.normalize("NFKC", normal)
    if not form.fullmatch(normal):
        raise ValueError("holds a tag that is not made of words: use letters and digits, joined by single hyphens")
    if len(normal) > LONGEST_TAG:
        raise ValueError(f"holds a tag longer than {LONGEST_TAG} characters")
    return normal


@cache
def _get_patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return the patterns of the separators in a tag as written, and of a tag in its normal form."""
    import regex  # not at the start

    return regex.compile(r"[\s_]+"), regex.compile(r"[\p{L}\p{M}\p{N}]+(-[\p{L}\p{M}\p{N}]+)*")
