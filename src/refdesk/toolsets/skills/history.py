"""What is behind a skill: its versions with how they worked, the evidence of each step, and its cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import sqrt
from typing import TYPE_CHECKING, cast

from refdesk.model import Metadata
from refdesk.toolsets.skills import cases, outcomes, version_kinds
from refdesk.toolsets.skills.history_models import (
    CaseEntry,
    SkillHistory,
    StepEntry,
    VersionEntry,
    WeekEntry,
)

if TYPE_CHECKING:
    from refdesk.playbooks import Step
    from refdesk.toolsets.skills.outcomes import Tally
    from refdesk.toolsets.skills.queries import SkillQueries
    from refdesk.toolsets.skills.records import Skill


@dataclass(frozen=True, slots=True)
class _Known:
    """All versions of a skill, oldest first, with the current tallies."""

    versions: Sequence[Skill]

    @property
    def present(self) -> Skill:
        return self.versions[-1]

    def get_tally(self, skill: Skill) -> Tally:
        return self.present.tallies.get(outcomes.identify(skill.playbook), outcomes.UNKNOWN)

    def find_before(self, skill: Skill) -> Skill | None:
        """Return the last version before the given one whose steps differ from it, or `None`."""
        steps = outcomes.identify(skill.playbook)
        earlier = (each for each in reversed(self.versions) if each.version < skill.version)
        return next((each for each in earlier if outcomes.identify(each.playbook) != steps), None)


async def get_history(queries: SkillQueries, skill_id: str) -> SkillHistory | None:
    """Return what is behind a skill; `None` if there is none with that id."""
    versions = await queries.get_history(skill_id)
    if not versions:
        return None
    records = await queries.store.list_metadata(cases.get_kind(skill_id), org=queries.org, limit=10 * cases.MAX_CASES)
    records.sort(key=lambda record: (str(record.value["at"]), record.key.name))
    known = _Known(versions)
    skill = known.present
    return SkillHistory(
        skill_id=skill.skill_id,
        title=skill.title,
        version=skill.version,
        confidence=skill.confidence,
        times_used=skill.times_used,
        times_confirmed=skill.times_confirmed,
        versions=[_to_version(known, each) for each in reversed(versions)],
        weeks=[_to_week(name, tally) for name, tally in sorted(skill.weeks.items())],
        steps=list(_to_steps(skill, skill.playbook.steps)),
        seldom=list(_to_steps(skill, skill.playbook.seldom)),
        cases=[_to_case(record) for record in records[-cases.MAX_CASES :]],
        merged_from=list(dict.fromkeys(str(r.value["merged_from"]) for r in records if r.value.get("merged_from"))),
    )


def _to_version(known: _Known, skill: Skill) -> VersionEntry:
    tally = known.get_tally(skill)
    margin = outcomes.BOUND * sqrt(tally.variance)
    return VersionEntry(
        version=skill.version,
        kind=version_kinds.find_kind(skill),
        updated_at=skill.updated_at,
        made_by=skill.made_by,
        changes=list(skill.changes),
        steps=len(skill.playbook.steps),
        worked=tally.good,
        failed=tally.bad,
        rate=round(tally.mean, 4),
        least=round(max(0.0, tally.mean - margin), 4),
        most=round(min(1.0, tally.mean + margin), 4),
        verdict=_judge(known, skill, tally),
    )


def _to_week(name: str, tally: Tally) -> WeekEntry:
    monday, version = name.split("/")
    return WeekEntry(week=date.fromisoformat(monday), version=int(version), worked=tally.good, failed=tally.bad)


def _judge(known: _Known, skill: Skill, tally: Tally) -> str:
    """Return how a version works compared with the one before that has other steps, if that is sure; else nothing."""
    before = known.find_before(skill)
    if before is None:
        return ""
    other = known.get_tally(before)
    if outcomes.is_worse(other, tally):
        return f"Promoted: it surely works better than version {before.version}."
    if outcomes.is_worse(tally, other):
        return f"It surely works worse than version {before.version}."
    return ""


def _to_steps(skill: Skill, steps: Sequence[Step]) -> Iterator[StepEntry]:
    for step in steps:
        yield StepEntry(
            id=step.id,
            do=step.do,
            cases=list(step.cases),
            support=len(step.cases),
            of=len(skill.playbook.cases),
            led_on=step.led_on,
        )


def _to_case(record: Metadata) -> CaseEntry:
    value = record.value
    return CaseEntry(
        id=record.key.name,
        outcome=str(value["outcome"]),
        turns=len(cast("Sequence[object]", value["turns"])),
        agent=str(value["agent"]),
        at=datetime.fromisoformat(str(value["at"])),
        merged_from=str(value.get("merged_from", "")),
    )
