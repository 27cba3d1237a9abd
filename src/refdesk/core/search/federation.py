"""Federated search: queries toolsets in parallel within a deadline, fuses their results, and reports coverage.

Each toolset ranks in its own way, and the lists are fused by ranks. Ranks alone say nothing about who knows the
subject: the first hit of a toolset that knows nothing would rank next to the first of one that knows the answer. So a
rank is weighted by the relevance of its hit, which is on one absolute scale for all.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core import tracing
from refdesk.core.search import fusion, matching
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.passages import embedding_text
from refdesk.core.search.providers import (
    LeftOut,
    ProviderAnswer,
    ProviderHit,
    Question,
    SearchProvider,
    Status,
)

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from refdesk.core.context import Context
    from refdesk.model import CosineScale, Vector

logger = logging.getLogger(__name__)

SURE = 50
"""The confidence, in percent, below which what somebody wrote counts as hearsay beside a source's own record."""

_JOINTS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of asking one toolset, and after how many seconds it came."""

    status: Status
    answer: ProviderAnswer = field(default_factory=ProviderAnswer)
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit in the fused list. `score` is in [0, 1], comparable within one answer only."""

    toolset: str
    hit: ProviderHit
    score: float


def spell(tag: str) -> tuple[str, ...]:
    """Return the spellings under which toolsets may keep a tag: its words joined by hyphens, blanks or underscores."""
    words = _JOINTS.split(tag.strip())
    return tuple(dict.fromkeys([tag, *(joint.join(words) for joint in "- _")]))


async def judge(context: Context, question: Question, texts: Sequence[tuple[str, str]]) -> list[float]:
    """Return the strength of each (title, summary) that was found by a source whose own ranking gives no scores."""
    query, (cosines, scale) = parse_query(question.text), await _compare(context, question, texts)
    return [
        matching.judge(query, title, text, cosine, scale, is_summary=True)
        for (title, text), cosine in zip(texts, cosines, strict=True)
    ]


async def _compare(
    context: Context, question: Question, texts: Sequence[tuple[str, str]]
) -> tuple[list[float | None], CosineScale | None]:
    """Return the cosine of the question with each text, `None` for each without vectors, and the cosines' scale."""
    base = context.knowledge_base
    asked = await base.embed_question(question.text, context.principal.org)
    if asked is None or base.semantics is None or not texts:
        return [None] * len(texts), None
    try:
        whole = [embedding_text(title, text, (0, len(text))) for title, text in texts]
        vectors = await base.semantics.embed_found(whole, context.principal.org)
    except errors.EmbedderError as error:
        logger.warning("hits not embedded", extra={"reason": error.message})
        return [None] * len(texts), None
    return [_get_cosine(asked.vector, vector) for vector in vectors], asked.scale


def _get_cosine(one: Vector, other: Vector) -> float:
    return float(one @ other)


async def ask_all(
    providers: Mapping[str, SearchProvider],
    get_context: Callable[[str], Context],
    question: Question,
    seconds: float,
    group: TaskGroup,
    on_outcome: Callable[[str, int], None] | None = None,
) -> dict[str, Outcome]:
    """Return the outcome of each toolset, in the order given, after `seconds` at the latest.

    A toolset that has not answered by then is cancelled but not waited for, since a thread that cannot be stopped would
    hold up the others' answers.

    Args:
        providers: By toolset.
        get_context: Returns a toolset's context for the caller.
        question: What they are asked.
        seconds: The deadline for each.
        group: Outlives the call, and stays open until what was cancelled has ended.
        on_outcome: Called with each toolset whose outcome is known, and how many outcomes that makes.
    """
    outcomes, scopes, done = dict[str, Outcome](), list["CancelScope"](), anyio.Event()
    if not providers:
        return {}

    async def ask(name: str, provider: SearchProvider, scope: CancelScope) -> None:
        with scope:
            outcomes[name] = await _ask(name, provider, get_context(name), question)
            if on_outcome is not None:
                on_outcome(name, len(outcomes))
            if len(outcomes) == len(providers):
                done.set()

    started = anyio.current_time()
    for name, provider in providers.items():
        scopes.append(anyio.CancelScope(deadline=started + seconds))
        group.start_soon(ask, name, provider, scopes[-1])
    try:
        with anyio.move_on_after(seconds):
            await done.wait()
    finally:
        for scope in scopes:
            scope.cancel()
    took = anyio.current_time() - started
    return {name: outcomes.get(name) or _be_late(provider, seconds, took) for name, provider in providers.items()}


