"""How old a copy of a source is, and how to say so."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.background.sync_log import SyncStatus

STALE_HOURS = 48.0
"""The age from which a copy is reported as old, unless the caller knows better."""


CLOCKS_DIFFER = timedelta(minutes=5)
"""How far the clocks of two servers may be apart."""


def get_age_hours(instant: datetime, now: datetime) -> float | None:
    """Return the hours from `instant` to `now`, at least 0, to one decimal place; `None` where `instant` is to come.

    A clock was set back then, and how much time has passed is not known.
    """
    if instant - now > CLOCKS_DIFFER:
        return None
    return round(max(0.0, (now - instant).total_seconds()) / 3600, 1)


def describe_copy(status: SyncStatus, now: datetime, *, things: str, stale_hours: float = STALE_HOURS) -> list[str]:
    """Return what is wrong with a copy of a source, if anything: its age, or that it keeps what is gone from the
    source.

    Args:
        status: The status of its syncs.
        now: The present.
        things: What the source has, in the plural.
        stale_hours: The age from which it is reported.
    """
    return [
        *describe_age(status.last_success, now, things=things, stale_hours=stale_hours),
        *describe_withheld(status, things),
    ]


def describe_withheld(status: SyncStatus, things: str) -> list[str]:
    """Return a sentence if things gone from a source were kept: they were suspiciously many, or the source returned
    fewer than it says it holds."""
    if not status.withheld:
        return []
    reason = (
        f"it says that it holds {status.missing} more than it gave"
        if status.missing
        else "so many at once are more likely its mistake"
    )
    return [
        f"{status.withheld} {things} are gone from the source and kept here: {reason}. "
        "Whoever runs the server can look, and let them go by a sync with --force."
    ]


def describe_age(
    last_success: datetime | None, now: datetime, *, things: str, stale_hours: float = STALE_HOURS
) -> list[str]:
    """Return what is wrong with a copy, if anything: never synced, longer ago than `stale_hours`, or at a time to come.

    Args:
        last_success: When the last successful sync ended.
        now: The present.
        stale_hours: The age from which it is reported.
        things: What may be missing, in the plural.
    """
    if last_success is None:
        return [f"No sync has succeeded yet, so {things} may be missing. Whoever runs the server can sync now."]
    if last_success - now > CLOCKS_DIFFER:
        return [
            f"The last successful sync is dated later than now, so how old the {things} are is not known. "
            "Whoever runs the server can check its clock and sync now."
        ]
    age = now - last_success
    if age <= timedelta(hours=stale_hours):
        return []
    hours, minutes = round(age / timedelta(hours=1)), round(age / timedelta(minutes=1))
    said = say_count(hours, "hour") if minutes >= 60 else say_count(minutes, "minute")
    return [f"The last successful sync was {said} ago: newer {things} are missing."]
