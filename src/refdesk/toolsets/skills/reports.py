"""Reports of how following a skill went: each moves its confidence and its tallies, and can be taken back.

A report is kept with what it did, so that taking it back undoes that and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from refdesk.errors import InvalidInputError, NotFoundError, PermissionDeniedError
from refdesk.model import JsonValue, Metadata, MetadataKey
from refdesk.toolsets.skills import missing, outcomes, records

if TYPE_CHECKING:
    from refdesk.core.writing.idempotency import Once
    from refdesk.protocols import Transaction
    from refdesk.toolsets.skills.queries import SkillQueries
    from refdesk.toolsets.skills.records import Skill

KIND = "skill_outcome"
CHANGES = {"resolved": 0.10, "likely_resolved": 0.03, "likely_failed": -0.05, "failed": -0.10}
"""How far each outcome moves a skill's confidence."""

_TAKEN_BACK = "The steps of version {} are back: a report that spoke against them was taken back."


@dataclass(frozen=True, slots=True)
class Report:
    """What is reported.

    Attributes:
        version: The one that was followed; `None` is the present one.
        evidence: What shows it, masked.
    """

    id: str
    agent: str
    outcome: str
    version: int | None = None
    evidence: str = ""


async def record(queries: SkillQueries, skill_id: str, report: Report, once: Once[Skill] | None = None) -> Skill:
    """Move a skill's confidence by a report, kept in [0, 1], and keep the report; it counts as use.

    Raises:
        NotFoundError: There is no such skill.
        InvalidInputError: The report is of a version that there is not yet.
        AnsweredBefore: It is a repetition.
    """
    known = await queries.get_skill(skill_id)
    # The versions before are read only where they matter: for a report of one of them, or to go back to one.
    matter = known is not None and (report.version not in (None, known.version) or known.tally.bad > 0)
    history = await queries.get_history(skill_id) if matter else []
    async with queries.store.transaction() as transaction:
        if once is not None:
            await once.check(transaction)
        skill = await _read(queries, transaction, skill_id)
        version = report.version or skill.version
        if version > skill.version:
            raise InvalidInputError(
                f"There is no version {version} yet; the skill is at {skill.version}: leave version out."
            )
        now = queries.clock.now()
        moved, done = _move(skill, history, report, version, now)
        returned = await _go_back(queries, transaction, moved, history)
        if returned.version != moved.version:
            done["returned"] = returned.version
        await queries.put_counters(transaction, returned)
        value = {"outcome": report.outcome, "version": version, "evidence": report.evidence, "agent": report.agent}
        kept: dict[str, JsonValue] = {**value, "at": now.isoformat(), **done}
        await transaction.put_metadata([Metadata(_key(queries, skill_id, report.id), kept)])
        if once is not None:
            await once.note(transaction, returned)
    return returned


async def withdraw(queries: SkillQueries, skill_id: str, report_id: str, agent: str) -> Skill:
    """Take a report of one's own back and return the skill without it; doing it again changes nothing.

    Raises:
        NotFoundError: There is no such skill, or no such report of it.
        PermissionDeniedError: The report is another agent's.
    """
    history = await queries.get_history(skill_id)
    async with queries.store.transaction() as transaction:
        skill = await _read(queries, transaction, skill_id)
        record = await transaction.get_metadata(_key(queries, skill_id, report_id))
        if record is None:
            raise NotFoundError(f"There is no report {report_id} of this skill. Use the report_id of report_outcome.")
        if record.value.get("agent") != agent:
            raise PermissionDeniedError("Another agent made this report; report how it went for you instead.")
        if "withdrawn_at" in record.value:
            return skill
        undone = await _undo(queries, transaction, skill, history, record.value)
        await queries.put_counters(transaction, undone)
        value = {**record.value, "withdrawn_at": queries.clock.now().isoformat()}
        await transaction.put_metadata([Metadata(record.key, value)])
    return undone


