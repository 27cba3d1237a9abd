"""Reads from an update what tells what it changes."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, cast

from refdesk.impact.changes import Announcement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.model import Document

_RINGS = ("Retirement", "Effective")
"""The rings whose month says when a change takes effect."""


def to_announcement(document: Document) -> Announcement:
    """Return an update of the feed as an announcement."""
    availabilities = cast("Sequence[Mapping[str, str | None]]", document.data["availabilities"])
    due = [each["date"] for each in availabilities if each["ring"] in _RINGS and each["date"]]
    return Announcement(
        id=document.id,
        title=document.title,
        text=str(document.data["description"]),
        products=document.facets.get("products", ()),
        due=tuple(date.fromisoformat(day) for day in due),
    )
