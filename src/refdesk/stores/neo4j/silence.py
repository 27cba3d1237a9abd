"""Gives up a server that is silent: gone, stopped, or behind a network that swallows everything.

A statement may take its time, or wait for a lock. So when an answer is late, somebody looks whether the server answers
anybody at all; only when it does not is that answer not waited for any longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio
from neo4j import exceptions

from refdesk.errors import StoreError
from refdesk.stores.neo4j.failures import UNREACHABLE

WATCH_SECONDS = 2.0
"""How late an answer is when it is looked into whether the server answers at all; then again and again."""

PROBE_SECONDS = 2.0
"""How long that may take. With the time before it, whoever meets a silent server has the error within five seconds."""


class SilentError(StoreError):
    """The server says nothing to anybody; what was asked last may have been done or not."""

    def __init__(self) -> None:
        super().__init__(UNREACHABLE)


class Silence:
    """Finds out whether a server is silent, once for all who wait for it at the same time.

    Args:
        knock: Returns, or raises what the driver raises, once the server has answered one who comes anew.
    """

    def __init__(self, knock: Callable[[], Awaitable[None]]) -> None:
        self._knock = knock
        self._look: asyncio.Task[bool] | None = None

    @contextmanager
    def watched(self) -> Generator[None, None, None]:
        """Run the block, which waits for the server or for others who do; it ends early once the server is silent.

        Raises:
            SilentError: It is.
        """
        with anyio.CancelScope() as scope:
            watch = _Watch(self, scope)
            try:
                yield
            finally:
                watch.end()
        if scope.cancelled_caught:
            raise SilentError

    async def has_come(self) -> bool:
        """Return whether the server lets `PROBE_SECONDS` pass without an answer."""
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._find_out())
        # Others may wait for the same.
        return await asyncio.shield(self._look)

    def close(self) -> None:
        """End what is being looked into."""
        if self._look is not None:
            self._look.cancel()

    async def _find_out(self) -> bool:
        try:
            with anyio.fail_after(PROBE_SECONDS):
                await self._knock()
        except TimeoutError:
            return True
        except (exceptions.Neo4jError, exceptions.DriverError, OSError):
            # A refusal is an answer: who waits on a connection of before will see what became of it.
            return False
        return False


class _Watch:
    """Ends a wait that is late, once the server answers nobody else either."""

    def __init__(self, silence: Silence, scope: anyio.CancelScope) -> None:
        self._silence = silence
        self._scope = scope
        self._task: asyncio.Task[None] | None = None
        # Nearly every answer comes long before: a timer is the least that there is to set and take away.
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._begin)

    def end(self) -> None:
        """The answer is there, or it is not waited for any more."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        if await self._silence.has_come():
            self._scope.cancel()
        else:
            self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._begin)
