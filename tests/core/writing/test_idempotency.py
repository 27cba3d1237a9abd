from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.writing import idempotency
from refdesk.core.writing.idempotency import KIND, Token, recall, remember
from refdesk.errors import ConflictError, StoreError
from refdesk.model import JsonObject
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOW
from tests.queues.notes import MemoryScratchpad

TOKEN = Token("acme", "ann", "k.store", "t-1", {"title": "x", "tags": ["a"]})


async def answer_once(store: MemoryStore, token: Token = TOKEN, seconds: float = 0) -> None:
    async with store.transaction() as transaction:
        await remember(transaction, token, {"id": "1"}, NOW + timedelta(seconds=seconds))


async def ask(store: MemoryStore, token: Token, seconds: float) -> JsonObject | None:
    async with store.transaction() as transaction:
        return await recall(transaction, token, NOW + timedelta(seconds=seconds))


async def test_the_first_call_has_no_answer_yet() -> None:
    assert await ask(MemoryStore(), TOKEN, 0) is None


async def test_a_repetition_within_the_window_gets_the_first_answer() -> None:
    store = MemoryStore()
    await answer_once(store)
    assert await ask(store, TOKEN, 59.9) == {"id": "1"}


async def test_after_the_window_the_token_is_new() -> None:
    store = MemoryStore()
    await answer_once(store)
    assert await ask(store, TOKEN, 60) is None
    assert await ask(store, TOKEN, 60.1) is None


async def test_a_call_that_comes_again_late_gets_the_first_answer_by_when_it_was_first_sent() -> None:
    store = MemoryStore()
    await answer_once(store, seconds=2)
    await answer_once(store, replace(TOKEN, token="t-2"), seconds=idempotency.REPEATED.total_seconds())
    assert await ask(store, TOKEN, seconds=1) == {"id": "1"}


async def test_the_same_token_for_another_payload_is_a_conflict_within_the_window_only() -> None:
    store = MemoryStore()
    await answer_once(store)
    other = replace(TOKEN, payload={"title": "y", "tags": ["a"]})
    with pytest.raises(ConflictError, match="clientToken"):
        await ask(store, other, 59.9)
    assert await ask(store, other, 60) is None


async def test_the_order_of_a_payloads_keys_does_not_matter() -> None:
    store = MemoryStore()
    await answer_once(store)
    assert await ask(store, replace(TOKEN, payload={"tags": ["a"], "title": "x"}), 1) == {"id": "1"}


@pytest.mark.parametrize(
    "other", [replace(TOKEN, org="other"), replace(TOKEN, agent="bob"), replace(TOKEN, operation="k.other")]
)
async def test_a_token_means_nothing_to_another_org_agent_or_operation(other: Token) -> None:
    store = MemoryStore()
    await answer_once(store)
    assert await ask(store, other, 1) is None


async def test_old_tokens_are_cleared_away() -> None:
    store = MemoryStore()
    await answer_once(store)
    await answer_once(store, replace(TOKEN, token="t-2"), seconds=61 + idempotency.REPEATED.total_seconds())
    assert [record.key.name for record in await store.list_metadata(KIND)] == ["k.store:ann:t-2"]


