"""Clocks: the current time is injected, so that tests control it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return datetime.now(UTC)


class FixedClock:
    """A clock that only moves when it is set."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """See `Clock.now`."""
        return self._now

    def advance(self, by: timedelta) -> None:
        """Move the clock, forwards or backwards."""
        self._now += by
