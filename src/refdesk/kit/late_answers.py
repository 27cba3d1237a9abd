"""Watches over an answer of a server: a statement may take its time, a server that answers nobody is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class LateAnswer:
    """Gives up an answer that is late, once the server answers nobody else either.

    Args:
        seconds: How late it is when it is looked into whether the server answers at all; then again and again.
        answers: Returns whether it does, within a time of its own.
        give_up: Called once when it does not.
    """

    def __init__(self, seconds: float, answers: Callable[[], Awaitable[bool]], give_up: Callable[[], None]) -> None:
        self._seconds = seconds
        self._answers = answers
        self._give_up = give_up
        self._task: asyncio.Task[None] | None = None
        # Nearly every answer comes long before: a timer is the least that there is to set and take away.
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def end(self) -> None:
        """The answer is there, or it is not waited for any more."""
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
