"""One question to many toolsets: asked in parallel within a deadline, their lists fused into one, every silence told.

Each toolset ranks by its own means and is fused by its ranks alone. Ranks say nothing about who knows the subject, so
there is one list more, of all hits by their strength: the first hit of a toolset that knows nothing stands high in its
own list and low in that one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from refdesk import errors
from refdesk.core import fusion

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from refdesk.core.operations import Context

logger = logging.getLogger(__name__)

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
        text: At least one character that is not a blank.
        tags: All of them must hold, in whatever way the toolset labels things, as the caller spelt them.
        period: When it was last changed or published.
        limit: How many hits at most, 1 or more.
    """

    text: str
    tags: tuple[str, ...] = ()
    period: Period = ALWAYS
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read something whole: an operation with its arguments, and an address where there is one."""

    operation: str
    arguments: Mapping[str, object]
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One hit of one toolset.

    Attributes:
        snippet: At most 240 code points.
        strength: How surely it is about what was asked, in [0, 1], on the scale of `fusion.strength`.
        freshness: When it was last changed or published, as the toolset's period filter sees it.
        author: The agent that wrote it, where one did.
        source: The organisation it was taken from, where it was.
    """

    id: str
    title: str
    snippet: str
    strength: float
    reading: Reading
    freshness: datetime | None = None
    author: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What a toolset answers.

    Attributes:
        hits: Best first by its own ranking, each id once; none of them violates a filter.
        total: How many match in all, where it knows.
        as_of: From when its data is, where it is a copy of something.
        note: What to know about this answer, in one sentence; mostly nothing.
    """

    hits: tuple[Finding, ...] = ()
    total: int | None = None
    as_of: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A toolset cannot be asked like that: it has nothing that a filter could hold. `note` says what to do."""

    note: str


@dataclass(frozen=True, slots=True)
class Finder:
    """How a toolset takes part.

    Attributes:
        operation: Its own search, for whoever wants more of it.
        scopes: What a caller needs for it.
        find: Called with the context of the toolset. Filters are applied while candidates are made. It may be
            cancelled at any time.
    """

    operation: str
    scopes: frozenset[str]
    find: Callable[[Context, Question], Awaitable[Findings | LeftOut]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of asking one toolset, and after how many seconds."""

    status: Status
    findings: Findings = field(default_factory=Findings)
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit in the one list. `score` is in (0, 1], comparable within one answer only."""

    toolset: str
    finding: Finding
    score: float


async def ask_all(
    finders: Mapping[str, Finder],
    get_context: Callable[[str], Context],
    question: Question,
    seconds: float,
    group: TaskGroup,
) -> dict[str, Outcome]:
    """Return what became of asking each toolset, in the order given, after `seconds` at the latest.

    Who has not answered by then is cancelled and not waited for: a thread that cannot be stopped would hold up the
    others' answers.

    Args:
        finders: By toolset.
        get_context: Returns a toolset's context for the caller.
        question: What they are asked.
        seconds: The deadline for each.
        group: Outlives the call, and stays open until what was cancelled has ended.
    """
    outcomes, scopes, done = dict[str, Outcome](), list["CancelScope"](), anyio.Event()
    if not finders:
        return {}

    async def ask(name: str, finder: Finder, scope: CancelScope) -> None:
        with scope:
            outcomes[name] = await _ask(name, finder, get_context(name), question)
            if len(outcomes) == len(finders):
                done.set()

    started = anyio.current_time()
    for name, finder in finders.items():
        scopes.append(anyio.CancelScope())
        group.start_soon(ask, name, finder, scopes[-1])
    try:
        with anyio.move_on_after(seconds):
            await done.wait()
    finally:
        for scope in scopes:
            scope.cancel()
    took = anyio.current_time() - started
    return {name: outcomes.get(name) or _be_late(finder, seconds, took) for name, finder in finders.items()}


async def _ask(name: str, finder: Finder, context: Context, question: Question) -> Outcome:
    """Return what a toolset answers; whatever it raises costs its own hits only."""
    started = anyio.current_time()
    said = {"toolset": name, "org": context.principal.org, "agent": context.principal.agent}
    try:
        found = await finder.find(context, question)
    except errors.RefdeskError as error:
        logger.warning("toolset did not answer", extra=said | {"code": error.code, "reason": error.message})
        return Outcome("failed", note=error.message, seconds=anyio.current_time() - started)
    except Exception:
        incident = context.knowledge_base.identifiers.new().replace("-", "")[-8:]
        logger.exception("toolset broke", extra=said | {"incident": incident})
        note = f"Internal error; whoever runs the server finds it in the log as incident {incident}."
        return Outcome("failed", note=note, seconds=anyio.current_time() - started)
    took = anyio.current_time() - started
    if isinstance(found, LeftOut):
        return Outcome("left_out", note=found.note, seconds=took)
    return Outcome("answered", found, found.note, took)


def _be_late(finder: Finder, seconds: float, took: float) -> Outcome:
    note = f"No answer within {seconds * 1000:.0f} ms: allow more with deadlineMs, or ask {finder.operation} alone."
    return Outcome("late", note=note, seconds=took)


def rank(lists: Mapping[str, Sequence[Finding]]) -> list[Ranked]:
    """Return all hits in one order, best first; ties newest first, then in the order of the lists, then by id.

    The score is the reciprocal rank (k = 60) of a hit in its own list and in the list of all by strength, 1.0 for one
    that is first in both, times the greatest strength: where nobody knows the subject, all scores are low. `make eval`
    prints what it does beside fusing the toolsets' lists alone.
    """
    hits = {(name, hit.id): hit for name, found in lists.items() for hit in found}
    own = [[(name, hit.id) for hit in found] for name, found in lists.items()]
    # The sort is stable: of equally strong hits of one toolset the better ranked stays first.
    strongest = sorted(hits, key=lambda entry: -hits[entry].strength)
    absent = {
        entry: [other for other in range(len(own)) if other != number]
        for number, entries in enumerate(own)
        for entry in entries
    }
    scores = fusion.reciprocal_rank([*own, strongest], absent=absent)
    scale = max((hit.strength for hit in hits.values()), default=0.0)
    order = list(lists)
    ranked = [Ranked(name, hit, scores[name, hit.id] * scale) for (name, _), hit in hits.items()]
    ranked.sort(key=lambda one: (-scores[one.toolset, one.finding.id], *_break_tie(one, order)))
    return ranked


def _break_tie(one: Ranked, order: Sequence[str]) -> tuple[float, int, str]:
    freshness = one.finding.freshness
    return -freshness.timestamp() if freshness else float("inf"), order.index(one.toolset), one.finding.id
