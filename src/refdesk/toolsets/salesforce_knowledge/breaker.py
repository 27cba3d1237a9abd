"""The circuit breaker: stops calling a failing Salesforce for a while, so that callers fail fast and it can recover.

After several failures in a row nothing is sent for some seconds; then one request goes ahead of the others, and its
outcome decides. The pattern is the circuit breaker of Nygard, *Release It!* (2007). An exhausted rate limit also opens
the breaker, for longer, but only up to a limit whatever Salesforce asks for, as an administrator may raise the
allowance at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError

FAILURES = 6
"""Failures in a row that open the breaker: two calls with three tries each."""

REST_SECONDS = 30.0
LIMIT_SECONDS = 60.0
"""How long requests pause at most once the allowance is used up."""


@dataclass(slots=True)
class Breaker:
    """Counts the failures that one process meets. `now` is a monotonic clock in seconds."""

    now: Callable[[], float] = time.monotonic
    _failures: int = 0
    _closed_until: float | None = None
    _limited_until: float | None = None
    _limit: RefusedError | None = None

    def check(self) -> None:
        """Refuse unless a request may be sent now. After a pause, the first to ask goes ahead and the others wait.

        Raises:
            RefusedError: The allowance was used up a moment ago; it carries what Salesforce answered then.
            UnreachableError: Too many requests in a row failed a moment ago.
        """
        now = self.now()
        if self._limited_until is not None and self._limit is not None:
            if now < self._limited_until:
                raise RefusedError(self._limit.status, self._limit.codes, retry_after=self._limited_until - now)
            self._limited_until = now + LIMIT_SECONDS
        if self._closed_until is None:
            return
        if now < self._closed_until:
            raise UnreachableError(
                "it failed repeatedly and is left alone for a while", False, self._closed_until - now
            )
        self._closed_until = now + REST_SECONDS

    def note_answer(self) -> None:
        """Note an answer: even a refusal shows that Salesforce is reachable."""
        self._failures, self._closed_until, self._limited_until, self._limit = 0, None, None, None

    def note_failure(self) -> None:
        """Count a failure; enough of them open the breaker."""
        self._failures += 1
        if self._failures >= FAILURES:
            self._closed_until = self.now() + REST_SECONDS

    def note_limit(self, refusal: RefusedError) -> float:
        """Pause requests because Salesforce said that the allowance is used up; return for how many seconds.

        That is as long as Salesforce asks for, which it rarely says, but at most `LIMIT_SECONDS`.
        """
        seconds = min(LIMIT_SECONDS, LIMIT_SECONDS if refusal.retry_after is None else refusal.retry_after)
        self._failures, self._closed_until = 0, None
        self._limited_until, self._limit = self.now() + seconds, refusal
        return seconds
