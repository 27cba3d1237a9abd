"""Work for the command line that no operation does: learning many conversations, listing the versions of a skill,
searches as people type them.

The running desk does it or, if there is none, the process of the command, with the same functions.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refdesk.app import Desk
    from refdesk.core.background.embedding import Failure, Indexer
    from refdesk.core.context import Context
    from refdesk.model import Principal
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.records import Skill
    from refdesk.toolsets.skills.transcript_files import SourceTranscript

SKILLS = "skills"


def advance_nothing() -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work to do.

    Attributes:
        name: One of `WORKS`.
        principal: On whose behalf it is done.
        arguments: The arguments of this kind of work, as plain JSON values.
        texts: Conversations, each with its `place` and its `text`.
        advance: Called whenever one of the conversations is done.
    """

    name: str
    principal: Principal
    arguments: Mapping[str, Any]
    texts: Sequence[Mapping[str, str]] = ()
    advance: Callable[[], None] = field(default=advance_nothing)


def can_do(desk: Desk, name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a desk can do work of this name: it must have the toolset that the work is about, or those that it
    names."""
    if name not in WORKS:
        return False
    about, _ = WORKS[name]
    needed = {about} if about is not None else set(arguments.get("names", ()))
    return needed <= {each.name for each in desk.toolsets}


async def do(desk: Desk, work: Work) -> object:
    """Do the work and return its result, as plain JSON values.

    Raises:
        RefdeskError: The work could not be done.
    """
    return await WORKS[work.name][1](desk, work)


async def _learn(desk: Desk, work: Work) -> dict[str, Any]:
    """Return what became of each conversation, in order, and the pairs of skills that may be about one problem."""
    from refdesk.toolsets.skills import batches

    transcripts, confirmed = _read_transcripts(work), work.arguments.get("confirmed") is True
    async with _open_learner(desk, work) as (learner, context):
        plan = await batches.make_plan(learner, context, transcripts, confirmed)
        learned = await batches.learn_plan(learner, context, plan, confirmed, work.advance)
    places = {transcript.place: number for number, transcript in enumerate(transcripts)}
    near = [(plan.learned.get(one, ""), plan.learned.get(other, "")) for one, other in plan.near]
    pairs = [{"one": one, "other": other} for one, other in near if one and other and one != other]
    return {"learned": sorted(learned, key=lambda one: places[one["place"]]), "near": pairs}


async def _plan(desk: Desk, work: Work) -> dict[str, Any]:
    """Return what would be learned: the skills, pairs of them that may be the same, what is known already or similar to
    known skills, skills that may need splitting, and what cannot be learned."""
    from refdesk.toolsets.skills import batches

    async with _open_learner(desk, work) as (learner, context):
        plan = await batches.make_plan(
            learner, context, _read_transcripts(work), work.arguments.get("confirmed") is True
        )
        titles = await batches.get_titles(learner, context, plan)
        like = await batches.find_like(learner, context, plan, titles)
        splits = await batches.find_splits(learner, context, plan)
    groups = zip(titles, plan.groups, strict=True)
    return {
        "skills": [{"title": title, "places": [each.transcript.place for each in group]} for title, group in groups],
        "near": [{"one": titles[one], "other": titles[other]} for one, other in plan.near],
        "like": [
            {"title": title, "skill_id": id, "known": known, "similarity": similarity}
            for title, id, known, similarity in like
        ],
        "splits": [{"skill_id": each.skill_id, "title": each.title, "sizes": list(each.sizes)} for each in splits],
        "known": [{"place": each.place, "skill_id": id, "title": title} for each, id, title in plan.known],
        "failed": [{"place": each.place, "error": code, "detail": reason} for each, code, reason in plan.failed],
    }


def _read_transcripts(work: Work) -> list[SourceTranscript]:
    from refdesk.toolsets.skills.transcript_files import SourceTranscript

    return [SourceTranscript(text["text"], text["place"]) for text in work.texts]


@asynccontextmanager
async def _open_learner(desk: Desk, work: Work) -> AsyncGenerator[tuple[Learner, Context]]:
    from refdesk.core.writing import audit
    from refdesk.factories.language_models import choose_language_model
    from refdesk.toolsets.skills.learning import Learner

    context = await desk.get_context(work.principal, SKILLS)
    base = context.knowledge_base
    # What is learned is recorded in the audit log, as when a client calls the tool.
    store = audit.watch(base.store, base.clock, audit.make_actor(work.principal, "cli"), "create_skill", {})
    yield Learner(choose_language_model(desk.settings)), replace(context, knowledge_base=replace(base, store=store))


async def _list_versions(desk: Desk, work: Work) -> list[dict[str, Any]]:
    """Return every version of a skill, oldest first; none if there is no such skill."""
    from refdesk.toolsets.skills.queries import get_queries

    context = await desk.get_context(work.principal, SKILLS)
    return [_show_version(each) for each in await get_queries(context).get_history(str(work.arguments["skill_id"]))]


def _show_version(skill: Skill) -> dict[str, Any]:
    """Return a version: its record in the form of its contract, its text, and its content without counters."""
    from refdesk.server import answers
    from refdesk.toolsets.skills.models import to_skill_document
    from refdesk.toolsets.skills.versions import render_content, render_skill

    return {
        "record": answers.to_json(to_skill_document(skill)),
        "changes": list(skill.changes),
        "text": render_skill(skill),
        "content": render_content(skill),
    }


async def _list_failures(desk: Desk, _: Work) -> list[dict[str, Any]]:
    """Return the documents of every org that could not be embedded."""
    indexers = await _get_indexers(desk)
    return [_show_failure(failure) for indexer in indexers for failure in await indexer.list_failures()]


async def _retry(desk: Desk, _: Work) -> int:
    """Have all of them tried again; return how many documents that is."""
    return sum([await indexer.retry_failures() for indexer in await _get_indexers(desk)])


async def _get_indexers(desk: Desk) -> list[Indexer]:
    return [base.indexer for base in (await desk.get_base()).each()]


def _show_failure(failure: Failure) -> dict[str, Any]:
    return {
        "org": failure.collection.org,
        "toolset": failure.collection.toolset,
        "id": failure.id,
        "reason": failure.reason,
        "attempts": failure.attempts,
        "retryAt": failure.retry_at.isoformat() if failure.retry_at else None,
    }


async def _search(desk: Desk, work: Work) -> dict[str, Any]:
    from refdesk.server.local.searching import search

    return await search(desk, work.principal, work.arguments)


WORKS: Mapping[str, tuple[str | None, Callable[[Desk, Work], Awaitable[object]]]] = {
    "learn": (SKILLS, _learn),
    "plan": (SKILLS, _plan),
    "versions": (SKILLS, _list_versions),
    "search": (None, _search),
    "failures": (None, _list_failures),
    "retry": (None, _retry),
}
"""For each kind of work by name: the toolset that it is always about, and the function that does it."""
