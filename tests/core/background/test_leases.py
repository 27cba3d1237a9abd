from __future__ import annotations

import sys
from datetime import timedelta

import anyio
import pytest

from refdesk.core.background.leases import Holder, Lease
from refdesk.core.clock import FixedClock
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOW


def make_leases(*holders: Holder) -> tuple[FixedClock, list[Lease]]:
    clock, store = FixedClock(NOW), MemoryStore()
    return clock, [Lease("sync", store, clock, holder, timedelta(seconds=15)) for holder in holders]


async def renew(lease: Lease) -> bool:
    async with lease.store.transaction() as transaction:
        return await lease.renew(transaction)


async def get_dead_process() -> int:
    async with await anyio.open_process([sys.executable, "-c", ""]) as process:
        await process.wait()
    return process.pid


async def test_one_of_two_holders_gets_the_lease() -> None:
    _, [first, second] = make_leases(Holder(), Holder())
    assert await first.acquire()
    assert not await second.acquire()


async def test_its_holder_may_take_it_again() -> None:
    _, [first] = make_leases(Holder())
    assert await first.acquire()
    assert await first.acquire()


async def test_a_released_lease_is_free() -> None:
    _, [first, second] = make_leases(Holder(), Holder())
    await first.acquire()
    await first.release()
    assert await second.acquire()


async def test_an_expired_lease_is_free_and_its_old_holder_learns_of_it() -> None:
    clock, [first, second] = make_leases(Holder(host="elsewhere"), Holder())
    await first.acquire()
    clock.advance(timedelta(seconds=15))
    assert await second.acquire()
    assert not await renew(first)
    assert await renew(second)


async def test_a_renewed_lease_holds_on() -> None:
    clock, [first, second] = make_leases(Holder(host="elsewhere"), Holder())
    await first.acquire()
    clock.advance(timedelta(seconds=14))
    assert await renew(first)
    clock.advance(timedelta(seconds=14))
    assert not await second.acquire()


async def test_a_holder_that_died_on_this_machine_is_replaced_at_once() -> None:
    dead = await get_dead_process()
    _, [first, second] = make_leases(Holder(process=dead), Holder())
    await first.acquire()
    assert await second.acquire()


async def test_the_same_number_on_another_machine_says_nothing() -> None:
    dead = await get_dead_process()
    _, [first, second] = make_leases(Holder(host="elsewhere", process=dead), Holder())
    await first.acquire()
    assert not await second.acquire()


async def test_a_container_that_shares_the_machines_name_takes_no_lease_of_a_living_process() -> None:
    # It sees none of this machine's processes, so that all of them look dead to it.
    code = "from refdesk.core.background.leases import Holder; print(Holder().host)"
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", sys.executable, "-c", code]
    try:
        done = await anyio.run_process(apart, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if done.returncode:
        pytest.skip(f"namespaces cannot be made here: {done.stderr.decode()}")
    # What such a container sees of a process is that there is none of its number.
    dead = await get_dead_process()
    _, [first, second] = make_leases(Holder(process=dead), Holder(host=done.stdout.decode().strip()))
    await first.acquire()
    assert not await second.acquire()


async def test_releasing_what_another_holds_leaves_it_alone() -> None:
    _, [first, second] = make_leases(Holder(), Holder())
    await first.acquire()
    await second.release()
    assert not await second.acquire()


async def test_a_lease_that_a_wrong_clock_dated_ahead_holds_nobody_back() -> None:
    clock, [first, second] = make_leases(Holder(host="elsewhere"), Holder())
    clock.advance(timedelta(days=40))
    await first.acquire()
    clock.advance(timedelta(days=-40))
    assert not await second.is_held()
    assert await second.acquire()
    assert not await renew(first)


async def test_clocks_that_differ_a_little_take_no_lease_away() -> None:
    clock, [first, second] = make_leases(Holder(host="elsewhere"), Holder())
    clock.advance(timedelta(seconds=15))
    await first.acquire()
    clock.advance(timedelta(seconds=-15))
    assert await second.is_held()
    assert not await second.acquire()
