"""Questions that just had no answer, until they are grouped: held in memory, so that no search has to wait."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from refdesk.core.doorbell import Doorbell

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import Principal

MOST_WAITING = 1000
"""If there are more, the oldest are dropped, and their number is reported."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many gaps of an org are kept, and for how long."""

    kept: timedelta = timedelta(days=90)
    most: int = 500


@dataclass(frozen=True, slots=True)
class Missed:
    """A question whose answer contained no strong match.

    Attributes:
        principal: Who asked.
        text: The question as it was asked, not masked yet.
        toolsets: The toolsets that were asked.
        at: When it was asked last.
        count: How often it was asked while it has been waiting.
    """

    principal: Principal
    text: str
    toolsets: tuple[str, ...]
    at: datetime
    count: int = 1

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for askings that are counted as one question."""
        return self.principal, self.text, self.toolsets


@dataclass(slots=True)
class Waiting:
    """Questions that wait to be grouped, and how many of each org were dropped since they were last counted."""

    most: int = MOST_WAITING
    doorbell: Doorbell = field(default_factory=Doorbell)
    dropped: Counter[str] = field(default_factory=Counter[str])
    _missed: OrderedDict[tuple[object, ...], Missed] = field(default_factory=OrderedDict["tuple[object, ...]", Missed])

    def __len__(self) -> int:
        """Return how many questions wait."""
        return len(self._missed)

    def note(self, missed: Missed) -> None:
        """Take note of a question; it neither waits nor raises."""
        before = self._missed.get(missed.key)
        if before is not None:
            self._missed[missed.key] = replace(missed, count=before.count + missed.count)
            return
        if len(self._missed) == self.most:
            self.drop(self._missed.popitem(last=False)[1])
        self._missed[missed.key] = missed
        self.doorbell.ring()

    def drop(self, missed: Missed) -> None:
        """Count a question that cannot be kept."""
        self.dropped[missed.principal.org] += missed.count

    def take(self, most: int) -> list[Missed]:
        """Remove and return at most this many of them, oldest first."""
        return [self._missed.popitem(last=False)[1] for _ in range(min(most, len(self._missed)))]
