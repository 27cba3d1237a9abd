"""Finds out whether the server is silent: gone, stopped, or behind a network that swallows everything.

Who waits for an answer of the server looks into that once it is late. Others wait behind: for the turn of an org, for a
place, for the commit that they share. They ask nobody, and go by what the former find out: else each of them would find
it out anew, one after another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio

from refdesk.errors import StoreError
from refdesk.stores.postgres import failures


class Silence:
    """What is known of a server's silence, in one process.

    Args:
        knock: Returns whether the server answers one who comes anew within so many seconds.
    """

    def __init__(self, knock: Callable[[float], Awaitable[bool]]) -> None:
        self._knock = knock
        self._look: asyncio.Task[bool] | None = None
        self._heard_at = self._found_at = float("-inf")
        self._waiting: dict[object, Callable[[], None]] = {}

    def hear(self) -> None:
        """Note that the server has said something, to anybody."""
        self._heard_at = anyio.current_time()

    async def is_answering(self, seconds: float) -> bool:
        """Return whether the server answers anybody within so many seconds; once for all who ask at the same time."""
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._find_out(seconds))
        # Others may wait for the same.
        return await asyncio.shield(self._look)

    def find(self, since: float) -> bool:
        """Return whether the server is silent, after it did not answer one who came at `since`; all learn it who wait.

        Whoever was answered meanwhile, on whatever connection, shows that it is not.
        """
        if self._heard_at >= since:
            return False
        self._found_at = anyio.current_time()
        for end in [*self._waiting.values()]:
            end()
        return True

    def check(self, since: float) -> None:
        """Return unless the server was found silent from `since` on.

        Raises:
            StoreError: It was, and has said nothing since.
        """
        if self._found_at >= max(since, self._heard_at):
            raise StoreError(failures.LOST)

    @contextmanager
    def watched(self) -> Generator[None, None, None]:
        """Run the block, which waits for others who wait for the server; it ends once they find that silent.

        Raises:
            StoreError: They did.
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
        """End what is being looked into."""
        if self._look is not None:
            self._look.cancel()

    async def _find_out(self, seconds: float) -> bool:
        since = anyio.current_time()
        return await self._knock(seconds) or not self.find(since)
