"""The circuit breaker: stops calling a failing Salesforce for a while, so that callers fail fast and it can recover.

After several failures in a row nothing is sent for some seconds; then one request goes ahead of the others, and its
outcome decides. The pattern is the circuit breaker of Nygard, *Release It!* (2007). An exhausted rate limit opens the
breaker, too, for longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError

FAILURES = 6
"""In a row: two calls with three tries each."""

REST_SECONDS = 30.0
LIMIT_SECONDS = 60.0
"""How long nothing is asked once the allowance is used up; it is counted over 24 hours."""


@dataclass(slots=True)
class Breaker:
    """Counts what one process meets. `now` is a monotonic clock in seconds."""

    now: Callable[[], float] = time.monotonic
    _failures: int = 0
    _closed_until: float | None = None
    _limited_until: float | None = None

    def check(self) -> None:
        """Return when a request may be sent. Once a rest is over, the first to ask goes ahead and the others wait.

        Raises:
            RefusedError: The allowance was used up a moment ago.
            UnreachableError: Too much failed in a row a moment ago.
        """
        now = self.now()
        if self._limited_until is not None and now < self._limited_until:
            raise RefusedError(403, ("REQUEST_LIMIT_EXCEEDED",), retry_after=self._limited_until - now)
        if self._closed_until is None:
            return
        if now < self._closed_until:
            raise UnreachableError(
                "it failed repeatedly and is left alone for a while", False, self._closed_until - now
            )
        self._closed_until = now + REST_SECONDS

    def note_answer(self) -> None:
        """Any answer, a refusal too, shows that Salesforce is there."""
        self._failures, self._closed_until, self._limited_until = 0, None, None

    def note_failure(self) -> None:
        """Count a failure; enough of them close the way."""
        self._failures += 1
        if self._failures >= FAILURES:
            self._closed_until = self.now() + REST_SECONDS

    def note_limit(self, asked: float | None) -> float:
        """Ask nothing for a while, because the allowance is used up; return for how many seconds.

        Args:
            asked: What Salesforce asks for; it seldom says.
        """
        seconds = LIMIT_SECONDS if asked is None else asked
        self._failures, self._closed_until = 0, None
        self._limited_until = self.now() + seconds
        return seconds
