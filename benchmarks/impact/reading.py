"""Reads the labelled pairs beside it, and the announcements from the folder of real records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from refdesk.impact.changes import Announcement
from refdesk.toolsets.azure_updates.impact import to_announcement
from refdesk.toolsets.azure_updates.records import to_document

FOLDER = Path(__file__).parent
_ARCHIVE = Path("azure-updates", "archive.json")


@dataclass(frozen=True, slots=True)
class Labelled:
    """Two texts, and whether the one bears on the other.

    Attributes:
        one: A note; of an impact the id of the announcement.
        kind: Of the pair, as labelled; of an impact the announcement again.
    """

    one: str
    other: str
    holds: bool
    kind: str


def read_impacts(part: str) -> list[Labelled]:
    """Return the pairs of announcement and note of a part, `dev` or `test`."""
    found, announcement = list[Labelled](), ""
    for line in _read_lines(f"impacts_{part}.txt"):
        if line.startswith("@ "):
            announcement = line[2:]
        else:
            found.append(Labelled(announcement, line[2:], line[0] == "+", announcement))
    return found


def read_contradictions(part: str) -> list[Labelled]:
    """Return the pairs of notes of a part, `dev` or `test`."""
    found: list[Labelled] = []
    for line in _read_lines(f"contradictions_{part}.txt"):
        kind, one, other = (field.strip() for field in line[2:].split(" | "))
        found.append(Labelled(one, other, line[0] == "+", kind))
    return found


def read_announcements(data: Path, ids: Iterable[str]) -> Mapping[str, Announcement]:
    """Return the announcements of these ids from the folder of real records."""
    wanted = set(ids)
    return {id: each for id, each in read_all_announcements(data).items() if id in wanted}


def has_announcements(data: Path) -> bool:
    """Return whether the folder of real records has announcements."""
    return (data / _ARCHIVE).exists()


def read_all_announcements(data: Path) -> Mapping[str, Announcement]:
    """Return every announcement of the folder of real records, by its id."""
    records = json.loads((data / _ARCHIVE).read_text())["items"]
    return {record["id"]: to_announcement(to_document(record)) for record in records}


def _read_lines(name: str) -> list[str]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
