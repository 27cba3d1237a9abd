"""Words that narrow what a text speaks of: a tier, a system, a cloud, a region."""

from __future__ import annotations

import re

_GROUPS = {
    "tier": (
        *("basic", "standard", "premium", "enterprise", "essential", "free"),
        *("developer", "isolated", "consumption", "flex", "dedicated"),
    ),
    "system": ("linux", "windows"),
    "cloud": ("china", "21vianet", "government"),
}
_WORDS = {word: group for group, words in _GROUPS.items() for word in words}
REGION = re.compile(
    r"\b(?:(?:north|south|east|west|central|southeast|northeast|north ?central|south ?central|west ?central)"
    r"\s(?:us|uk|europe|asia|india|africa)(?:\s?\d)?"
    r"|(?:uk|us|france|germany|sweden|norway|japan|korea|australia|brazil|canada|uae|switzerland)"
    r"\s(?:north|south|east|west|central)(?:\s?\d)?|central us)\b",
    re.IGNORECASE,
)
_LISTED_TIERS = re.compile(
    r"\((?:(?:basic|standard|premium|enterprise|essential|free|developer|classic)(?:,? and |, | or )?){2,}\)",
    re.IGNORECASE,
)


def find_qualifiers(text: str) -> frozenset[str]:
    """Return the words of a text that narrow what it speaks of, as `group:word`."""
    words = set(re.findall(r"[a-z0-9]+", text.lower()))
    found = {f"{_WORDS[word]}:{word}" for word in words & _WORDS.keys()}
    regions = (" ".join(match[0].lower().split()) for match in REGION.finditer(text))
    return frozenset(found | {f"region:{region}" for region in regions})


def find_tiers(sentence: str) -> frozenset[str]:
    """Return the tiers that a sentence lists in brackets as the only ones it applies to."""
    found = _LISTED_TIERS.search(sentence)
    return find_qualifiers(found[0]) if found else frozenset()
