"""Deadlines that hold: whoever asked is answered in time, though a thread cannot be stopped."""

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

    Work that is not done in time, or that nobody waits for any more, is cancelled and not waited for: a thread of it
    may run on, and the group outlives it.

    Args:
        group: Outlives the call; without one, what cannot be stopped is waited for.
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

    # A plain task: one that a group starts costs every call as much again as its deadline does.
    task = loop.create_task(work())
    # Every call has a deadline and nearly none meets it: a timer is the least that there is to set and take away.
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
    """Let whoever closes the group wait for a task that is to stop."""
    with anyio.CancelScope(shield=True):
        await asyncio.wait((task,))


def _end(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
