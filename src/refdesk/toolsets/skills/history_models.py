"""The inputs and outputs of the operations that show what is behind a skill, merge two or split one."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from refdesk.toolsets.skills.models import Message, SkillId
from refdesk.toolsets.skills.version_kinds import VersionKind


class VersionEntry(Message):
    """A version, and how its steps have worked since: versions with the same steps share their reports."""

    version: int
    kind: VersionKind = Field(description="How it came to be.")
    updated_at: datetime
    made_by: str
    changes: list[str]
    steps: int
    worked: float = Field(description="Reports that its steps resolved it; likely ones count half.")
    failed: float = Field(description="Reports that they did not, likewise.")
    rate: float = Field(description="Of success, as expected from the reports, in [0, 1]; 0.5 without any.")
    least: float = Field(description="What the rate surely exceeds, with a probability of 0.9.")
    most: float = Field(description="What it surely stays below, likewise.")
    verdict: str = Field(description="How it works beside the version before that had other steps, where that is sure.")


class StepEntry(Message):
    """A step with its evidence."""

    id: str = Field(description="The same in every version that has it; empty where a person or a model wrote it.")
    do: str
    support: int = Field(description="How many conversations support it.")
    of: int = Field(description="Of so many.")
    led_on: int = Field(description="In how many of those the conversation went on as the playbook does.")
    cases: list[str] = Field(description="The ids of the conversations that support it.")


class WeekEntry(Message):
    """What was reported of a version in one week."""

    week: date = Field(description="Its Monday, UTC.")
    version: int = Field(description="The version that was followed.")
    worked: float = Field(description="Reports that it resolved it; likely ones count half.")
    failed: float = Field(description="Reports that it did not, likewise.")


class CaseEntry(Message):
    """A conversation that the skill was learned from, without what was said."""

    id: str
    outcome: str = Field(description="resolved, likely_resolved, likely_failed, failed, or empty where unknown.")
    turns: int
    agent: str = Field(description="Who sent it.")
    at: datetime
    merged_from: str = Field(description="The skill that it came with when two were merged; else empty.")


class HistoryInput(Message):
    """What `get_skill_history` takes."""

    skill_id: SkillId


class SkillHistory(Message):
    """What is behind a skill."""

    skill_id: str
    title: str
    version: int
    confidence: float
    times_used: int
    times_confirmed: int
    versions: list[VersionEntry] = Field(description="Newest first.")
    weeks: list[WeekEntry] = Field(description="Reports over time, oldest first; weeks without any are left out.")
    steps: list[StepEntry] = Field(description="Of the present version, in order.")
    seldom: list[StepEntry] = Field(description="What too few conversations did to be a step.")
    cases: list[CaseEntry] = Field(description="Oldest first, the newest 200.")
    merged_from: list[str] = Field(description="Skills that were merged into it; unmerge_skills undoes each.")


class MergeInput(Message):
    """What `merge_skills` takes."""

    skill_id: SkillId = Field(description="The skill that stays.")
    other_id: SkillId = Field(description="The skill whose conversations it gets; searches find it no more.")


class UnmergeInput(Message):
    """What `unmerge_skills` takes."""

    skill_id: SkillId = Field(description="The skill that was merged into another one.")


class MergeOutput(Message):
    """What merging and its undoing answer."""

    skill_id: str = Field(description="The skill that stays, or the one that came back.")
    title: str
    version: int
    changes: list[str]
    other_id: str = Field(description="The other one.")


class SplitInput(Message):
    """What `split_skill` takes."""

    skill_id: SkillId
    cases: list[SkillId] = Field(
        default_factory=list[SkillId],
        max_length=2000,
        description=(
            "The conversations that become a skill of their own, by the ids that get_skill_history returns. Without "
            "any: those that seem to be about another problem than most."
        ),
    )
    dry_run: bool = Field(False, description="Whether to show only what would become of it.")


class SplitOutput(Message):
    """What splitting answers."""

    skill_id: str = Field(description="The skill that stays.")
    title: str
    version: int
    changes: list[str] = Field(description="Of the skill that stays; empty for a dry run.")
    other_id: str = Field(description="The new one; empty for a dry run.")
    other_title: str
    cases: list[str] = Field(description="The conversations of the new one.")
