"""Reports of how following a skill went: each moves the skill's confidence and tallies, and can be withdrawn.

Withdrawing a report leaves the skill as if it had never been made: the reports that stand are replayed in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio.to_thread

from refdesk.errors import InvalidInputError, NotFoundError, PermissionDeniedError
from refdesk.model import JsonValue, Metadata, MetadataKey
from refdesk.toolsets.skills import counting, earlier_reports, ledger, missing, outcomes, records, replaying
from refdesk.toolsets.skills.earlier_reports import KIND
from refdesk.toolsets.skills.ledger import Head
from refdesk.toolsets.skills.replaying import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.writing.idempotency import Once
    from refdesk.protocols import Transaction
    from refdesk.toolsets.skills.queries import SkillQueries
    from refdesk.toolsets.skills.records import Skill
    from refdesk.toolsets.skills.replaying import State

_RESTORED = f"{outcomes.RESTORED} {{}} are back: a report that spoke against them was taken back."


@dataclass(frozen=True, slots=True)
class Report:
    """What is reported.

    Attributes:
        version: The one that was followed; `None` means the present one.
        evidence: What shows the outcome, masked.
    """

    id: str
    agent: str
    outcome: str
    version: int | None = None
    evidence: str = ""


async def record(queries: SkillQueries, skill_id: str, report: Report, once: Once[Skill] | None = None) -> Skill:
    """Store a report and move the skill's confidence by it, within [0, 1]; it counts as a use unless a read did.

    Raises:
        NotFoundError: There is no such skill.
        InvalidInputError: The report is on a version that does not exist yet.
        AnsweredBefore: It is a repetition.
    """
    async with queries.store.transaction() as transaction:
        if once is not None:
            await once.check(transaction)
        skill = await _read(queries, transaction, skill_id)
        version = report.version or skill.version
        if version > skill.version:
            raise InvalidInputError(
                f"There is no version {version} yet; the skill is at {skill.version}: leave version out."
            )
        head = await ledger.read_head(transaction, queries.org, skill_id)
        # Earlier versions are read only if they matter: for a report on one of them, or to see which came since.
        matter = version < skill.version or (head.version != skill.version if head is not None else skill.version > 1)
        versions = await queries.get_history(skill_id, transaction) if matter else [skill]
        counters, now = counting.get_counters(skill), queries.clock.now()
        head = head or _begin(replaying.begin(counters, versions))
        before = replaying.State(counters, head.version, head.steps, head.other)
        before = replaying.advance(before, versions, skill.version)
        steps, week = _identify(versions, version), outcomes.name_week(now, version)
        entry = Entry(report.id, report.outcome, skill.version, version, steps, week, skill.reads)
        after = replaying.add(before, entry)
        returned = await _take_over(queries, transaction, skill, after)
        await ledger.append(transaction, queries.org, skill_id, _move(head, after, returned), entry, after.counters)
        kept: dict[str, JsonValue] = {"outcome": report.outcome, "version": version, "evidence": report.evidence}
        kept |= {"agent": report.agent, "at": now.isoformat()}
        await transaction.put_metadata([Metadata(_key(queries, skill_id, report.id), kept)])
        if once is not None:
            await once.note(transaction, returned)
    return returned


async def withdraw(queries: SkillQueries, skill_id: str, report_id: str, agent: str) -> Skill:
    """Withdraw the agent's own report and return the skill without it; doing so again changes nothing.

    Raises:
        NotFoundError: There is no such skill, or no such report of it.
        PermissionDeniedError: The report is another agent's.
    """
    async with queries.store.transaction() as transaction:
        skill = await _read(queries, transaction, skill_id)
        record = await transaction.get_metadata(_key(queries, skill_id, report_id))
        if record is None:
            raise NotFoundError(f"There is no report {report_id} of this skill. Use the report_id of report_outcome.")
        if record.value.get("agent") != agent:
            raise PermissionDeniedError("Another agent made this report; report how it went for you instead.")
        if "withdrawn_at" in record.value:
            return skill
        without = await _leave_out(queries, transaction, skill, record)
        value = {**record.value, "withdrawn_at": queries.clock.now().isoformat()}
        await transaction.put_metadata([Metadata(record.key, value)])
    return without


def _identify(versions: Sequence[Skill], version: int) -> str:
    """Return the steps of a version; if it is not there any more, those of the present one."""
    followed = next((each for each in versions if each.version == version), versions[-1])
    return outcomes.identify(followed.playbook)


async def read(queries: SkillQueries, skill: Skill) -> list[Metadata]:
    """Return the records of a skill's reports, oldest first, including withdrawn ones but no erased ones."""
    store, org = queries.store, queries.org
    head = await ledger.read_head(store, org, skill.skill_id)
    if head.base.counters.tallies if head is not None else skill.tallies:
        return await earlier_reports.find(store, org, skill.skill_id)
    if head is None:
        return []
    pages = await ledger.read_pages(store, org, skill.skill_id, head)
    keys = [_key(queries, skill.skill_id, entry.id) for page in (*pages, head.entries) for entry in page if entry.id]
    return [record for record in await store.get_many_metadata(keys) if record is not None]


