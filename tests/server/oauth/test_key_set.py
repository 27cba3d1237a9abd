"""How long an issuer's keys are kept, how often it is asked, and what happens while it is away."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import pytest

from refdesk import errors
from refdesk.core.clock import FixedClock
from refdesk.server.oauth.issuer import Published
from refdesk.server.oauth.key_set import (
    AFTER_FAILURE,
    ASK_AGAIN,
    KEPT,
    LEAST_KEPT,
    MOST_KEPT,
    MOST_LOOKS,
    STALE,
    KeySet,
)
from tests.core.fakes import NOW
from tests.emulators.signing import Key, make_key
from tests.server.oauth.samples import ISSUER, publish

SECOND = timedelta(seconds=1)


@dataclass
class Answering:
    """An issuer that answers when it is let, and counts how often it was asked."""

    keys: list[Key]
    max_age: timedelta | None = None
    is_away: bool = False
    asked: int = 0
    at_once: int = 0
    most_at_once: int = 0
    gate: anyio.Event = field(default_factory=anyio.Event)

    async def fetch(self) -> Published:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
        finally:
            self.at_once -= 1
        if self.is_away:
            raise errors.WorldError("It does not answer.")
        return publish(*self.keys, max_age=self.max_age)


def make(*ids: str) -> tuple[Answering, FixedClock, KeySet]:
    issuer, clock = Answering([make_key(id, "ES256") for id in ids]), FixedClock(NOW)
    issuer.gate.set()
    return issuer, clock, KeySet(ISSUER, issuer.fetch, clock)


async def has(keys: KeySet, id: str) -> bool:
    return await keys.find(id, "ES256") is not None


async def test_the_issuer_is_asked_when_a_key_is_first_needed_and_then_not_again() -> None:
    issuer, clock, keys = make("a", "b")
    assert issuer.asked == 0
    assert await has(keys, "a")
    clock.advance(KEPT - SECOND)
    assert await has(keys, "b")
    assert issuer.asked == 1
    clock.advance(SECOND)
    assert await has(keys, "a")
    assert issuer.asked == 2


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (timedelta(), LEAST_KEPT),
        (timedelta(minutes=20), timedelta(minutes=20)),
        (timedelta(days=365), MOST_KEPT),
        (None, KEPT),
    ],
)
async def test_an_issuer_says_how_long_its_keys_are_kept_within_bounds(said: timedelta | None, kept: timedelta) -> None:
    issuer, clock, keys = make("a")
    issuer.max_age = said
    await has(keys, "a")
    clock.advance(kept - SECOND)
    await has(keys, "a")
    assert issuer.asked == 1
    clock.advance(SECOND)
    await has(keys, "a")
    assert issuer.asked == 2


async def test_a_new_key_is_found_and_one_that_was_taken_back_is_refused_once_the_rest_are_read_again() -> None:
    issuer, clock, keys = make("old")
    await has(keys, "old")
    issuer.keys = [make_key("new", "ES256")]
    clock.advance(ASK_AGAIN)
    assert await has(keys, "new")
    assert not await has(keys, "old")


async def test_unknown_ids_do_not_make_the_server_ask_more_often_than_once_a_pause() -> None:
    issuer, clock, keys = make("a")
    for n in range(50):
        assert not await has(keys, f"random-{n}")
    assert issuer.asked == 1 + MOST_LOOKS
    for _ in range(3):
        clock.advance(ASK_AGAIN)
        for n in range(50):
            assert not await has(keys, f"random-{n}")
    assert issuer.asked == 1 + 4 * MOST_LOOKS
    assert await has(keys, "a")


async def test_one_unknown_id_that_is_sent_again_and_again_does_not_keep_a_new_key_from_being_found() -> None:
    issuer, _, keys = make("old")
    for _ in range(50):
        assert not await has(keys, "of-another-issuer")
    issuer.keys.append(make_key("new", "ES256"))
    assert not await has(keys, "of-another-issuer")
    assert await has(keys, "new")
    assert issuer.asked == 3


async def test_the_key_of_a_token_that_the_issuer_gives_itself_is_looked_for_whatever_was_sent_before() -> None:
    issuer, _, keys = make("old")
    for n in range(50):
        assert not await has(keys, f"random-{n}")
    issuer.keys = [make_key("new", "ES256")]
    assert not await has(keys, "new")
    assert await keys.find("new", "ES256", is_issued_now=True) is not None


async def test_those_who_need_the_same_new_key_at_once_all_get_it() -> None:
    issuer, _, keys = make("old")
    await has(keys, "old")
    issuer.keys.append(make_key("new", "ES256"))
    issuer.gate = anyio.Event()
    found: list[bool] = []

    async def ask() -> None:
        found.append(await has(keys, "new"))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        issuer.gate.set()
    assert found == [True] * 20
    assert issuer.asked == 2


async def test_the_pause_after_an_issuer_that_did_not_answer_begins_when_it_is_given_up() -> None:
    issuer, clock, keys = make("a")
    issuer.is_away, issuer.gate = True, anyio.Event()

    async def give_up() -> None:
        await anyio.wait_all_tasks_blocked()
        clock.advance(AFTER_FAILURE)
        issuer.gate.set()

    async with anyio.create_task_group() as group:
        group.start_soon(give_up)
        for _ in range(3):
            with pytest.raises(errors.WorldError):
                await has(keys, "a")
    assert issuer.asked == 1


async def test_many_who_need_a_key_at_once_make_the_server_ask_once() -> None:
    issuer, _, keys = make("a")
    issuer.gate = anyio.Event()
    found: list[bool] = []

    async def ask(id: str) -> None:
        found.append(await has(keys, id))

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(ask, "a" if n % 2 else "unknown")
        await anyio.wait_all_tasks_blocked()
        issuer.gate.set()
    assert sorted(found) == [False] * 10 + [True] * 10
    assert (issuer.asked, issuer.most_at_once) == (1, 1)


async def test_nobody_waits_for_an_issuer_whose_keys_are_known_but_the_one_who_asks_it() -> None:
    issuer, clock, keys = make("a")
    await has(keys, "a")
    clock.advance(KEPT)
    issuer.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(has, keys, "a")
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(60) as waited:
            assert await has(keys, "a")
        issuer.gate.set()
        assert not waited.cancelled_caught
    assert issuer.asked == 2


async def test_a_caller_that_goes_away_takes_the_answer_from_nobody() -> None:
    issuer, _, keys = make("a")
    issuer.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(release_after_cancelling, scope, issuer)
            await has(keys, "a")
    assert await has(keys, "a")
    assert issuer.asked == 1


async def release_after_cancelling(scope: anyio.CancelScope, issuer: Answering) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()
    await anyio.lowlevel.checkpoint()
    issuer.gate.set()


async def test_keys_go_on_for_a_day_while_the_issuer_is_away(caplog: pytest.LogCaptureFixture) -> None:
    issuer, clock, keys = make("a")
    await has(keys, "a")
    issuer.is_away = True
    with caplog.at_level(logging.INFO):
        for _ in range(int((STALE - SECOND) / timedelta(minutes=10))):
            clock.advance(timedelta(minutes=10))
            assert await has(keys, "a")
        clock.advance(timedelta(minutes=10))
        with pytest.raises(errors.WorldError, match="cannot be checked now"):
            await has(keys, "a")
        assert [record.message for record in caplog.records] == ["issuer not read"]
        issuer.is_away = False
        clock.advance(AFTER_FAILURE)
        assert await has(keys, "a")
    assert [record.message for record in caplog.records] == ["issuer not read", "issuer read again"]


async def test_an_unknown_key_is_unknown_while_the_issuer_is_away_and_others_are_known() -> None:
    issuer, clock, keys = make("a")
    await has(keys, "a")
    issuer.is_away = True
    clock.advance(ASK_AGAIN)
    assert not await has(keys, "b")


async def test_an_issuer_that_never_answered_is_an_error_of_the_server_and_is_not_hammered() -> None:
    issuer, clock, keys = make("a")
    issuer.is_away = True
    for _ in range(20):
        with pytest.raises(errors.WorldError):
            await has(keys, "a")
    assert issuer.asked == 1
    issuer.is_away = False
    clock.advance(AFTER_FAILURE)
    assert await has(keys, "a")
    assert issuer.asked == 2


async def test_a_clock_that_is_set_back_keeps_no_key_for_longer() -> None:
    issuer, clock, keys = make("a")
    await has(keys, "a")
    clock.advance(timedelta(days=-400))
    issuer.keys = [make_key("b", "ES256")]
    assert await has(keys, "b")
    assert not await has(keys, "a")
