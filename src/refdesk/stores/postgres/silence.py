"""Finds out whether the server is silent: gone, stopped, or behind a network that swallows everything.

A task whose answer from the server is late checks for that. Other tasks wait behind it: for the turn of an org, for a
free connection, for a commit that they share. They do not ask the server themselves but go by what the first task
found; otherwise each would have to find it out anew, one after another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures


class Silence:
    """What one process knows about a server's silence.

    Args:
        knock: Returns whether the server answers a new connection within this many seconds.
    """

    def __init__(self, knock: Callable[[float], Awaitable[bool]]) -> None:
        self._knock = knock
        self._look: asyncio.Task[bool] | None = None
        self._heard_at = self._found_at = float("-inf")
        self._waiting: dict[object, Callable[[], None]] = {}

    def hear(self) -> None:
        """Note that the server has answered, on any connection."""
        self._heard_at = anyio.current_time()

    async def is_answering(self, seconds: float) -> bool:
        """Return whether the server answers a new connection within this many seconds; callers share a check."""
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._find_out(seconds))
        # Others may be waiting for the same check.
        return await asyncio.shield(self._look)

    def find(self, since: float) -> bool:
        """Return whether the server, which did not answer since `since`, is silent; if so, end all waits for it.

        It is not if it has answered anything since then, on any connection.
        """
        if self._heard_at >= since:
            return False
        self._found_at = anyio.current_time()
        for end in [*self._waiting.values()]:
            end()
        return True

    def check(self, since: float) -> None:
        """Return unless the server has been found silent since `since`.

        Raises:
            StoreError: It has, and has not answered anything since.
        """
        if self._found_at >= max(since, self._heard_at):
            raise StoreError(failures.LOST)

    @contextmanager
    def watched(self) -> Generator[None, None, None]:
        """Run the block, which waits for tasks that wait for the server; it ends once they find the server silent.

        Raises:
            StoreError: The server was found silent.
        """
        with anyio.CancelScope() as scope, self.telling(scope.cancel):
            yield
        if scope.cancelled_caught:
            raise StoreError(failures.LOST)

    @contextmanager
    def telling(self, end: Callable[[], None]) -> Generator[None, None, None]:
        """Call `end` when the server is found silent during the block."""
        place = object()
        self._waiting[place] = end
        try:
            yield
        finally:
            del self._waiting[place]

    def close(self) -> None:
        """Cancel a check that is under way."""
        if self._look is not None:
            self._look.cancel()

    async def _find_out(self, seconds: float) -> bool:
        since = anyio.current_time()
        return await self._knock(seconds) or not self.find(since)
