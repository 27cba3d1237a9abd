"""How a version of a skill came to be, told from how its changes begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from refdesk.toolsets.skills import outcomes

if TYPE_CHECKING:
    from refdesk.toolsets.skills.records import Skill

VersionKind: TypeAlias = Literal[
    "created", "imported", "refined", "rolled back", "restored", "edited", "reimported", "merged", "unmerged", "split"
]

MERGED, UNMERGED, SPLIT = "Merged with", "Merge undone", "Split"

_KINDS: dict[str, VersionKind] = {
    "Created": "created",
    "Imported again": "reimported",
    "Imported": "imported",
    "Edited": "edited",
    MERGED: "merged",
    UNMERGED: "unmerged",
    SPLIT: "split",
    outcomes.RETURNED: "rolled back",
    outcomes.RESTORED: "restored",
}


def find_kind(skill: Skill) -> VersionKind:
    """Return how a version came to be: `refined` unless its changes begin like those of another kind."""
    first = skill.changes[0] if skill.changes else ""
    for begin, kind in _KINDS.items():
        if first.startswith(begin):
            return kind
    return "refined"
