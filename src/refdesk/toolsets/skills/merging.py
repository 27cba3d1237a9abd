"""Merges two skills about one problem on request, and undoes merges: cases move, and playbooks are induced anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.errors import ConflictError, InvalidInputError
from refdesk.model import Metadata, MetadataKey, State
from refdesk.toolsets.skills import cases, changes, missing, openings, records
from refdesk.toolsets.skills.queries import SOURCE, SkillQueries, get_queries
from refdesk.toolsets.skills.records import MERGED_INTO
from refdesk.toolsets.skills.version_kinds import MERGED, UNMERGED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.context import Context
    from refdesk.model import Document, JsonValue
    from refdesk.playbooks import Case
    from refdesk.protocols import Transaction
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.records import Skill, SkillUpdate

MERGED_FROM = "merged_from"
MOST_CASES = 10 * cases.MAX_CASES


async def merge(learner: Learner, context: Context, skill_id: str, other_id: str) -> Skill:
    """Let a skill learn from all cases of another one, which is withdrawn; return its new version.

    Raises:
        InvalidInputError: Both ids are of one skill.
        NotFoundError: One of them is not there.
        ConflictError: One of them was changed meanwhile; nothing is merged.
    """
    queries = get_queries(context)
    if skill_id == other_id:
        raise InvalidInputError("A skill cannot be merged with itself: name another as other_id.")
    skill, other = await get(queries, skill_id), await get(queries, other_id)
    own, moved = [await read(queries, each) for each in (skill, other)]
    said = f"{MERGED} “{other.title}” ({other_id}): {len(moved)} of its conversations are evidence now."
    update = await induce(learner, context, skill, sorted([*own, *moved], key=_get_age), said)
    names = {record.key.name for record in own}
    copies = [_move(record, skill_id, other_id) for record in moved if record.key.name not in names]
    sources = [record_source(queries, record, skill_id) for record in moved]
    gone = replace(
        records.to_document(
            replace(other, version=other.version + 1, changes=(f"Merged into {skill_id}.",)), queries.org
        ),
        state=State.WITHDRAWN,
    )
    gone = replace(gone, data={**gone.data, MERGED_INTO: skill_id})
    return await _commit(_Change(queries, skill, update, other.version), gone, [*own, *copies, *sources], [])


async def unmerge(learner: Learner, context: Context, skill_id: str) -> tuple[Skill, Skill]:
    """Undo the merge of a skill into another one; return both, the one that comes back first.

    Raises:
        InvalidInputError: It was not merged.
        NotFoundError: The other skill is not there any more, or was itself merged since: undo that first.
        ConflictError: One of them was changed meanwhile; nothing is undone.
    """
    queries = get_queries(context)
    [document] = await queries.store.get_documents(records.get_collection(queries.org), [skill_id])
    if document is None or MERGED_INTO not in document.data:
        raise InvalidInputError(
            f"The skill {skill_id} was not merged into another one: there is nothing to undo, use it as it is."
        )
    into = str(document.data[MERGED_INTO])
    skill = await get(queries, into)
    every = await read(queries, skill)
    left = [record for record in every if record.value.get(MERGED_FROM) != skill_id]
    returned = [record for record in every if record.value.get(MERGED_FROM) == skill_id]
    said = f"{UNMERGED}: “{document.title}” ({skill_id}) is a skill of its own again."
    update = await induce(learner, context, skill, left, said)
    data = {name: value for name, value in document.data.items() if name != MERGED_INTO}
    back = replace(
        document,
        state=State.CURRENT,
        version=document.version + 1,
        modified_at=queries.clock.now(),
        data={**data, "changes": [f"{UNMERGED}."]},
    )
    sources = [record_source(queries, record, skill_id) for record in returned]
    change = _Change(queries, skill, update, document.version)
    kept = await _commit(change, back, sources, [record.key for record in returned])
    return await get(queries, skill_id), kept


@dataclass(frozen=True, slots=True)
class _Change:
    """The update of the skill that stays; `expected` is the version that the other one must still have."""

    queries: SkillQueries
    skill: Skill
    update: SkillUpdate
    expected: int


async def _commit(change: _Change, other: Document, kept: Sequence[Metadata], removed: Sequence[MetadataKey]) -> Skill:
    queries, skill = change.queries, change.skill
    async with queries.store.transaction() as transaction:
        await _require_version(transaction, other, change.expected)
        changed = await queries.update_within(transaction, skill.skill_id, change.update)
        await transaction.put_documents([other])
        await transaction.put_metadata(kept)
        await transaction.remove_metadata(removed)
    return changed


async def _require_version(transaction: Transaction, other: Document, expected: int) -> None:
    [document] = await transaction.get_documents(other.collection, [other.id])
    if document is None or document.version != expected:
        raise ConflictError("The other skill has changed meanwhile; try again.")


async def get(queries: SkillQueries, skill_id: str) -> Skill:
    """Return a skill; raise a `NotFoundError` that says what became of it if it is not there."""
    skill = await queries.get_skill(skill_id)
    if skill is None:
        raise await missing.explain(queries.store, queries.org, skill_id)
    return skill


async def read(queries: SkillQueries, skill: Skill) -> list[Metadata]:
    """Return the records of a skill's cases, oldest first; for a skill without any, what it says, as one case."""
    kind = cases.get_kind(skill.skill_id)
    found = await queries.store.list_metadata(kind, org=queries.org, limit=MOST_CASES)
    if not found and skill.playbook.steps:
        earlier = cases.make_earlier(skill)
        return [cases.to_record(earlier, queries.org, skill.skill_id, skill.author, skill.created_at)]
    return sorted(found, key=_get_age)


def _get_age(record: Metadata) -> tuple[str, str]:
    return str(record.value["at"]), record.key.name


async def induce(learner: Learner, context: Context, skill: Skill, kept: Sequence[Metadata], said: str) -> SkillUpdate:
    """Return the update that bases a skill on the cases kept; `said` comes first among its changes."""
    found: list[Case] = [cases.to_case(record) for record in kept][-cases.MAX_CASES :]
    draft = await learner.induce(context, found, skill) if found else skill.draft
    told = (*changes.describe(skill.draft, draft), *draft.remarks)
    update = await learner.make_update(context, skill, draft, told)
    # What is said of the merge contains ids, which masking would mistake for a customer's numbers.
    return replace(update, changes=(said, *update.changes), silent=openings.count_silent(found))


def _move(record: Metadata, skill_id: str, other_id: str) -> Metadata:
    """Return a case's record moved to the skill `skill_id`; it notes that it came from `other_id`."""
    value: dict[str, JsonValue] = {**record.value, "skill_id": skill_id, MERGED_FROM: other_id}
    name = f"{other_id}/{cases.EARLIER}" if record.key.name == cases.EARLIER else record.key.name
    return Metadata(MetadataKey(record.key.org, cases.get_kind(skill_id), name), value)


def record_source(queries: SkillQueries, record: Metadata, skill_id: str) -> Metadata:
    """Return the record that the conversation of a case belongs to a skill."""
    return Metadata(MetadataKey(queries.org, SOURCE, record.key.name), {"skill_id": skill_id})
