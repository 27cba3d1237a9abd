"""The threads in which the engine waits for the disk."""

from __future__ import annotations

import threading

import anyio
import pytest

from refdesk.stores.sqlite.threads import Threads

MOST = 3


@pytest.fixture
def threads() -> Threads:
    return Threads("test", MOST)


async def test_calls_run_together_up_to_the_most_and_the_rest_in_order(threads: Threads) -> None:
    together, open_doors, order = threading.Barrier(MOST + 1), threading.Event(), list[int]()

    def meet() -> None:
        together.wait()
        open_doors.wait()

    async with anyio.create_task_group() as group:
        for _ in range(MOST):
            group.start_soon(threads.run, meet)
        await anyio.to_thread.run_sync(together.wait)
        for number in range(5):
            group.start_soon(threads.run, lambda number=number: order.append(number))
        await anyio.wait_all_tasks_blocked()
        assert order == []
        open_doors.set()
    assert sorted(order) == list(range(5))
    threads.close()


async def test_what_a_call_raises_is_raised_where_it_was_asked(threads: Threads) -> None:
    def fail() -> None:
        raise KeyError("what")

    with pytest.raises(KeyError, match="what"):
        await threads.run(fail)
    assert await threads.run(lambda: 7) == 7
    threads.close()


async def test_a_cancelled_task_waits_for_its_call(threads: Threads) -> None:
    begun, may_end, has_ended = threading.Event(), threading.Event(), False

    def work() -> None:
        nonlocal has_ended
        begun.set()
        may_end.wait()
        has_ended = True

    async def ask() -> None:
        try:
            await threads.run(work)
        finally:
            assert has_ended

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.to_thread.run_sync(begun.wait)
        group.cancel_scope.cancel()
        may_end.set()
    threads.close()


async def test_closing_waits_for_nobody_and_what_was_given_is_done(threads: Threads) -> None:
    may_go_on, done = threading.Event(), list[int]()

    def work(number: int) -> None:
        may_go_on.wait()
        done.append(number)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(threads.run, lambda number=number: work(number))
        await anyio.wait_all_tasks_blocked()
        threads.close()
        assert done == []
        may_go_on.set()
    assert sorted(done) == list(range(20))
