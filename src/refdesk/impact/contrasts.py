"""Words that tell things apart, words that mean much the same, and what denies."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
"""One group a line: who is one of it is no other of it."""

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
"""One group a line, as terms."""

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
_SIMILAR = [frozenset(line.split()) for line in _LIKE.strip().splitlines()]
_STEM = 5


def are_contrasted(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two sets of words have different words of a group of which who is one is no other."""
    return any(group & (one - other) and group & (other - one) for group in _GROUPS)


def match_terms(one: Iterable[str], other: Iterable[str]) -> tuple[float, set[str], set[str]]:
    """Return how many terms two texts share, those that mean much the same for .8, and what is left of each."""
    mine, theirs = set(one), set(other)
    shared = float(len(mine & theirs))
    left, right = mine - theirs, theirs - mine
    for term in sorted(left):
        like = next((each for each in sorted(right) if _are_alike(term, each)), None)
        if like is not None:
            shared += 0.8
            left.discard(term)
            right.discard(like)
    return shared, left, right


def _are_alike(one: str, other: str) -> bool:
    if any(one in group and other in group for group in _SIMILAR):
        return True
    is_long = min(len(one), len(other)) >= _STEM and one.isalpha() and other.isalpha()
    return is_long and one[:_STEM] == other[:_STEM]
