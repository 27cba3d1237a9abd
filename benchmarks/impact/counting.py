"""Counts how common the terms of titles are, for `refdesk.impact.common_terms`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import log
from pathlib import Path

from benchmarks.impact.reading import read_all_announcements
from refdesk.impact.wording import get_terms

RARE = 5
"""A term of no more titles than this counts whole."""


def count_terms(data: Path) -> Mapping[str, float]:
    """Return what each term counts that more titles hold."""
    titles = [each.title for each in read_all_announcements(data).values()]
    counted = Counter(term for title in titles for term in set(get_terms(title)) if term.isalpha() and len(term) > 2)
    scale = log(len(titles) / (RARE - 1))
    return {
        term: round(max(0.2, 1 - log(count / (RARE - 1)) / scale), 2)
        for term, count in sorted(counted.items())
        if count > RARE
    }
