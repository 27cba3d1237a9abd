"""Splits a skill whose conversations are about two problems, on request: some of its cases become a skill of their own.

Merging the new skill into the old one undoes it. Reports stay with the skill whose versions they are about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.errors import ConflictError, InvalidInputError
from refdesk.model import Metadata, MetadataKey
from refdesk.toolsets.skills import cases, merging, openings, records
from refdesk.toolsets.skills.batches import LEAST_SPLIT
from refdesk.toolsets.skills.learning import clean, require_whole
from refdesk.toolsets.skills.queries import get_queries
from refdesk.toolsets.skills.version_kinds import SPLIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.context import Context
    from refdesk.playbooks import SkillDraft
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.queries import SkillQueries
    from refdesk.toolsets.skills.records import Skill, SkillUpdate


@dataclass(frozen=True, slots=True)
class Division:
    """Which cases of a skill go and which stay, oldest first, and what the new skill would say."""

    skill: Skill
    going: Sequence[Metadata]
    staying: Sequence[Metadata]
    draft: SkillDraft


async def divide(learner: Learner, context: Context, skill_id: str, chosen: Sequence[str]) -> Division:
    """Return how a skill would be split; nothing is stored.

    Args:
        learner: Induces what the new skill would say.
        context: Who asks.
        skill_id: Which skill.
        chosen: The ids of the cases that go; if empty, those that seem to be about another problem than most.

    Raises:
        InvalidInputError: All its cases seem to be about one problem, or it lacks a chosen one, or none would stay.
        NotFoundError: It is not there.
    """
    queries = get_queries(context)
    skill = await merging.get(queries, skill_id)
    every = await merging.read(queries, skill)
    going = set(chosen) or await _find_other_problem(learner, context, every)
    unknown = sorted(going - {record.key.name for record in every})
    if unknown:
        raise InvalidInputError(
            f"The skill has no conversation {unknown[0]!r}: use the ids of cases that get_skill_history returns."
        )
    if len(going) == len(every):
        raise InvalidInputError("Some of the skill's conversations must stay with it.")
    parts = [[record for record in every if (record.key.name in going) is goes] for goes in (True, False)]
    draft = await learner.language_model.induce([*map(cases.to_case, parts[0])], learner.get_embed(context))
    return Division(skill, parts[0], parts[1], require_whole(clean(draft)))


async def _find_other_problem(learner: Learner, context: Context, every: Sequence[Metadata]) -> set[str]:
    recent = every[-cases.MAX_CASES :]
    grouping = await learner.language_model.group([*map(cases.to_case, recent)], learner.get_embed(context))
    groups = [group for group in grouping.groups if len(group) >= LEAST_SPLIT]
    if len(groups) < 2:
        raise InvalidInputError(
            "The skill's conversations seem to be about one problem. Name in `cases` those that shall go, by the ids "
            "that get_skill_history returns."
        )
    # The problem that it was about before others were merged into it stays.
    main = max(groups, key=lambda group: sum(merging.MERGED_FROM not in recent[number].value for number in group))
    other = max((group for group in groups if group is not main), key=len)
    return {recent[number].key.name for number in other}


async def split(learner: Learner, context: Context, skill_id: str, chosen: Sequence[str]) -> tuple[Skill, Skill]:
    """Make some cases of a skill a skill of their own; return the one that stays, and the new one. See `divide`.

    Raises:
        ConflictError: It was changed meanwhile; nothing is done.
        QuotaExceededError: There is no room for one more skill.
    """
    queries = get_queries(context)
    divided = await divide(learner, context, skill_id, chosen)
    new = await _make_skill(learner, context, divided)
    said = f"{SPLIT}: {len(divided.going)} of its conversations are “{new.title}” now ({new.skill_id})."
    update = await merging.induce(learner, context, divided.skill, divided.staying, said)
    return await _commit(queries, divided, update, new), new


async def _make_skill(learner: Learner, context: Context, divided: Division) -> Skill:
    base, skill = context.knowledge_base, divided.skill
    settled = {name: skill.metadata[name] for name in (records.PRODUCT_AREA,) if name in skill.metadata}
    new = records.make_skill(
        divided.draft,
        settled,
        id=base.identifiers.new(),
        author=skill.author,
        model=learner.language_model.name,
        now=base.clock.now(),
    )
    embedding, *others = await learner.embed(context, divided.draft) or [()]
    silent = openings.count_silent(map(cases.to_case, divided.going))
    told = (f"{SPLIT} from “{skill.title}” ({skill.skill_id}).", *divided.draft.remarks)
    return replace(new, changes=told, silent=silent, embedding=embedding, opening_embeddings=others)


async def _commit(queries: SkillQueries, divided: Division, update: SkillUpdate, new: Skill) -> Skill:
    moved = [_move(record, new.skill_id) for record in divided.going]
    sources = [merging.record_source(queries, record, new.skill_id) for record in divided.going]
    async with queries.store.transaction() as transaction:
        for record in divided.going:
            if await transaction.get_metadata(record.key) is None:
                raise ConflictError("One of the conversations is gone meanwhile; try again.")
        kept = await queries.update_within(transaction, divided.skill.skill_id, update)
        await queries.insert_within(transaction, new)
        await transaction.put_metadata([*moved, *sources])
        await transaction.remove_metadata([record.key for record in divided.going])
    return kept


def _move(record: Metadata, skill_id: str) -> Metadata:
    """Return a case's record as one of the new skill; it no longer says from where it was merged."""
    value = {name: each for name, each in record.value.items() if name != merging.MERGED_FROM}
    key = MetadataKey(record.key.org, cases.get_kind(skill_id), record.key.name)
    return Metadata(key, {**value, "skill_id": skill_id})