async def _ask(name: str, provider: SearchProvider, context: Context, question: Question) -> Outcome:
    """Return what a toolset answers; an exception that it raises costs only its own hits."""
    started = anyio.current_time()
    said = {"toolset": name, "org": context.principal.org, "agent": context.principal.agent}
    try:
        with tracing.span("ask", toolset=name):
            found = await provider.find(context, question)
    except errors.RefdeskError as error:
        logger.warning("toolset did not answer", extra=said | {"code": error.code, "reason": error.message})
        return Outcome("failed", note=error.message, seconds=anyio.current_time() - started)
    except Exception:
        incident = context.knowledge_base.identifiers.new().replace("-", "")[-8:]
        logger.exception("toolset broke", extra=said | {"incident": incident})
        note = f"Internal error; tell whoever runs the server, who finds it in the log as incident {incident}."
        return Outcome("failed", note=note, seconds=anyio.current_time() - started)
    took = anyio.current_time() - started
    if isinstance(found, LeftOut):
        return Outcome("left_out", note=found.note, seconds=took)
    return Outcome("answered", found, found.note, took)


def _be_late(provider: SearchProvider, seconds: float, took: float) -> Outcome:
    note = f"No answer within {seconds * 1000:.0f} ms: allow more with deadlineMs, or ask {provider.operation} alone."
    return Outcome("late", note=note, seconds=took)


def rank(lists: Mapping[str, Sequence[ProviderHit]]) -> list[Ranked]:
    """Return all hits in one order, best first; ties newest first, then in the order of the lists, then by id.

    The score is the reciprocal rank of a hit in its toolset's list (k = 60, 1.0 for the first) times its relevance, so
    that all scores are low if no toolset knows the subject. Hits that are more relevant than those before them share
    the mean relevance with those: a toolset knows its own order best, and keeps it. `make eval` compares this with
    plain reciprocal ranks, and with relevance alone.

    The scores do not consider who wrote a hit. So a hit of which its author is not `SURE` comes after the records of a
    source that match as well: after a vendor's own announcement, and after a published article.
    """
    ranked: list[Ranked] = []
    for name, found in lists.items():
        ranks = fusion.reciprocal_rank([[hit.id for hit in found]])
        levels = fusion.level([hit.relevance for hit in found])
        ranked += [Ranked(name, hit, ranks[hit.id] * level) for hit, level in zip(found, levels, strict=True)]
    order = list(lists)
    return _put_records_first(sorted(ranked, key=lambda one: (-one.score, *_break_tie(one, order))))


def _put_records_first(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return the hits with hearsay moved after the records that match as well; otherwise in the same order."""
    left = Counter(_get_match(one) for one in ranked if one.hit.source is not None)
    waiting, put = dict[matching.Match, list[Ranked]](), list[Ranked]()
    for one in ranked:
        match = _get_match(one)
        if _is_hearsay(one.hit) and match != "weak" and left[match]:
            waiting.setdefault(match, []).append(one)
            continue
        put.append(one)
        if one.hit.source is not None:
            left[match] -= 1
            put += waiting.pop(match, []) if not left[match] else []
    return put


def _is_hearsay(hit: ProviderHit) -> bool:
    return hit.source is None and hit.confidence is not None and hit.confidence < SURE


def _get_match(one: Ranked) -> matching.Match:
    return matching.name(one.hit.strength)


def _break_tie(one: Ranked, order: Sequence[str]) -> tuple[float, int, str]:
    freshness = one.hit.freshness
    return -freshness.timestamp() if freshness else float("inf"), order.index(one.toolset), one.hit.id