class Calls:
    """A call whose answer is written down in the store's own way, and how often it was really made."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.pad = MemoryScratchpad()
        self.clock = FixedClock(NOW)
        self.made = 0
        self.gate = anyio.Event()
        self.gate.set()

    async def make(self, token: Token = TOKEN) -> JsonObject:
        return await idempotency.answer_once(self.pad, token, self.clock, lambda: self._act(token))

    async def _act(self, token: Token) -> JsonObject:
        now = self.clock.now()
        async with self.store.transaction() as transaction:
            if (known := await recall(transaction, token, now)) is not None:
                return {**known, "replayed": True}
        await self.gate.wait()
        self.made += 1
        answer: JsonObject = {"id": str(self.made), "replayed": False}
        async with self.store.transaction() as transaction:
            await remember(transaction, token, answer, now)
        return answer


FIRST = {"id": "1", "replayed": False}
AGAIN = {"id": "1", "replayed": True}


async def test_a_store_that_does_not_have_what_was_noted_makes_the_call() -> None:
    """As after a failover that lost the last commits, or where two deployments share one Redis."""
    calls = Calls()
    assert await calls.make() == FIRST
    calls.store = MemoryStore()
    assert await calls.make() == {"id": "2", "replayed": False}
    assert await calls.make() == {"id": "2", "replayed": True}
    calls.store = MemoryStore()
    assert await calls.make(replace(TOKEN, payload={"title": "y"})) == {"id": "3", "replayed": False}


async def test_a_lost_note_costs_nothing_but_a_look_at_the_store() -> None:
    calls = Calls()
    await calls.make()
    calls.pad.forget()
    assert await calls.make() == AGAIN
    calls.pad.is_away = True
    assert await calls.make() == AGAIN
    assert calls.made == 1


async def test_a_note_answers_no_longer_than_the_record_would() -> None:
    calls = Calls()
    await calls.make()
    calls.clock.advance(timedelta(seconds=59.9))
    assert await calls.make() == AGAIN
    calls.clock.advance(timedelta(seconds=0.2))
    assert await calls.make() == {"id": "2", "replayed": False}


async def test_an_answer_from_the_record_is_not_noted_beyond_the_records_own_end() -> None:
    calls = Calls()
    await calls.make()
    calls.pad.forget()
    calls.clock.advance(timedelta(seconds=59))
    assert await calls.make() == AGAIN
    calls.clock.advance(timedelta(seconds=2))
    assert await calls.make() == {"id": "2", "replayed": False}


async def test_a_running_call_with_another_payload_is_a_conflict_at_once() -> None:
    calls = Calls()
    await calls.pad.put(TOKEN.note_key, json.dumps({"fingerprint": "x"}), 1000)
    with pytest.raises(ConflictError, match="another request"):
        await calls.make()


async def test_a_noted_token_for_another_payload_is_a_conflict() -> None:
    calls = Calls()
    await calls.make()
    with pytest.raises(ConflictError, match="another request"):
        await calls.make(replace(TOKEN, payload={"title": "y"}))


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "1",
        "[]",
        "{}",
        *(f'{{"fingerprint": "x", "until": "{year}-01-01T00:00:00+00:00"}}' for year in (2000, 2100)),
    ],
)
async def test_a_note_that_says_nothing_is_passed_over(note: str) -> None:
    calls = Calls()
    await calls.pad.put(TOKEN.note_key, note, 60)
    assert await calls.make() == FIRST


async def test_a_call_that_failed_leaves_no_note() -> None:
    calls = Calls()

    async def fail() -> JsonObject:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        await idempotency.answer_once(calls.pad, TOKEN, calls.clock, fail)
    assert calls.pad.find(TOKEN.note_key) is None
    assert await calls.make() == FIRST


async def test_a_repetition_waits_for_the_first_call_and_gets_its_answer() -> None:
    calls, answers = Calls(), list[JsonObject]()
    calls.gate = anyio.Event()

    async def ask() -> None:
        answers.append(await calls.make())

    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
            # The claim is renewed while the call lasts.
            while not calls.pad.puts:
                await anyio.lowlevel.checkpoint()
            assert answers == []
            calls.gate.set()
    assert sorted(answers, key=str) == [FIRST, AGAIN, AGAIN]
    assert calls.made == 1


async def test_a_repetition_that_waited_long_enough_is_a_conflict() -> None:
    calls = Calls()
    claim = json.dumps({"fingerprint": TOKEN.fingerprint})
    await calls.pad.put(TOKEN.note_key, claim, 1000)
    with anyio.fail_after(2 * idempotency.WAIT_SECONDS), pytest.raises(ConflictError, match="still being done"):
        await calls.make()
    assert calls.pad.find(TOKEN.note_key) == claim


async def test_a_call_that_died_keeps_its_repetition_waiting_for_a_moment_only() -> None:
    calls = Calls()
    await calls.pad.put(TOKEN.note_key, json.dumps({"fingerprint": TOKEN.fingerprint}), 0.2)
    assert await calls.make() == FIRST
    assert idempotency.CLAIM_SECONDS < idempotency.WAIT_SECONDS


async def test_the_note_has_the_name_that_is_fixed_for_it() -> None:
    calls = Calls()
    await calls.make()
    assert calls.pad.find("idem:k.store:acme:ann:t-1") is not None
