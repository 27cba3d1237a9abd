"""The invented announcements: the state of one day, and what the next day changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, cast

Record: TypeAlias = dict[str, object]

FOLDER = Path(__file__).resolve().parent / "data"

ChangeKind = Literal["revised", "silently_retagged", "silently_edited", "vanished", "published", "repaired"]


class Change(TypedDict):
    """One thing that happened between two days.

    `set` holds whole new values of fields (for `published`, the whole record); it is empty for `vanished`. A
    `silently_…` change leaves `modified` as it was, which is what makes a watermark miss it.
    """

    kind: ChangeKind
    id: str
    set: Record


def load_world(day: int = 1) -> list[Record]:
    """Return every announcement that stood in the feed on `day`, 1 or 2, in the wire format, in the order of the file.

    Each call builds new records, so a caller may change them.

    Raises:
        ValueError: there is no such day.
    """
    if day not in (1, 2):
        raise ValueError(f"The sample world has days 1 and 2, not {day}.")
    records = cast("list[Record]", json.loads((FOLDER / "updates.json").read_text(encoding="utf-8")))
    return records if day == 1 else apply_changes(records, load_changes())


def load_roadmap() -> list[Record]:
    """Return every item of the invented Microsoft 365 roadmap, in the wire format, where ids are numbers."""
    return cast("list[Record]", json.loads((FOLDER / "roadmap.json").read_text(encoding="utf-8")))


def load_changes() -> list[Change]:
    """Return what happened between day 1 and day 2, in the order in which it happened."""
    return cast("list[Change]", json.loads((FOLDER / "day_2.json").read_text(encoding="utf-8")))


def apply_changes(records: Sequence[Record], changes: Sequence[Change]) -> list[Record]:
    """Return the records after `changes`; new ones come last. The given records stay as they are.

    Raises:
        ValueError: a change names an id that is absent, or publishes one that is present.
    """
    after = {cast("str", record["id"]): record for record in records}
    for change in changes:
        _apply(after, change)
    return list(after.values())


def _apply(records: dict[str, Record], change: Change) -> None:
    id = change["id"]
    if (id in records) == (change["kind"] == "published"):
        raise ValueError(f"The change {change['kind']} does not fit the record {id}.")
    if change["kind"] == "vanished":
        del records[id]
    else:
        records[id] = _merge(records.get(id, {}), change["set"])


def _merge(record: Mapping[str, object], fields: Mapping[str, object]) -> Record:
    return {**record, **fields}
