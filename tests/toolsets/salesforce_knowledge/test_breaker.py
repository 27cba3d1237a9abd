from __future__ import annotations

from dataclasses import dataclass

import pytest

from refdesk.toolsets.salesforce_knowledge.breaker import FAILURES, LIMIT_SECONDS, REST_SECONDS, Breaker
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError

USED_UP = RefusedError(403, ("REQUEST_LIMIT_EXCEEDED",))


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.check()
        breaker.note_failure()


def test_failures_in_a_row_close_the_way_and_an_answer_between_them_does_not() -> None:
    breaker = Breaker(Clock())
    fail(breaker, FAILURES - 1)
    breaker.note_answer()
    fail(breaker, FAILURES - 1)
    breaker.check()
    breaker.note_failure()
    with pytest.raises(UnreachableError, match="left alone") as caught:
        breaker.check()
    assert caught.value.retry_after == REST_SECONDS


def test_after_the_rest_one_goes_ahead_and_its_answer_opens_the_way() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, FAILURES)
    clock.seconds += REST_SECONDS
    breaker.check()
    with pytest.raises(UnreachableError):
        breaker.check()
    breaker.note_answer()
    breaker.check()


def test_after_the_rest_one_failure_closes_the_way_again() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, FAILURES)
    clock.seconds += REST_SECONDS
    fail(breaker, 1)
    clock.seconds += REST_SECONDS - 1
    with pytest.raises(UnreachableError):
        breaker.check()


def test_a_used_up_allowance_closes_the_way_for_its_own_time() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    breaker.note_limit(USED_UP)
    with pytest.raises(RefusedError) as caught:
        breaker.check()
    assert caught.value.is_limit
    assert caught.value.retry_after == LIMIT_SECONDS
    clock.seconds += LIMIT_SECONDS
    breaker.check()
    breaker.note_limit(RefusedError(429, retry_after=5))
    clock.seconds += 5
    breaker.check()


def test_however_long_salesforce_asks_to_wait_one_goes_ahead_after_a_minute_and_its_outcome_decides() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert breaker.note_limit(RefusedError(429, retry_after=86_400)) == LIMIT_SECONDS
    clock.seconds += LIMIT_SECONDS
    breaker.check()
    with pytest.raises(RefusedError):
        breaker.check()
    breaker.note_limit(USED_UP)
    with pytest.raises(RefusedError):
        breaker.check()
    clock.seconds += LIMIT_SECONDS
    breaker.check()
    breaker.note_answer()
    breaker.check()
    breaker.check()


def test_whoever_is_held_back_is_told_what_salesforce_answered() -> None:
    breaker = Breaker(Clock())
    breaker.note_limit(RefusedError(429, ("TOO_MANY_REQUESTS",), retry_after=600))
    with pytest.raises(RefusedError) as caught:
        breaker.check()
    assert (caught.value.status, caught.value.codes) == (429, ("TOO_MANY_REQUESTS",))