def _move(
    skill: Skill, history: Sequence[Skill], report: Report, version: int, now: datetime
) -> tuple[Skill, dict[str, JsonValue]]:
    """Return the skill with one more report, and what that did."""
    confidence = round(min(1.0, max(0.0, skill.confidence + CHANGES[report.outcome])), 6)
    is_new_use = skill.unreported == 0
    steps, week = _identify(skill, history, version), outcomes.name_week(now, version)
    moved = replace(
        skill,
        confidence=confidence,
        times_used=skill.times_used + is_new_use,
        unreported=max(0, skill.unreported - 1),
        times_confirmed=skill.times_confirmed + (report.outcome == "resolved"),
        tallies={**skill.tallies, steps: skill.tallies.get(steps, outcomes.UNKNOWN).add(report.outcome)},
        weeks=outcomes.change_week(skill.weeks, week, skill.weeks.get(week, outcomes.UNKNOWN).add(report.outcome)),
    )
    return moved, {"moved": round(confidence - skill.confidence, 6), "used": is_new_use, "steps": steps}


async def _undo(
    queries: SkillQueries,
    transaction: Transaction,
    skill: Skill,
    history: Sequence[Skill],
    report: Mapping[str, Any],
) -> Skill:
    """Return the skill as it were without a report."""
    outcome, version = str(report["outcome"]), int(report["version"])
    steps = str(report.get("steps") or _identify(skill, history, version))
    week = outcomes.name_week(datetime.fromisoformat(str(report["at"])), version)
    moved, was_use = float(report.get("moved", CHANGES[outcome])), bool(report.get("used", False))
    undone = replace(
        skill,
        confidence=round(min(1.0, max(0.0, skill.confidence - moved)), 6),
        times_used=max(0, skill.times_used - was_use),
        times_confirmed=max(0, skill.times_confirmed - (outcome == "resolved")),
        tallies={**skill.tallies, steps: skill.tallies.get(steps, outcomes.UNKNOWN).take(outcome)},
        weeks=outcomes.change_week(skill.weeks, week, skill.weeks.get(week, outcomes.UNKNOWN).take(outcome)),
    )
    if report.get("returned") != skill.version:
        return undone
    before = next(each for each in history if each.version == skill.version - 1)
    own = outcomes.identify(before.playbook)
    # What was put aside for this report is what it was before, with the cases that are known by now.
    back = replace(
        undone,
        playbook=replace(before.playbook, cases=skill.playbook.cases, notes=skill.playbook.notes),
        version=skill.version + 1,
        updated_at=queries.clock.now(),
        changes=(_TAKEN_BACK.format(before.version),),
        rejected=tuple(each for each in skill.rejected if each != own),
    )
    await transaction.put_documents([records.to_document(back, queries.org)])
    return back


async def _go_back(queries: SkillQueries, transaction: Transaction, skill: Skill, history: Sequence[Skill]) -> Skill:
    """Return the skill with the steps of an earlier version, as a new one, where its own surely work worse."""
    versions = [*(each for each in history if each.version < skill.version), skill]
    better = outcomes.find_better(versions, skill.tallies)
    if better is None:
        return skill
    returned = replace(
        skill,
        playbook=replace(better.playbook, cases=skill.playbook.cases, notes=skill.playbook.notes),
        version=skill.version + 1,
        updated_at=queries.clock.now(),
        changes=(outcomes.describe_return(skill, better, skill.tallies),),
        rejected=(*skill.rejected, outcomes.identify(skill.playbook)),
    )
    await transaction.put_documents([records.to_document(returned, queries.org)])
    return returned


def _identify(skill: Skill, history: Sequence[Skill], version: int) -> str:
    """Return the steps that a version has."""
    followed = next((each.playbook for each in history if each.version == version), skill.playbook)
    return outcomes.identify(skill.playbook if version == skill.version else followed)


async def _read(queries: SkillQueries, transaction: Transaction, skill_id: str) -> Skill:
    skill = await queries.read_skill(transaction, skill_id)
    if skill is None:
        raise await missing.explain(transaction, queries.org, skill_id)
    return skill


def _key(queries: SkillQueries, skill_id: str, report_id: str) -> MetadataKey:
    return MetadataKey(queries.org, KIND, f"{skill_id}/{report_id}")
