"""What reports make of a skill, as a fold over them in their order: a report adds to it, withdrawing one repeats it.

A confidence is kept in [0, 1] with each report, so what one report did depends on those before it and cannot be taken
off the end. The same holds for which read a report is of, and for going back to the steps of an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from refdesk.toolsets.skills import outcomes, version_kinds

if TYPE_CHECKING:
    from refdesk.toolsets.skills.records import Counters, Skill

CHANGES = {"resolved": 0.10, "likely_resolved": 0.03, "likely_failed": -0.05, "failed": -0.10}
"""How far each outcome moves a skill's confidence."""

_OF_REPORTS = ("rolled back", "restored")


@dataclass(frozen=True, slots=True)
class Entry:
    """A report in the order of a skill's reports, or a confidence that was set between them.

    Attributes:
        id: The report's; empty where a confidence was set.
        outcome: Likewise.
        present: The version that was the present one.
        version: The one that was followed.
        steps: Those that it has, see `outcomes.identify`.
        week: Of the report, with the version; see `outcomes.name_week`.
        reads: How often the skill had been read whole, since that is counted.
        confidence: What it was set to.
        stands: Whether it was not withdrawn.
    """

    id: str
    outcome: str
    present: int
    version: int
    steps: str
    week: str
    reads: int
    confidence: float = 0.0
    stands: bool = True


@dataclass(frozen=True, slots=True)
class State:
    """Where a skill is after some of its versions and reports.

    Attributes:
        version: The last one that is considered.
        steps: Those that it has.
        other: The last different ones before: what `steps` are compared with; empty where there were none.
    """

    counters: Counters
    version: int
    steps: str
    other: str = ""


def begin(counters: Counters, versions: Sequence[Skill]) -> State:
    """Return the state of a skill with its present version, the last one given."""
    known = [outcomes.identify(each.playbook) for each in versions]
    other = next((steps for steps in reversed(known) if steps != known[-1]), "")
    return State(counters, versions[-1].version, known[-1], other)


def advance(state: State, versions: Sequence[Skill], until: int) -> State:
    """Return the state after later versions up to one; those that reports made are left out, for reports make them.

    Args:
        state: Before them.
        versions: Oldest first, from `state.version` on.
        until: The last one.
    """
    if until <= state.version:
        return state
    for before, each in pairwise(versions):
        if not state.version < each.version <= until:
            continue
        steps = outcomes.identify(each.playbook)
        kind = version_kinds.find_kind(each)
        if kind == "refined" and each.changes and not each.is_edited:
            # Induced, which says at least that there is nothing new. What the cases suggest does not depend on
            # reports; whether that had been rejected before does.
            steps = each.suggested or steps
            is_kept = steps in state.counters.rejected
        else:
            is_kept = steps == outcomes.identify(before.playbook)
        if not is_kept and kind not in _OF_REPORTS:
            state = _change_steps(state, steps)
    return replace(state, version=until)


def add(state: State, entry: Entry) -> State:
    """Return the state after one more report: with other steps where the present ones surely work worse."""
    counters = read(state.counters, entry.reads)
    if not entry.outcome:
        return replace(state, counters=replace(counters, confidence=entry.confidence))
    steps, week, tallies, weeks = entry.steps, entry.week, counters.tallies, counters.weeks
    counters = replace(
        counters,
        confidence=keep_in_bounds(counters.confidence + CHANGES[entry.outcome]),
        times_used=counters.times_used + (counters.unreported == 0),
        unreported=max(0, counters.unreported - 1),
        times_confirmed=counters.times_confirmed + (entry.outcome == "resolved"),
        tallies={**tallies, steps: tallies.get(steps, outcomes.UNKNOWN).add(entry.outcome)},
        weeks=outcomes.change_week(weeks, week, weeks.get(week, outcomes.UNKNOWN).add(entry.outcome)),
    )
    mine, others = (counters.tallies.get(each, outcomes.UNKNOWN) for each in (state.steps, state.other))
    if not state.other or not outcomes.is_worse(mine, others):
        return replace(state, counters=counters)
    rejected = replace(counters, rejected=(*counters.rejected, state.steps))
    return _change_steps(replace(state, counters=rejected), state.other)


def replay(state: State, entries: Iterable[Entry], versions: Sequence[Skill]) -> State:
    """Return the state after the reports that were not withdrawn, and after all versions; see `advance`."""
    for entry in entries:
        if entry.stands:
            state = add(advance(state, versions, entry.present), entry)
    return advance(state, versions, versions[-1].version)


def read(counters: Counters, reads: int) -> Counters:
    """Return the counters once a skill was read whole so often."""
    new = reads - counters.reads
    if not new:
        return counters
    return replace(
        counters, times_used=counters.times_used + new, unreported=counters.unreported + new, reads=counters.reads + new
    )


def keep_in_bounds(confidence: float) -> float:
    """Return a confidence in [0, 1], without what adding decimal fractions leaves behind."""
    return round(min(1.0, max(0.0, confidence)), 6)


def _change_steps(state: State, steps: str) -> State:
    return replace(state, steps=steps, other=state.steps) if steps != state.steps else state
