from __future__ import annotations

import pytest

from refdesk.core.writing.quotas import Quota, Usage, read_usage, spend
from refdesk.errors import QuotaExceededError
from refdesk.stores.memory import MemoryStore

QUOTA = Quota("things", per_org=3, per_agent=2)


async def spend_as(store: MemoryStore, agent: str, org: str = "acme", amount: int = 1) -> None:
    async with store.transaction() as transaction:
        await spend(transaction, QUOTA, org, agent, amount)


async def spend_and_fail(store: MemoryStore) -> None:
    async with store.transaction() as transaction:
        await spend(transaction, QUOTA, "acme", "ann")
        raise RuntimeError


async def test_spending_up_to_the_limit_works_and_past_it_says_how_much_is_used() -> None:
    store = MemoryStore()
    await spend_as(store, "ann")
    await spend_as(store, "ann")
    with pytest.raises(QuotaExceededError) as caught:
        await spend_as(store, "ann")
    assert caught.value.details == {"quota": "things", "scope": "agent", "used": 2, "limit": 2}
    assert await read_usage(store, QUOTA, "acme", "ann") == Usage(org=2, agent=2)


async def test_the_orgs_limit_counts_all_its_agents_and_no_other_org() -> None:
    store = MemoryStore()
    await spend_as(store, "ann", amount=2)
    await spend_as(store, "bob")
    with pytest.raises(QuotaExceededError) as caught:
        await spend_as(store, "bob")
    assert caught.value.details == {"quota": "things", "scope": "org", "used": 3, "limit": 3}
    await spend_as(store, "bob", org="other")


async def test_a_write_that_is_undone_is_not_counted() -> None:
    store = MemoryStore()
    with pytest.raises(RuntimeError):
        await spend_and_fail(store)
    assert await read_usage(store, QUOTA, "acme", "ann") == Usage(0, 0)


async def test_without_limits_usage_is_still_counted() -> None:
    store = MemoryStore()
    async with store.transaction() as transaction:
        await spend(transaction, Quota("things"), "acme", "ann", 1000)
    assert await read_usage(store, Quota("things"), "acme", "ann") == Usage(1000, 1000)
