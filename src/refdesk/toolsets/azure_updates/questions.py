"""Reads dates and stages from a question: "which VM series are retired before June 2027" asks for a filter.

What is read becomes a filter, and its words are no longer searched. Only plain statements are read: a stage by its
usual names, a period by its preposition and its name (`periods`). Anything else stays words to search.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from refdesk.core.search.analysis import QUOTED
from refdesk.toolsets.azure_updates.periods import take_period

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from refdesk.toolsets.azure_updates.models import Ring
    from refdesk.toolsets.azure_updates.periods import Period

_STAGES: tuple[tuple[Ring, str], ...] = (
    (
        "Retirement",
        r"retire[ds]?|retiring|retirements?|deprecat(?:ed|ing|ions?)|end[- ]of[- ](?:life|support)|sunset(?:ting)?"
        r"|discontinued|discontinuing|phased out|shut(?:ting)? down|going away",
    ),
    ("Private Preview", r"(?:in )?private previews?"),
    ("Preview", r"(?:in )?(?:public )?previews?"),
    ("General Availability", r"GA|GAed|GA'd|general(?:ly)? (?:availability|available)"),
)

_LATER: Mapping[Ring, tuple[Ring, ...]] = {
    "Private Preview": ("Preview", "General Availability"),
    "Preview": ("General Availability",),
}
_PUBLIC = re.compile(r"\bpublic previews?\b", re.IGNORECASE)
_NOT_LATER = re.compile(r"\bnot? later than\b", re.IGNORECASE)
_NEGATES = re.compile(
    r"\b(?:not|cannot|never|no|non|none|nothing|nobody|neither|nor|without|except\w*|exclud\w+|unless|unlike|minus|besides"
    r"|outside|yet to|(?:other|rather) than|(?:apart|aside) from|instead of|(?:all|anything|everything) but"
    r"|ignor(?:e|es|ing)|omit\w*|skip\w*|hid(?:e|es|ing)|leav(?:e|es|ing) out|un(?:retired|deprecated)"
    r"|(?:is|are|was|were|do|does|did|wo|ca|could|wo?uld|should|has|have|had|ai)n['’]?t"
    r"|(?:out of|left|leav(?:e|es|ing)|exit(?:s|ed|ing)?|graduat\w+ from|past|beyond) (?:its |their |the )?"
    r"(?:public |private )?previews?)\b",
    re.IGNORECASE,
)
"""Words that may turn a stage or a period into its opposite; "not later than" does not."""

_ASKS_FOR_MANY = re.compile(
    r"\s*(?:what|which|list|show|all|any|every|everything)\b|.*\b(?:previews|(?:that|which) are)\b",
    re.IGNORECASE | re.DOTALL,
)
_GENERAL = """
    a about all am an announced announcement announcements any anything are at azure be been being changed
    changes coming did do does everything feature features for gets getting give go goes got had has have i in
    into is it list me new news now of on or our out please s service services show tell that the there things
    to update updates us was we went were what when which will with you your
"""
"""Words that ask but name nothing: a question of only these and a filter browses."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question says.

    Attributes:
        text: The words left to search; empty if there are none.
        ring: The stage it asks for.
        period: The days it asks for; `None` if it names none.
        is_any_preview: With the ring `Preview`: whether private previews are meant too, as "public" is not said.
    """

    text: str
    ring: Ring | None = None
    period: Period | None = None
    is_any_preview: bool = False

    @property
    def rings(self) -> tuple[Ring, ...]:
        """The rings of the stage, any one of which is enough; empty if it asks for no stage."""
        if self.ring is None:
            return ()
        return (self.ring, "Private Preview") if self.is_any_preview else (self.ring,)

    @property
    def passed(self) -> tuple[Ring, ...]:
        """The rings that show that an update has left the stage: something available now is no longer a preview."""
        if self.period is not None or self.ring is None:
            return ()
        return _LATER.get(self.ring, ())


def read_question(question: str, today: date) -> Reading:
    """Return what a question asks for. Words in double quotes are never read, nor is any of several stages or periods.

    Nothing is read from a question that negates anything, as filters can only say what is wanted.
    """
    if _NEGATES.search(_NOT_LATER.sub(" ", _blank_quotes(question))):
        return Reading(" ".join(question.split()) or question)
    plain = _blank_quotes(question)
    period, rest = take_period(plain, question, today)
    ring, searched = _take_stage(_blank_quotes(rest), rest)
    if ring not in (None, "Retirement") and period is None and not _ASKS_FOR_MANY.match(question):
        # "Is X generally available?" wants X, whatever its stage, and the words of a stage occur in titles everywhere.
        ring, searched = None, searched if ring == "General Availability" else rest
    if ring is None and period is None:
        return Reading(" ".join(searched.split()) or question)
    is_any_preview = ring == "Preview" and not _PUBLIC.search(plain)
    words = set(re.findall(r"[^\W_]+", searched.casefold()))
    return Reading("" if words <= set(_GENERAL.split()) else " ".join(searched.split()), ring, period, is_any_preview)


def _blank_quotes(text: str) -> str:
    return QUOTED.sub(lambda quoted: "\x00" * len(quoted[0]), text)


def _take_stage(plain: str, text: str) -> tuple[Ring | None, str]:
    found: dict[Ring, list[tuple[int, int]]] = {}
    for ring, pattern in _compile_stages():
        for match in pattern.finditer(plain):
            if not any(start <= match.start() < end for spans in found.values() for start, end in spans):
                found.setdefault(ring, []).append(match.span())
    if len(found) != 1:
        return None, text
    [(ring, spans)] = found.items()
    return ring, _cut(text, spans)


@cache
def _compile_stages() -> tuple[tuple[Ring, re.Pattern[str]], ...]:
    # GA in capitals only: people do not write "ga" for it.
    return tuple(
        (ring, re.compile(rf"\b(?:{words.replace('GA|GAed|', '(?-i:GA|GAed)|', 1)})\b", re.IGNORECASE))
        for ring, words in _STAGES
    )


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text
