"""The operations that show what is behind a skill, and that merge two skills or split one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.operations import READS, Effects, Operation, Route, Shortening
from refdesk.toolsets.skills import missing
from refdesk.toolsets.skills.history_models import (
    HistoryInput,
    MergeInput,
    MergeOutput,
    SkillHistory,
    SplitInput,
    SplitOutput,
    UnmergeInput,
)
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from refdesk.core.context import Context
    from refdesk.toolsets.skills.learning import Learner

MERGE_SECONDS = 120.0
_IDS = ("01930000-0000-7000-8000-000000000001", "01930000-0000-7000-8000-000000000002")
_INVALID = "An argument is missing, malformed or blank."
_UNKNOWN = "No skill has this id, as far as the caller may know."
_MERGE_ERRORS = {
    "INVALID_INPUT": f"{_INVALID} Or the skill was not merged.",
    "NOT_FOUND": _UNKNOWN,
    "CONFLICT": "One of the skills was changed meanwhile; nothing was done.",
    "EMBEDDER_UNAVAILABLE": "The embedding model failed; nothing was changed.",
}

_SPLIT_ERRORS = {
    "INVALID_INPUT": (
        f"{_INVALID} Or all conversations seem to be about one problem, or the skill has not those that are named, or "
        "none would stay."
    ),
    "NOT_FOUND": _UNKNOWN,
    "CONFLICT": "The skill was changed meanwhile; nothing was done.",
    "QUOTA_EXCEEDED": "The org or the agent may create no more skills; details say how much is used.",
    "LANGUAGE_MODEL_UNAVAILABLE": "The language model failed, or refused; nothing was changed.",
    "EMBEDDER_UNAVAILABLE": "The embedding model failed; nothing was changed.",
}


async def get_skill_history(context: Context, asked: HistoryInput) -> SkillHistory:
    """Return what is behind a skill."""
    from refdesk.toolsets.skills import history

    queries = get_queries(context)
    found = await history.get_history(queries, asked.skill_id)
    if found is None:
        raise await missing.explain(queries.store, queries.org, asked.skill_id)
    return found


HISTORY = Operation(
    name="get_skill_history",
    title="Get a skill's history",
    description=(
        "See why a skill says what it says: its versions and how each worked, the conversations that support each "
        "step, what was merged into it. To follow it, get_skill is enough."
    ),
    input=HistoryInput,
    output=SkillHistory,
    handler=missing.NAMING.offering(get_skill_history),
    scopes=frozenset({"skills:read"}),
    effects=READS,
    route=Route("GET", "/skills/{skill_id}/history"),
    errors={"INVALID_INPUT": _INVALID, "NOT_FOUND": _UNKNOWN},
    shortening=Shortening("versions", (), "REST and the command line have all of it."),
    examples=({"skill_id": _IDS[0]},),
)


def make_merge(get_learner: Callable[[], Learner]) -> Operation:
    """Return the operation that merges two skills."""

    async def merge_skills(context: Context, asked: MergeInput) -> MergeOutput:
        from refdesk.toolsets.skills import merging

        skill = await merging.merge(get_learner(), context, asked.skill_id, asked.other_id)
        return MergeOutput(
            skill_id=skill.skill_id,
            title=skill.title,
            version=skill.version,
            changes=list(skill.changes),
            other_id=asked.other_id,
        )

    return Operation(
        name="merge_skills",
        title="Merge two skills",
        description=(
            "Make one skill of two about the same problem: the first learns from the conversations of the second, "
            "which is withdrawn. Ask a person first; unmerge_skills undoes it."
        ),
        input=MergeInput,
        output=MergeOutput,
        handler=missing.NAMING.offering(merge_skills),
        scopes=frozenset({"skills:write"}),
        effects=Effects(read_only=False, idempotent=False),
        route=Route("POST", "/skills/merge"),
        least_seconds=MERGE_SECONDS,
        errors=_MERGE_ERRORS,
        examples=({"skill_id": _IDS[0], "other_id": _IDS[1]},),
        lane="refining",
    )


def make_unmerge(get_learner: Callable[[], Learner]) -> Operation:
    """Return the operation that undoes a merge."""

    async def unmerge_skills(context: Context, asked: UnmergeInput) -> MergeOutput:
        from refdesk.toolsets.skills import merging

        back, kept = await merging.unmerge(get_learner(), context, asked.skill_id)
        return MergeOutput(
            skill_id=back.skill_id,
            title=back.title,
            version=back.version,
            changes=list(kept.changes),
            other_id=kept.skill_id,
        )

    return Operation(
        name="unmerge_skills",
        title="Undo a merge",
        description="Make a skill that was merged into another one a skill of its own again, with its conversations.",
        input=UnmergeInput,
        output=MergeOutput,
        handler=missing.NAMING.offering(unmerge_skills),
        scopes=frozenset({"skills:write"}),
        effects=Effects(read_only=False, idempotent=False),
        route=Route("POST", "/skills/unmerge"),
        least_seconds=MERGE_SECONDS,
        errors=_MERGE_ERRORS,
        examples=({"skill_id": _IDS[1]},),
        lane="refining",
    )


async def _split(learner: Learner, context: Context, asked: SplitInput) -> SplitOutput:
    from refdesk.toolsets.skills import splitting

    if asked.dry_run:
        divided = await splitting.divide(learner, context, asked.skill_id, asked.cases)
        kept, changes, other_id, title = divided.skill, list[str](), "", divided.draft.title
        going = [record.key.name for record in divided.going]
    else:
        kept, new = await splitting.split(learner, context, asked.skill_id, asked.cases)
        changes, other_id, title, going = list(kept.changes), new.skill_id, new.title, list(new.playbook.cases)
    return SplitOutput(
        skill_id=kept.skill_id,
        title=kept.title,
        version=kept.version,
        changes=changes,
        other_id=other_id,
        other_title=title,
        cases=going,
    )


def make_split(get_learner: Callable[[], Learner]) -> Operation:
    """Return the operation that makes two skills of one."""

    async def split_skill(context: Context, asked: SplitInput) -> SplitOutput:
        return await _split(get_learner(), context, asked)

    return Operation(
        name="split_skill",
        title="Split a skill",
        description=(
            "Make two skills of one whose conversations are about two problems. Reports stay with the versions that "
            "earned them. Ask a person first; merge_skills undoes it."
        ),
        input=SplitInput,
        output=SplitOutput,
        handler=split_skill,
        scopes=frozenset({"skills:write"}),
        effects=Effects(read_only=False, idempotent=False),
        route=Route("POST", "/skills/split"),
        least_seconds=MERGE_SECONDS,
        errors=_SPLIT_ERRORS,
        examples=({"skill_id": _IDS[0]}, {"skill_id": _IDS[0], "dry_run": True}),
        lane="refining",
    )
