"""Watches over a server's answer: a statement may take long, but a server that answers nobody is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class LateAnswer:
    """Gives up on a late answer once the server answers nobody else either.

    Args:
        seconds: How late the answer is when it is first checked whether the server answers at all; this long after each
            successful check, the next one follows.
        answers: Returns whether the server answers, within a time limit of its own.
        give_up: Called once, when the server does not answer.
    """

    def __init__(self, seconds: float, answers: Callable[[], Awaitable[bool]], give_up: Callable[[], None]) -> None:
        self._seconds = seconds
        self._answers = answers
        self._give_up = give_up
        self._task: asyncio.Task[None] | None = None
        # Nearly every answer comes long before that: a timer is the cheapest thing to set and cancel.
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def end(self) -> None:
        """Stop watching: the answer has come, or is not waited for any more."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        if await self._answers():
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)
        else:
            self._give_up()
