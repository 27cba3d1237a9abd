"""Reports from before the ledger kept their order: they enter it when the first of them is withdrawn.

Until then the ledger begins with what they made of the skill. They are ordered by when they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from refdesk.toolsets.skills import outcomes, replaying
from refdesk.toolsets.skills.replaying import CHANGES, Entry, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refdesk.model import Metadata
    from refdesk.protocols import Reader, Transaction
    from refdesk.toolsets.skills.records import Counters, Skill

KIND = "skill_outcome"
MOST = 1_000_000
"""Most reports of an org that are read to find those of one skill: their records are not grouped by skill."""


async def adopt(
    transaction: Transaction, record: Metadata, base: State, known: frozenset[str], versions: Sequence[Skill]
) -> tuple[State, list[Entry]]:
    """Return where the ledger begins once the earlier reports are in it, and their entries; one is withdrawn now.

    If some of them have been erased, the effect of those cannot be told from the rest. Then only the known effect of
    the withdrawn one is taken off the beginning, and there are no entries.

    Args:
        transaction: Reads them.
        record: The record of the report that is withdrawn.
        base: Where the ledger begins so far: after all of them.
        known: The ids of the reports that the ledger already has.
        versions: Those of the skill, oldest first.
    """
    skill_id = record.key.name.partition("/")[0]
    every = await find(transaction, record.key.org, skill_id)
    found = [each for each in every if each.key.name.rpartition("/")[2] not in known]
    standing = [each for each in found if "withdrawn_at" not in each.value]
    first = _take_off(base.counters, standing, versions)
    if any(tally.count for tally in first.tallies.values()):
        return replace(base, counters=_take_off(base.counters, [record], versions)), []
    # When reads without a report happened is not known; it makes no difference to count them after all reports.
    spared = sum(not each.value.get("used", False) for each in standing) + first.unreported
    first = replace(
        first, times_used=first.times_used - spared, unreported=0, reads=first.reads - spared, rejected=(), tallies={}
    )
    begun = State(first, versions[0].version, outcomes.identify(versions[0].playbook))
    return begun, list(_to_entries(found, first.reads, versions))


async def find(reader: Reader, org: str, skill_id: str) -> list[Metadata]:
    """Return the records of all reports of a skill, oldest first."""
    every = await reader.list_metadata(KIND, org=org, limit=MOST)
    found = [each for each in every if each.key.name.startswith(f"{skill_id}/")]
    return sorted(found, key=lambda each: (str(each.value["at"]), each.key.name))


def _take_off(counters: Counters, reports: Sequence[Metadata], versions: Sequence[Skill]) -> Counters:
    """Return the counters without the known effect of the given reports, none of which is withdrawn."""
    moved = 0.0
    for report in reports:
        value, outcome = report.value, str(report.value["outcome"])
        steps, week = _find_steps(report, versions), _name_week(report)
        moved += float(str(value.get("moved", CHANGES[outcome])))
        counters = replace(
            counters,
            times_used=max(0, counters.times_used - bool(value.get("used", False))),
            times_confirmed=max(0, counters.times_confirmed - (outcome == "resolved")),
            tallies={**counters.tallies, steps: counters.tallies.get(steps, outcomes.UNKNOWN).take(outcome)},
            weeks=outcomes.change_week(counters.weeks, week, counters.weeks.get(week, outcomes.UNKNOWN).take(outcome)),
        )
    return replace(counters, confidence=replaying.keep_in_bounds(counters.confidence - moved))


def _to_entries(reports: Sequence[Metadata], reads: int, versions: Sequence[Skill]) -> Iterator[Entry]:
    for report in reports:
        value, at = report.value, datetime.fromisoformat(str(report.value["at"]))
        stands = "withdrawn_at" not in value
        reads += stands and not value.get("used", False)
        present = max((each.version for each in versions if each.updated_at <= at), default=versions[0].version)
        id, steps, week = report.key.name.rpartition("/")[2], _find_steps(report, versions), _name_week(report)
        version = int(str(value["version"]))
        yield Entry(id, str(value["outcome"]), present, version, steps, week, reads, stands=stands)


def _find_steps(report: Metadata, versions: Sequence[Skill]) -> str:
    """Return the steps that were followed."""
    version = int(str(report.value["version"]))
    followed = next((each for each in versions if each.version == version), versions[-1])
    return str(report.value.get("steps") or outcomes.identify(followed.playbook))


def _name_week(report: Metadata) -> str:
    return outcomes.name_week(datetime.fromisoformat(str(report.value["at"])), int(str(report.value["version"])))
