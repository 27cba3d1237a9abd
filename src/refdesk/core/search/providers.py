"""Who takes part in a search over all toolsets, what they are asked, and what they answer.

`federation`, which is imported on the first such search, decides how they are asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.search.semantics import SemanticStatus

Status: TypeAlias = Literal["answered", "late", "failed", "forbidden", "left_out", "not_served"]


@dataclass(frozen=True, slots=True)
class Period:
    """A period of time, both ends included, in aware instants; an end that is `None` is open."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether it excludes anything."""
        return self.since is not None or self.until is not None

    def covers(self, instant: datetime | None) -> bool:
        """Return whether an instant lies in it; `None` does so only if the period excludes nothing."""
        if instant is None:
            return not self.is_bounded
        return (self.since is None or self.since <= instant) and (self.until is None or instant <= self.until)


ALWAYS = Period()


@dataclass(frozen=True, slots=True)
class Question:
    """What every toolset is asked.

    Attributes:
        text: At least one character that can be seen.
        tags: A hit must have all of them, in whatever way the toolset labels things; as the caller spelt them.
        period: When a hit must have been last changed or published.
        limit: Most hits, 1 or more.
        language: The language that hits are to be in, if a toolset keeps languages apart: `en_US`; `None` leaves it to
            the toolset.
    """

    text: str
    tags: tuple[str, ...] = ()
    period: Period = ALWAYS
    limit: int = 10
    language: str | None = None


@dataclass(frozen=True, slots=True)
class HitReference:
    """How to read something in full: an operation with its arguments, and an address if there is one."""

    operation: str
    arguments: Mapping[str, object]
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHit:
    """One hit of one toolset.

    Attributes:
        snippet: At most 240 code points.
        strength: How well it matches by itself, in [0, 1], see `matching.judge`.
        score: The score that its toolset gives, in [0, 1], by `fusion.absolute`; 1 if it gives none.
        freshness: When it was last changed or published, as the toolset's period filter sees it.
        author: The agent that wrote it, if one did.
        source: The organisation it was taken from, if it was: then it is that organisation's own record.
        confidence: How sure its author is, in percent, if its toolset records that.
        version: Its version, if its toolset shows versions to readers.
    """

    id: str
    title: str
    snippet: str
    strength: float
    reference: HitReference
    score: float = 1.0
    freshness: datetime | None = None
    author: str | None = None
    source: str | None = None
    confidence: int | None = None
    version: int | None = None

    @property
    def relevance(self) -> float:
        """How surely it is about what was asked, in [0, 1]: its score, but at most its strength.

        A score is scaled by the strongest hit of its collection, and BM25 weights a word by how rare it is there; in a
        small collection no word is rare. So scores of two collections would not be comparable without this.
        """
        return min(self.score, self.strength)


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What a toolset answers.

    Attributes:
        hits: Best first by its own ranking, each id once; none of them violates a filter.
        total: How many match in all, if it knows.
        as_of: The time that its data dates from, if it is a copy of something.
        note: What to know about this answer, in one sentence; usually empty.
        semantic: Whether vectors took part, and if not, why; `note` says so, too.
    """

    hits: tuple[ProviderHit, ...] = ()
    total: int | None = None
    as_of: datetime | None = None
    note: str = ""
    semantic: SemanticStatus = "off"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A toolset cannot be asked this way: it has nothing that a filter could apply to. `note` says what to do."""

    note: str


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """How a toolset takes part.

    Attributes:
        operation: Its own search operation, for callers who want more from it.
        scopes: The scopes that a caller needs for it.
        find: Called with the context of the toolset. Filters are applied while candidates are collected. It may be
            cancelled at any time.
        is_live: Whether it asks a service anew each time, so that nothing of it is kept here.
    """

    operation: str
    scopes: frozenset[str]
    find: Callable[[Context, Question], Awaitable[ProviderAnswer | LeftOut]]
    is_live: bool = False
