"""Words that tell things apart, words that mean much the same, and words of denial."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_CONTRASTS = """
north south east west northern southern eastern western
prod production staging test dev development qa preview
gold silver bronze platinum
inlet outlet
weekday weekdays weekend weekends
adult adults child children
min minimum max maximum
first last second third
standard express
business trial
iphone ios android
public partner private internal external
full part
import export
incoming outgoing
upload download
read write
employee employees contractor contractors
customer customers partner partners admin admins
card invoice
morning noon evening night
before after
linux windows
spring summer autumn winter
left right upper lower front rear
buyer seller
sender receiver source target
web mobile
office kiosk
"""
"""One group of mutually exclusive words per line."""

_LIKE = """
customer client user buyer
agent staff employe team
need requir must mandatori necessari
allow permit can may possibl accept
price cost fee charg
expir end valid run
retent keep kept retain
open start begin
forbid ban
receiv get
send sent
host machin server
instal set deploy
written built made
ticket case
finish end close
delet remov wipe empti
shop store
offer provid
maximum most limit max
"""
"""One group of similar words per line, as terms."""

NEGATORS = re.compile(
    r"\b(?:not|no|never|nobody|none|nor|neither|without|cannot|nothing|hardly)\b|n['’]t\b", re.IGNORECASE
)
DENIALS = re.compile(
    r"""\b(?:exclud|except|refus|forbid|prohibit|den(?:y|ie)|dropp|disabl|closed|deactivat|reject|lack)\w*\b
      | \b(?:shut\sdown|sold\sout|discontinued|switched\soff|turned\soff|free\sof\scharge|for\sfree)\b
      | \bout\sof\s(?:order|use|stock|service)\b
      | \b(?:un|dis|non-?|in)(?:signed|paid|able|available|limited|supported|encrypted|safe|usable|allowed|restricted
        |locked|protected|approved|managed|monitored|stable|connected|necessary|required|needed|manned|staffed|active
        |valid|complete|secure)\b""",
    re.IGNORECASE | re.VERBOSE,
)
PAST = re.compile(
    r"""\b(?:until|till|used\sto|formerly|previously|before\sthe|old|in\s20\d\d|was|were|had|former|up\sto\sversion
        |back\sthen|last\syear)\b""",
    re.IGNORECASE | re.VERBOSE,
)
PRESENT = re.compile(
    r"\b(?:since|now|from\s\w+\son|these\sdays|currently|nowadays|after\sthe|from\sversion|today)\b", re.IGNORECASE
)

_GROUPS = [frozenset(line.split()) for line in _CONTRASTS.strip().splitlines()]
_STEM = 5


def _list_similar() -> dict[str, frozenset[str]]:
    """Return, for each term that means much the same as others, those others."""
    similar: dict[str, frozenset[str]] = {}
    for group in (frozenset(line.split()) for line in _LIKE.strip().splitlines()):
        similar |= {term: similar.get(term, frozenset()) | group for term in group}
    return similar


_CONTRASTED = frozenset[str]().union(*_GROUPS)
_SIMILAR = _list_similar()
_NONE = frozenset[str]()


def are_contrasted(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two sets of words have different words of a group of mutually exclusive words."""
    mine, theirs = (one - other) & _CONTRASTED, (other - one) & _CONTRASTED
    return bool(mine and theirs) and any(group & mine and group & theirs for group in _GROUPS)


def match_terms(one: Iterable[str], other: Iterable[str]) -> tuple[float, set[str], set[str]]:
    """Return how many terms two texts share, counting similar ones as .8, and the terms left over from each."""
    mine, theirs = set(one), set(other)
    both = mine & theirs
    shared, left, right = float(len(both)), mine - both, theirs - both
    if not left or not right:
        return shared, left, right
    stems: dict[str, set[str]] = {}
    for each in right:
        if stem := _get_stem(each):
            stems.setdefault(stem, set()).add(each)
    for term in sorted(left):
        if alike := right & (_SIMILAR.get(term, _NONE) | stems.get(_get_stem(term), _NONE)):
            like = min(alike)
            shared += 0.8
            left.discard(term)
            right.discard(like)
    return shared, left, right


def get_reach(terms: Iterable[str]) -> frozenset[str]:
    """Return everything the terms can match by: if it is disjoint for two texts, no terms are shared or similar."""
    reach = set[str]()
    for term in terms:
        reach |= {term, f"{_get_stem(term)}…"} | _SIMILAR.get(term, _NONE)
    return frozenset(reach - {"…"})


@lru_cache(1 << 13)
def _get_stem(term: str) -> str:
    """Return the beginning of a term by which it is compared; empty if it is short or not a word."""
    return term[:_STEM] if len(term) >= _STEM and term.isalpha() else ""
