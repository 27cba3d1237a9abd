"""What reports make of a skill, as a fold over them in order: a new report extends it, withdrawing one repeats it from
there on.

Each report moves the confidence within [0, 1], so its effect depends on the reports before it and cannot simply be
subtracted at the end. The same holds for which read a report belongs to, and for going back to earlier steps.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        id: The report's; empty if a confidence was set.
        outcome: The report's; empty likewise.
        present: The version that was the present one at the time.
        version: The version that was followed.
        steps: The steps of that version; see `outcomes.identify`.
        week: The week of the report, with the version; see `outcomes.name_week`.
        reads: How often the skill had been read whole by then, since reads have been counted.
        confidence: What it was set to.
        stands: Whether the report has not been withdrawn.
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
        version: The last version that is considered.
        steps: The skill's steps then.
        other: The last different steps before: what `steps` are compared with; empty if there were none.
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
    """Return the state after later versions up to a given one, without those made by reports, which `add` redoes.

    Args:
        state: The state before them.
        versions: Oldest first, from `state.version` on.
        until: The last one to consider.
    """
    if until <= state.version:
        return state
    for before, each in pairwise(versions):
        if not state.version < each.version <= until:
            continue
        steps = outcomes.identify(each.playbook)
        kind = version_kinds.find_kind(each)
        if kind == "refined" and each.changes and not each.is_edited:
            # An induced version, whose changes say at least that there is nothing new. What the cases suggest does not
            # depend on reports; whether it had been rejected before does.
            steps = each.suggested or steps
            is_kept = steps in state.counters.rejected
        else:
            is_kept = steps == outcomes.identify(before.playbook)
        if not is_kept and kind not in _OF_REPORTS:
            state = _change_steps(state, steps)
    return replace(state, version=until)


def add(state: State, entry: Entry) -> State:
    """Return the state after one more report; it goes back to the other steps if the present ones surely work worse."""
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


def replay(state: State, entries: Sequence[Entry], versions: Sequence[Skill], size: int) -> tuple[State, list[State]]:
    """Return the state after the reports that stand and after all versions, and the one after each `size` entries.

    From any of the latter, the entries after it can be replayed alone. See `advance` for the versions.
    """
    states: list[State] = []
    for first in range(0, len(entries), size):
        for entry in entries[first : first + size]:
            if entry.stands:
                state = add(advance(state, versions, entry.present), entry)
        if first + size <= len(entries):
            states.append(state)
    return advance(state, versions, versions[-1].version), states


def read(counters: Counters, reads: int) -> Counters:
    """Return the counters once a skill has been read whole `reads` times."""
    new = reads - counters.reads
    if not new:
        return counters
    return replace(
        counters, times_used=counters.times_used + new, unreported=counters.unreported + new, reads=counters.reads + new
    )


def keep_in_bounds(confidence: float) -> float:
    """Return a confidence limited to [0, 1], without the rounding errors of adding decimal fractions."""
    return round(min(1.0, max(0.0, confidence)), 6)


def _change_steps(state: State, steps: str) -> State:
    return replace(state, steps=steps, other=state.steps) if steps != state.steps else state
