"""Retries: bounded exponential backoff with full jitter, for everything that asks a service over the network.

The loop is tenacity's. This module decides the policy: how many attempts, how long between them, what a service may
ask for by `Retry-After`, and when to stop because the caller would no longer be waiting for the answer.

Source: Full jitter is M. Brooker, *Exponential Backoff and Jitter*, AWS Architecture Blog, 2015; `Retry-After` is
RFC 9110, section 10.2.3.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from tenacity import RetryCallState

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

PASSING_STATUS = frozenset({408, 425, 429})


class PassingError(Exception):
    """An attempt failed for a reason that may pass.

    Attributes:
        reason: For the log; never a secret.
        retry_after: Seconds the service asks to wait; `None` where it does not say.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(slots=True)
class Budget:
    """How many attempts are left. Several ways of asking for the same thing may share one budget."""

    left: int

    def spend(self) -> None:
        """Count one attempt."""
        self.left -= 1


def is_passing(error: Exception) -> bool:
    """Return whether an attempt failed with `PassingError`."""
    return isinstance(error, PassingError)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often something is attempted, and how long the pauses are.

    Attributes:
        attempts: Most attempts, including the first; at least 1.
        first_wait: Upper bound of the first pause in seconds. It doubles with each attempt; the pause is drawn
            uniformly from 0 up to the bound.
        max_wait: The longest pause in seconds.
        shortens_retry_after: Whether a pause that a service asks for is shortened to `max_wait` if it is longer;
            otherwise the attempts end, since no caller waits that long.
        sleep: Waits for a number of seconds.
        chance: Where the jitter comes from.
        now: A monotonic clock in seconds; the deadlines given to `call` refer to it.
    """

    attempts: int
    first_wait: float
    max_wait: float
    shortens_retry_after: bool = False
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: random.Random = field(default_factory=random.Random)
    now: Callable[[], float] = time.monotonic

    async def call(
        self,
        attempt: Callable[[], Awaitable[Answer]],
        *,
        retries_on: Callable[[Exception], bool] = is_passing,
        deadline: float | None = None,
        budget: Budget | None = None,
        reserve: int = 0,
    ) -> Answer:
        """Return the result of the first attempt that succeeds.

        Args:
            attempt: Asks once. The exceptions it raises may have a `retry_after`, as `PassingError` does.
            retries_on: Whether another attempt is worthwhile after this exception.
            deadline: There is no further attempt if it would begin after this instant of `now`, or after the
                deadline of the enclosing cancel scope.
            budget: Shared with other calls; by default this call has `attempts` of its own.
            reserve: How many attempts of the budget this call leaves to others.

        Raises:
            Exception: What the last attempt raised.
        """
        # Imported late: most processes never ask a service, and the library should not slow down their start.
        from tenacity import AsyncRetrying, retry_if_exception

        budget = budget or Budget(self.attempts)

        async def attempt_once() -> Answer:
            budget.spend()
            return await attempt()

        def should_stop(state: RetryCallState) -> bool:
            return budget.left <= reserve or self._is_too_long(state, deadline)

        retrying = AsyncRetrying(
            sleep=self.sleep,
            wait=lambda state: self._choose_wait(self.attempts - budget.left, _get_retry_after(state)),
            stop=should_stop,
            retry=retry_if_exception(lambda error: isinstance(error, Exception) and retries_on(error)),
            before_sleep=_log,
            reraise=True,
        )
        return await retrying(attempt_once)

    def _choose_wait(self, attempts: int, asked: float | None) -> float:
        """Return the pause after this many attempts: what the service asks for, or else the backoff."""
        if asked is not None:
            return min(asked, self.max_wait) if self.shortens_retry_after else asked
        return self.chance.uniform(0.0, min(self.max_wait, self.first_wait * 2.0 ** max(0, attempts - 1)))

    def _is_too_long(self, state: RetryCallState, deadline: float | None) -> bool:
        """Return whether the next pause is longer than `max_wait`, or would end after a deadline."""
        wait = state.upcoming_sleep
        is_late = anyio.current_time() + wait >= anyio.current_effective_deadline()
        return is_late or wait > self.max_wait or (deadline is not None and self.now() + wait > deadline)


def is_passing_status(status: int) -> bool:
    """Return whether an HTTP status says that the same request may succeed later."""
    return status in PASSING_STATUS or status >= 500


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks to wait, 0 or more; `None` when it asks for nothing usable.

    Args:
        value: Seconds, with or without a fraction, or an HTTP date.
        now: What a date counts from; by default the machine's clock.
    """
    text = (value or "").strip()
    try:
        seconds = float(text) if text.isascii() else math.nan
    except ValueError:
        return _parse_date(text, now or datetime.now(UTC))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def read_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that the headers of an answer ask to wait; see `parse_retry_after`.

    A date counts from that of the answer, since the service's clock need not agree with this machine's.
    """
    return parse_retry_after(headers.get("Retry-After"), _read_instant(headers.get("Date", "")) or now)


def _parse_date(text: str, now: datetime) -> float | None:
    then = _read_instant(text)
    return None if then is None else max(0.0, (then - now).total_seconds())


def _read_instant(text: str) -> datetime | None:
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return then if then.tzinfo else then.replace(tzinfo=UTC)


def _get_retry_after(state: RetryCallState) -> float | None:
    asked = getattr(_get_error(state), "retry_after", None)
    return asked if isinstance(asked, int | float) else None


def _get_error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _log(state: RetryCallState) -> None:
    facts = {
        "reason": str(_get_error(state)),
        "attempt": state.attempt_number,
        "seconds": round(state.upcoming_sleep, 3),
    }
    logger.info("asking again", extra=facts)
