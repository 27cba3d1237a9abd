"""Deadlines that hold: callers are answered in time, even though threads cannot be stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

Answer = TypeVar("Answer")


async def answer_within(group: TaskGroup | None, seconds: float, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return what `ask` returns, or raise what it raises.

    Work that is not done in time, or that nobody waits for any more, is cancelled without waiting for it to end: one of
    its threads may run on, and the group outlives that.

    Args:
        group: Outlives the call; without it, work that cannot be stopped is waited for.
        seconds: How long it may take.
        ask: Does the work.

    Raises:
        TimeoutError: It took longer.
    """
    if group is None:
        with anyio.fail_after(seconds):
            return await ask()
    loop, scope = asyncio.get_running_loop(), anyio.CancelScope()
    answers, failures, done = list[Answer](), list[Exception](), loop.create_future()

    async def work() -> None:
        with scope:
            try:
                answers.append(await ask())
            except Exception as error:
                failures.append(error)
        _end(done)

    # A plain task: starting it in a group would double what a deadline costs each call.
    task = loop.create_task(work())
    # Every call has a deadline and hardly any reaches it: a timer is the cheapest thing to set and cancel.
    timer = loop.call_later(seconds, _end, done)
    try:
        await done
    finally:
        timer.cancel()
        if not answers and not failures:
            scope.cancel()
            group.start_soon(_outlive, task)
    if failures:
        raise failures[0]
    if answers:
        return answers[0]
    raise TimeoutError


async def _outlive(task: asyncio.Task[None]) -> None:
    """Make closing the group wait for a task that has been told to stop."""
    with anyio.CancelScope(shield=True):
        await asyncio.wait((task,))


def _end(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
