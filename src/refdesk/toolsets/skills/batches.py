"""Learns many conversations at once: those about one problem become one skill; near matches are only proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from refdesk.errors import CallerError, LanguageModelError
from refdesk.toolsets.skills import cases
from refdesk.toolsets.skills.learning import prepare
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.playbooks import Case
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.transcript_files import SourceTranscript

LIKE = 0.8
"""Cosine from which a skill may be about the same problem as another one."""

LEAST_SPLIT = 2
"""Fewest conversations that count as a problem of their own."""

MAX_GROUPED = 1000
"""Most conversations that are grouped together; more are grouped in batches of this size."""


@dataclass(frozen=True, slots=True)
class Member:
    """A conversation with its case."""

    transcript: SourceTranscript
    case: Case


@dataclass(frozen=True, slots=True)
class Plan:
    """What would become of conversations.

    Attributes:
        groups: One skill is learned from each.
        near: Pairs of groups, by number, that may be about one problem.
        known: Conversations that were learned before, with the id and the title of their skill.
        failed: Those that cannot be learned, with the code of the error and the reason.
        learned: The id of each group's skill, by number, once it is learned.
    """

    groups: list[list[Member]] = field(default_factory=list[list[Member]])
    near: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    known: list[tuple[SourceTranscript, str, str]] = field(default_factory=list[tuple["SourceTranscript", str, str]])
    failed: list[tuple[SourceTranscript, str, str]] = field(default_factory=list[tuple["SourceTranscript", str, str]])
    learned: dict[int, str] = field(default_factory=dict[int, str])


async def make_plan(
    learner: Learner, context: Context, transcripts: Sequence[SourceTranscript], confirmed: bool
) -> Plan:
    """Return what would become of the transcripts; nothing is stored."""
    plan, queries, members = Plan(), get_queries(context), dict[str, Member]()
    for transcript in transcripts:
        try:
            turns = await anyio.to_thread.run_sync(prepare, transcript.text)
        except CallerError as error:
            plan.failed.append((transcript, error.code, error.message))
            continue
        case = cases.make_case(turns, confirmed)
        skill = await queries.find_by_source(case.id)
        if skill is not None:
            plan.known.append((transcript, skill.skill_id, skill.title))
        else:
            members.setdefault(case.id, Member(transcript, case))
    every = list(members.values())
    for start in range(0, len(every), MAX_GROUPED):
        await _group(learner, context, plan, every[start : start + MAX_GROUPED])
    return plan


async def _group(learner: Learner, context: Context, plan: Plan, members: Sequence[Member]) -> None:
    embed = learner.get_embed(context)
    grouping = await learner.language_model.group([member.case for member in members], embed)
    first = len(plan.groups)
    plan.groups.extend([members[number] for number in numbers] for numbers in grouping.groups)
    plan.near.extend((first + one, first + other) for one, other in grouping.near)


@dataclass(frozen=True, slots=True)
class Split:
    """A skill whose conversations seem to be about several problems, and how many are about each."""

    skill_id: str
    title: str
    sizes: tuple[int, ...]


async def find_splits(learner: Learner, context: Context, plan: Plan) -> list[Split]:
    """Return which of the skills that know some of the transcripts seem to be about several problems, by title."""
    model, queries, found = learner.language_model, get_queries(context), list[Split]()
    for skill_id, title in sorted({(id, title) for _, id, title in plan.known}, key=lambda pair: pair[::-1]):
        kept = await queries.read_cases(skill_id)
        grouping = await model.group(kept, learner.get_embed(context)) if len(kept) >= 2 * LEAST_SPLIT else None
        sizes = [len(group) for group in grouping.groups if len(group) >= LEAST_SPLIT] if grouping is not None else []
        if len(sizes) > 1:
            found.append(Split(skill_id, title, tuple(sorted(sizes, reverse=True))))
    return found


async def find_like(
    learner: Learner, context: Context, plan: Plan, titles: Sequence[str]
) -> list[tuple[str, str, str, float]]:
    """Return the title of each group that is like an existing skill, with the skill's id, title and cosine to it."""
    queries, found = get_queries(context), list[tuple[str, str, str, float]]()
    for title, members in zip(titles, plan.groups, strict=True):
        try:
            draft = await learner.language_model.induce([member.case for member in members], None)
        except CallerError:
            continue
        vectors = await learner.embed(context, draft)
        nearest = await queries.find_nearest(vectors[0]) if vectors else None
        if nearest is not None and nearest[1] >= LIKE:
            found.append((title, nearest[0].skill_id, nearest[0].title, nearest[1]))
    return found


async def get_titles(learner: Learner, context: Context, plan: Plan) -> list[str]:
    """Return the title that each group's skill would have; for a group that teaches nothing, how it begins."""
    titles: list[str] = []
    for members in plan.groups:
        title = members[0].case.turns[0].text[:80]
        with suppress(CallerError):
            title = (await learner.language_model.preview([member.case for member in members])).title
        titles.append(title)
    return titles


async def learn_plan(
    learner: Learner, context: Context, plan: Plan, confirmed: bool, advance: Callable[[], None]
) -> list[dict[str, Any]]:
    """Learn each group into one skill, and return what became of each conversation, by its place.

    Each group is committed by itself: after an interruption, another run continues with what is not known yet.
    """
    results: list[dict[str, Any]] = [
        *({"place": transcript.place, "error": code, "detail": reason} for transcript, code, reason in plan.failed),
        *(
            {"place": transcript.place, "skill_id": id, "title": title, "created": False, "similarity": 1.0}
            for transcript, id, title in plan.known
        ),
    ]
    for number, members in enumerate(plan.groups):
        found = await _learn_group(learner, context, members, confirmed)
        if "skill_id" in found:
            plan.learned[number] = found["skill_id"]
        results += [{"place": member.transcript.place, **found} for member in members]
        for _ in members:
            advance()
    return results


async def _learn_group(
    learner: Learner, context: Context, members: Sequence[Member], confirmed: bool
) -> dict[str, Any]:
    try:
        creation = await learner.create(context, members[0].transcript.text, confirmed, {})
        skill = creation.skill
        if len(members) > 1:
            skill = await learner.extend(context, skill.skill_id, [member.case for member in members[1:]])
    except (CallerError, LanguageModelError) as error:
        return {"error": error.code, "detail": error.message}
    found: dict[str, Any] = {"skill_id": skill.skill_id, "title": skill.title, "created": creation.similarity is None}
    return found if creation.similarity is None else {**found, "similarity": creation.similarity}
