"""Counts recent attempts by source: keys that were refused, returns from an issuer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=1)

MOST_SOURCES = 10_000


@dataclass(slots=True)
class Attempts:
    """Counts attempts of one kind that this process sees, by source; the caller decides how many are too many.

    Beyond `MOST_SOURCES`, the sources that were counted longest ago are forgotten.
    """

    _counts: dict[str, tuple[datetime, int]] = field(default_factory=dict[str, tuple[datetime, int]])

    def count(self, source: str, now: datetime) -> int:
        """Count one more attempt and return how many there were in the `WINDOW` that began with the first one."""
        since, count = self._counts.pop(source, (now, 0))
        since, count = (since, count + 1) if now - since < WINDOW else (now, 1)
        while len(self._counts) >= MOST_SOURCES:
            del self._counts[next(iter(self._counts))]
        self._counts[source] = since, count
        return count
