"""What of an announcement tells what it changes."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, cast

from refdesk.impact.changes import Announcement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.model import Document

_RINGS = ("Retirement", "Effective")
"""The rings whose month is from when a change holds."""


def to_announcement(document: Document) -> Announcement:
    """Return what is read of an update of the feed."""
    availabilities = cast("Sequence[Mapping[str, str | None]]", document.data["availabilities"])
    due = [each["date"] for each in availabilities if each["ring"] in _RINGS and each["date"]]
    return Announcement(
        id=document.id,
        title=document.title,
        text=str(document.data["description"]),
        products=document.facets.get("products", ()),
        due=tuple(date.fromisoformat(day) for day in due),
    )
