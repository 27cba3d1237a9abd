"""Validates the links of an import: no cycles, no dangling links; heads are ordered first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from refdesk.toolsets.knowledge.transfer.entries import list_linked_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.intake import Intake, PlacedEntry


def list_outer_ids(entries: Sequence[PlacedEntry]) -> list[str]:
    """Return the ids of entries that these point to but that are not among them, each once."""
    own = {placed.entry.id for placed in entries}
    pointed = (id for placed in entries for id in _list_targets(placed.entry))
    return [id for id in dict.fromkeys(pointed) if id not in own]


def keep_sound(intake: Intake, stored: Iterable[str]) -> list[PlacedEntry]:
    """Return the entries whose edges are valid, heads before what they superseded, otherwise in the order read.

    Dropped entries are noted: the members of a cycle, and any that point to an entry neither kept nor stored.

    Args:
        stored: Ids of entries that the store holds.
    """
    entries = {placed.entry.id: placed for placed in intake.entries}
    known = frozenset(stored)
    reasons = dict.fromkeys(_list_circular(entries, known), "closes a circle of supersessions")
    _spread(entries, known, reasons)
    for id, reason in reasons.items():
        intake.refuse(entries[id].place, reason)
    sound = [placed for id, placed in entries.items() if id not in reasons]
    return _sort_heads_first(sound, known)


def _list_targets(entry: Entry) -> list[str]:
    successor = [entry.superseded_by] if entry.superseded_by is not None else []
    return [*successor, *(list_linked_entries(entry) if entry.needs_links else ())]


def _list_circular(entries: Mapping[str, PlacedEntry], known: frozenset[str]) -> list[str]:
    """Return the ids on cycles. The store's edges count for stored entries, so only new ones can close a cycle."""
    done, circular = set[str](), list[str]()
    for start in entries:
        path: dict[str, None] = {}
        id: str | None = start
        while id is not None and id in entries and id not in known and id not in done and id not in path:
            path[id] = None
            id = entries[id].entry.superseded_by
        if id is not None and id in path:
            walked = list(path)
            circular += walked[walked.index(id) :]
        done.update(path)
    return circular


def _spread(entries: Mapping[str, PlacedEntry], known: frozenset[str], reasons: dict[str, str]) -> None:
    """Add to the reasons every entry that points to nothing, then the entries that point to it, and so on."""
    pointing: defaultdict[str, list[str]] = defaultdict(list)
    for id, placed in entries.items():
        for target in _list_targets(placed.entry):
            pointing[target].append(id)
    lost = [target for target in pointing if target not in known and (target not in entries or target in reasons)]
    while lost:
        target = lost.pop()
        for id in pointing.get(target, ()):
            if id in reasons:
                continue
            reasons[id] = f"points to the entry {target}, which is neither stored nor importable"
            if id not in known:
                lost.append(id)


def _sort_heads_first(placed: Sequence[PlacedEntry], known: frozenset[str]) -> list[PlacedEntry]:
    """Return the entries sorted by how many new ones must land before each; stored entries wait for none."""
    successors = {each.entry.id: each.entry.superseded_by for each in placed if each.entry.id not in known}
    depths: dict[str, int] = {}
    for id in successors:
        path: list[str] = []
        at: str | None = id
        while at is not None and at in successors and at not in depths:
            path.append(at)
            at = successors[at]
        depth = depths.get(at, -1) if at is not None else -1
        for member in reversed(path):
            depth += 1
            depths[member] = depth
    return sorted(placed, key=lambda each: depths.get(each.entry.id, 0))