async def _leave_out(queries: SkillQueries, transaction: Transaction, skill: Skill, record: Metadata) -> Skill:
    """Store the skill as it would be without a report, and return it."""
    org, skill_id, report_id = queries.org, skill.skill_id, record.key.name.rpartition("/")[2]
    versions = await queries.get_history(skill_id, transaction)
    head = await ledger.read_head(transaction, org, skill_id)
    head = head or _begin(replaying.begin(counting.get_counters(skill), versions))
    tail = await ledger.read_tail(transaction, org, skill_id, head, report_id)
    begun, entries = tail.state, tail.entries
    known = frozenset(entry.id for entry in entries)
    if report_id not in known:
        begun, earlier = await earlier_reports.adopt(transaction, record, head.base, known, versions)
        head, entries = replace(head, base=begun), [*earlier, *entries]
    every = [replace(entry, stands=False) if entry.id == report_id else entry for entry in entries]
    # In a thread: with thousands of reports it takes a tenth of a second, in which others must be answered.
    part = ledger.SPAN * ledger.PAGE
    after, states = await anyio.to_thread.run_sync(replaying.replay, begun, every, versions, part)
    after = replace(after, counters=replaying.read(after.counters, skill.reads))
    kept = await _take_over(queries, transaction, skill, after, versions)
    await ledger.rewrite(transaction, org, skill_id, _move(head, after, kept), tail, every, states)
    return kept


async def _take_over(
    queries: SkillQueries, transaction: Transaction, skill: Skill, state: State, versions: Sequence[Skill] = ()
) -> Skill:
    """Give a skill the counters of a state and, as a new version if they differ, its steps; return the skill."""
    present = outcomes.identify(skill.playbook)
    changed = replace(skill, **{name: getattr(state.counters, name) for name in counting.NAMES})
    if state.steps != present:
        versions = versions or await queries.get_history(skill.skill_id, transaction)
        source = next((each for each in reversed(versions) if outcomes.identify(each.playbook) == state.steps), skill)
        is_rejected = present in state.counters.rejected
        said = (
            outcomes.describe_return(skill, source, changed.tallies)
            if is_rejected
            else _RESTORED.format(source.version)
        )
        # The cases and notes stay those of the present version.
        changed = replace(
            changed,
            playbook=replace(source.playbook, cases=skill.playbook.cases, notes=skill.playbook.notes),
            version=skill.version + 1,
            updated_at=queries.clock.now(),
            changes=(said,),
            suggested="",
        )
        await transaction.put_documents([records.to_document(changed, queries.org)])
    await queries.put_counters(transaction, changed)
    return changed


def _begin(state: State) -> Head:
    return Head(state, state.version, state.steps, state.other)


def _move(head: Head, state: State, skill: Skill) -> Head:
    return replace(head, version=skill.version, steps=state.steps, other=state.other)


async def _read(queries: SkillQueries, transaction: Transaction, skill_id: str) -> Skill:
    skill = await queries.read_skill(transaction, skill_id)
    if skill is None:
        raise await missing.explain(transaction, queries.org, skill_id)
    return skill


def _key(queries: SkillQueries, skill_id: str, report_id: str) -> MetadataKey:
    return MetadataKey(queries.org, KIND, f"{skill_id}/{report_id}")
