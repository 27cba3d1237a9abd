"""Who takes part in a search over all toolsets, what they are asked, and what they answer.

How they are asked is `federation`'s, which is imported when somebody asks.
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
    """A stretch of time, both ends included, in aware instants; an end that is `None` is open."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether it leaves anything out."""
        return self.since is not None or self.until is not None

    def covers(self, instant: datetime | None) -> bool:
        """Return whether an instant lies in it; what has none does so only where nothing is left out."""
        if instant is None:
            return not self.is_bounded
        return (self.since is None or self.since <= instant) and (self.until is None or instant <= self.until)


ALWAYS = Period()


@dataclass(frozen=True, slots=True)
class Question:
    """What every toolset is asked.

    Attributes:
        text: At least one character that can be seen.
        tags: All of them must hold, in whatever way the toolset labels things, as the caller spelt them.
        period: When it was last changed or published.
        limit: How many hits at most, 1 or more.
        language: That things are to be in, where a toolset keeps languages apart: `en_US`; `None` is its own choice.
    """

    text: str
    tags: tuple[str, ...] = ()
    period: Period = ALWAYS
    limit: int = 10
    language: str | None = None


@dataclass(frozen=True, slots=True)
class HitReference:
    """How to read something whole: an operation with its arguments, and an address where there is one."""

    operation: str
    arguments: Mapping[str, object]
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHit:
    """One hit of one toolset.

    Attributes:
        snippet: At most 240 code points.
        strength: How well it matches by itself, in [0, 1], see `matching.judge`.
        score: Its toolset's own, in [0, 1], by `fusion.absolute`; 1 where it has none.
        freshness: When it was last changed or published, as the toolset's period filter sees it.
        author: The agent that wrote it, where one did.
        source: The organisation it was taken from, where it was: then it is the record itself, no word about it.
        confidence: How sure it is, in percent, where its toolset knows.
        version: Which one it is, where its toolset counts them for readers.
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
        """How surely it is about what was asked, in [0, 1]: its score, but no more than it says by itself.

        A score is scaled by the strongest of its collection, and BM25 counts a word by how rare it is there; in a small
        collection no word is. So scores of two collections are not comparable without this.
        """
        return min(self.score, self.strength)


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What a toolset answers.

    Attributes:
        hits: Best first by its own ranking, each id once; none of them violates a filter.
        total: How many match in all, where it knows.
        as_of: From when its data is, where it is a copy of something.
        note: What to know about this answer, in one sentence; mostly nothing.
        semantic: Whether vectors took part, and if not, why; `note` says it, too.
    """

    hits: tuple[ProviderHit, ...] = ()
    total: int | None = None
    as_of: datetime | None = None
    note: str = ""
    semantic: SemanticStatus = "off"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A toolset cannot be asked like that: it has nothing that a filter could hold. `note` says what to do."""

    note: str


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """How a toolset takes part.

    Attributes:
        operation: Its own search operation, for callers who want more of it.
        scopes: What a caller needs for it.
        find: Called with the context of the toolset. Filters are applied while candidates are made. It may be
            cancelled at any time.
        is_live: Whether it asks a service anew each time, and nothing of it is kept here.
    """

    operation: str
    scopes: frozenset[str]
    find: Callable[[Context, Question], Awaitable[ProviderAnswer | LeftOut]]
    is_live: bool = False
