from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from refdesk.core.idempotency import KIND, Token, recall, remember
from refdesk.errors import ConflictError
from refdesk.model import JsonObject
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOW

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
    await answer_once(store, replace(TOKEN, token="t-2"), seconds=61)
    assert [record.key.name for record in await store.list_records(KIND)] == ["k.store:ann:t-2"]
