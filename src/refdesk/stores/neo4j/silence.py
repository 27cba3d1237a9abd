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
from refdesk.kit.late_answers import LateAnswer
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
            watch = LateAnswer(WATCH_SECONDS, self.is_answering, scope.cancel)
            try:
                yield
            finally:
                watch.end()
        if scope.cancelled_caught:
            raise SilentError

    async def is_answering(self) -> bool:
        """Return whether the server answers anybody within `PROBE_SECONDS`."""
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
            return False
        except (exceptions.Neo4jError, exceptions.DriverError, OSError):
            # A refusal is an answer: who waits on a connection of before will see what became of it.
            return True
        return True
