"""The counters of a skill as a record of the store, apart from its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, cast

from refdesk.toolsets.skills.outcomes import Tally
from refdesk.toolsets.skills.records import Counters

if TYPE_CHECKING:
    from refdesk.model import JsonValue, Metadata
    from refdesk.toolsets.skills.records import Skill


NAMES = tuple(each.name for each in fields(Counters))
"""The names of the counters, which are the same in `Counters` and `Skill`."""


def get_counters(skill: Skill) -> Counters:
    """Return the counters of a skill."""
    return Counters(**{name: getattr(skill, name) for name in NAMES})


def to_value(counters: Counters) -> dict[str, JsonValue]:
    """Return counters as the value of a record."""
    return {
        "confidence": counters.confidence,
        "times_used": counters.times_used,
        "times_confirmed": counters.times_confirmed,
        "tallies": {steps: [tally.good, tally.bad] for steps, tally in counters.tallies.items()},
        "weeks": {week: [tally.good, tally.bad] for week, tally in counters.weeks.items()},
        "rejected": list(counters.rejected),
        "unreported": counters.unreported,
        "reads": counters.reads,
    }


def to_counters(record: Metadata | None) -> Counters:
    """Return the counters of a record; without one, those of a skill that nobody has used."""
    return from_value(record.value) if record is not None else Counters()


def from_value(value: Mapping[str, JsonValue]) -> Counters:
    """Return the counters that the value of a record holds."""
    return Counters(
        confidence=float(str(value["confidence"])),
        times_used=int(str(value["times_used"])),
        times_confirmed=int(str(value["times_confirmed"])),
        tallies=_to_tallies(value.get("tallies")),
        weeks=_to_tallies(value.get("weeks")),
        rejected=tuple(cast("Sequence[str]", value.get("rejected", ()))),
        unreported=int(str(value.get("unreported", 0))),
        reads=int(str(value.get("reads", 0))),
    )


def _to_tallies(value: JsonValue) -> dict[str, Tally]:
    known = cast("Mapping[str, Sequence[float]]", value or {})
    return {name: Tally(good, bad) for name, (good, bad) in known.items()}
