"""The policy of every retry, with the loop that runs in production; time is a list of the pauses it asked for."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refdesk.core.retrying import (
    Budget,
    PassingError,
    RetryPolicy,
    is_passing_status,
    parse_retry_after,
    read_retry_after,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class Service:
    """Fails with each of its failures in turn, then answers; its clock moves by the pauses alone."""

    failures: list[BaseException]
    asked: int = 0
    waits: list[float] = field(default_factory=list[float])

    async def ask(self) -> str:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def now(self) -> float:
        return sum(self.waits)


def make_policy(service: Service, attempts: int = 4, seed: int = 1) -> RetryPolicy:
    return RetryPolicy(attempts, 1.0, 5.0, sleep=service.sleep, chance=random.Random(seed), now=service.now)


def fail(times: int, retry_after: float | None = None) -> Service:
    return Service([PassingError(f"failure {number}", retry_after) for number in range(1, times + 1)])


async def test_what_passes_is_asked_again_and_answers() -> None:
    service = fail(3)
    assert await make_policy(service).call(service.ask) == "answer"
    assert service.asked == 4


async def test_the_last_failure_is_raised_when_no_attempt_is_left() -> None:
    service = fail(9)
    with pytest.raises(PassingError, match="failure 4"):
        await make_policy(service).call(service.ask)
    assert service.asked == 4
    assert len(service.waits) == 3


async def test_what_does_not_pass_is_raised_at_once() -> None:
    service = Service([ValueError("no")])
    with pytest.raises(ValueError, match="no"):
        await make_policy(service).call(service.ask)
    assert service.asked == 1


async def test_the_caller_decides_what_passes() -> None:
    service = Service([OSError("gone")])
    assert await make_policy(service).call(service.ask, retries_on=lambda error: isinstance(error, OSError)) == "answer"


async def test_pauses_are_drawn_from_the_whole_of_a_doubling_range_up_to_its_bound() -> None:
    drawn: list[list[float]] = []
    for seed in range(300):
        service = fail(9)
        with pytest.raises(PassingError):
            await make_policy(service, attempts=6, seed=seed).call(service.ask)
        drawn.append(service.waits)
    for bound, waits in zip([1.0, 2.0, 4.0, 5.0, 5.0], zip(*drawn, strict=True), strict=True):
        assert 0.9 * bound < max(waits) <= bound
        assert 0 <= min(waits) < 0.1 * bound
        assert abs(sum(waits) / len(waits) - bound / 2) < 0.1 * bound


async def test_the_same_seed_gives_the_same_pauses() -> None:
    one, other = fail(3), fail(3)
    await make_policy(one).call(one.ask)
    await make_policy(other).call(other.ask)
    assert one.waits == other.waits


async def test_the_pause_a_service_asks_for_is_kept() -> None:
    service = fail(2, retry_after=3.5)
    await make_policy(service).call(service.ask)
    assert service.waits == [3.5, 3.5]


async def test_a_pause_longer_than_the_longest_ends_the_attempts() -> None:
    service = fail(1, retry_after=5.1)
    with pytest.raises(PassingError):
        await make_policy(service).call(service.ask)
    assert (service.asked, service.waits) == (1, [])


async def test_a_policy_may_shorten_the_pause_instead() -> None:
    service = fail(1, retry_after=5.1)
    assert await replace(make_policy(service), shortens_retry_after=True).call(service.ask) == "answer"
    assert service.waits == [5.0]


async def test_no_attempt_begins_after_the_deadline() -> None:
    service = fail(9, retry_after=2.0)
    with pytest.raises(PassingError):
        await make_policy(service, attempts=9).call(service.ask, deadline=5.0)
    assert service.waits == [2.0, 2.0]


async def test_no_pause_outlasts_the_callers_patience() -> None:
    service = fail(1, retry_after=4.0)
    with pytest.raises(PassingError), anyio.fail_after(3.0):
        await make_policy(service).call(service.ask)
    assert service.waits == []


async def test_ways_of_asking_share_a_budget_and_leave_a_reserve() -> None:
    service = fail(9)
    policy, budget = make_policy(service), Budget(4)
    with pytest.raises(PassingError):
        await policy.call(service.ask, budget=budget, reserve=1)
    assert (service.asked, budget.left) == (3, 1)
    with pytest.raises(PassingError):
        await policy.call(service.ask, budget=budget)
    assert (service.asked, budget.left) == (4, 0)


async def test_cancelling_is_never_retried() -> None:
    service = Service([])

    async def hang() -> None:
        service.asked += 1
        await anyio.sleep_forever()

    with anyio.move_on_after(0.01) as scope:
        await make_policy(service).call(hang, retries_on=lambda _: True)
    assert scope.cancelled_caught
    assert service.asked == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_statuses_that_pass(status: int) -> None:
    assert is_passing_status(status)


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 403, 404, 409, 410, 422])
def test_statuses_that_stay(status: int) -> None:
    assert not is_passing_status(status)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("0.25", 0.25),
        (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("²", None),
        ("٣", None),
        ("Sun, 99 Foo 2026 99:99:99 GMT", None),
        ("Wed, 21 Oct 99999999999999 07:28:00 GMT", None),
        ("2026 Oct 07:28 99999999999999999999999", None),
    ],
)
def test_retry_after_is_read_from_seconds_and_from_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize("date", [None, "", "yesterday", "Wed, 99 Foo 2026 99:99:99 GMT"])
def test_a_date_to_wait_for_counts_from_the_services_clock_if_the_answer_says_what_that_is(date: str | None) -> None:
    headers = {"Retry-After": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}
    fast = {**headers, "Date": format_datetime(NOW + timedelta(seconds=10), usegmt=True)}
    assert read_retry_after(fast, NOW + timedelta(days=1)) == 20
    assert read_retry_after(headers | ({} if date is None else {"Date": date}), NOW) == 30


PARTS = st.sampled_from(
    ["Wed,", "21", "Oct", "2026", "9" * 14, "9" * 30, "-1", "07:28:00", "7.28", "GMT", "+9999", "AM"]
)


@given(st.one_of(st.text(max_size=40), st.lists(PARTS, max_size=8).map(" ".join)))
@example("Wed, 21 Oct 99999999999999 07:28:00 GMT")
def test_no_retry_after_breaks_who_reads_it(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or seconds >= 0


def test_the_library_is_not_imported_before_something_is_asked() -> None:
    script = (
        "import sys, refdesk.toolsets.azure_updates.source, refdesk.toolsets.salesforce_knowledge.client, "
        "refdesk.embedders.hosted.client, refdesk.language_models.hosted.openai; print('tenacity' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"
