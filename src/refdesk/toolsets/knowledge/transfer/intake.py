"""Collects what an import file holds: entries, each once and with its location, and whatever was rejected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refdesk.toolsets.knowledge.transfer.entries import find_differences
from refdesk.toolsets.knowledge.transfer.reports import ImportFormat, Tally

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.toolsets.knowledge.transfer.entries import Entry


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An entry and its location in the file."""

    place: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, numbered from 1, without its line feed; `data` is cut if it was longer than the limit."""

    number: int
    data: bytes
    is_cut: bool = False

    @property
    def place(self) -> str:
        """Its location, for people to read."""
        return f"line {self.number}"


@dataclass(frozen=True, slots=True)
class NamedText:
    """A file of a folder.

    Attributes:
        path: Its path within the folder, with slashes.
        data: Its content, cut if it was longer than the limit.
        written_at: When it was last written, if the system knows.
    """

    path: str
    data: bytes
    written_at: datetime | None
    is_cut: bool = False


@dataclass(slots=True)
class Intake:
    """Everything that was read from an import's source.

    Attributes:
        author: The author of entries whose source names none.
        now: The date of entries whose source has none.
    """

    format: ImportFormat
    author: str
    now: datetime
    tally: Tally = field(default_factory=Tally)
    _entries: dict[str, PlacedEntry] = field(default_factory=dict[str, PlacedEntry])

    @property
    def entries(self) -> list[PlacedEntry]:
        """The entries, in the order they were read."""
        return list(self._entries.values())

    def add(self, entry: Entry, place: str) -> bool:
        """Take an entry in unless one with its id was taken already; return whether it was taken."""
        first = self._entries.setdefault(entry.id, PlacedEntry(place, entry))
        if first.place == place:
            return True
        if find_differences(entry, first.entry) or entry.links != first.entry.links:
            self.tally.note("conflict", place, f"has the id of {first.place} and says something else.")
        else:
            self.tally.note("left_out", place, f"repeats {first.place}.")
        return False

    def refuse(self, place: str, reason: str) -> None:
        """Note a record that is not a valid entry; `reason` is a clause without a full stop."""
        self.tally.note("invalid", place, f"{reason}.")

    def leave_out(self, place: str, reason: str) -> None:
        """Note a part that has no place in an entry; `reason` is a clause without a full stop."""
        self.tally.note("left_out", place, f"{reason}.")
