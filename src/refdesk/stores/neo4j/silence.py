"""Gives up a server that is silent: gone, stopped, or behind a network that swallows everything.

A statement may take its time, or wait for a lock. So if an answer is late, the server is probed on a new connection,
and the answer is given up only if the server does not respond there either, or only to who asks for none of the commits
that this process has seen: it waits for those, which will not come where an older dump was loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import anyio
from neo4j import exceptions

from refdesk.errors import StoreError
from refdesk.kit.late_answers import LateAnswer
from refdesk.stores.neo4j.failures import BEHIND, UNREACHABLE

WATCH_SECONDS = 2.0
"""How late an answer may be before the server is probed, and the interval of further probes."""

PROBE_SECONDS = 2.0
"""How long a probe may take. Together with the wait before it, a silent server causes an error within 5 seconds."""


class SilentError(StoreError):
    """The server does not respond at all; the last request may or may not have been carried out."""

    def __init__(self, message: str = UNREACHABLE) -> None:
        super().__init__(message)


class BehindError(SilentError):
    """The server responds, but not to who asks for what was committed to it."""

    def __init__(self) -> None:
        super().__init__(BEHIND)


class Silence:
    """Finds out whether a server is silent, with one probe shared by all that wait for it at the same time.

    Args:
        knock: Makes a new connection and asks there for what was committed, or for nothing where that is `False`;
            returns, or raises what the driver raises, once the server has answered.
    """

    def __init__(self, knock: Callable[[bool], Awaitable[None]]) -> None:
        self._knock = knock
        self._look: asyncio.Task[SilentError | None] | None = None
        self._verdict: SilentError | None = None

    @contextmanager
    def watched(self) -> Generator[None, None, None]:
        """Run the block, which waits for the server or for tasks that do; it is cancelled once the server is silent.

        Raises:
            SilentError: The server is silent, or a `BehindError` if only for those who ask for what was committed.
        """
        with anyio.CancelScope() as scope:
            watch = LateAnswer(WATCH_SECONDS, self.is_answering, scope.cancel)
            try:
                yield
            finally:
                watch.end()
        if scope.cancelled_caught:
            raise self._verdict or SilentError()

    async def is_answering(self) -> bool:
        """Return whether the server answers a probe within `PROBE_SECONDS`."""
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._find_out())
        # Others may be waiting for the same probe.
        self._verdict = await asyncio.shield(self._look)
        return self._verdict is None

    def close(self) -> None:
        """Cancel a probe that is under way."""
        if self._look is not None:
            self._look.cancel()

    async def _find_out(self) -> SilentError | None:
        """Return what is wrong with the server; `None` if it answers."""
        answered = dict.fromkeys((True, False), False)

        async def probe(asks_for_commits: bool) -> None:
            answered[asks_for_commits] = await self._responds(asks_for_commits)
            if answered[True]:
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for asks_for_commits in answered:
                group.start_soon(probe, asks_for_commits)
        if answered[True]:
            return None
        return BehindError() if answered[False] else SilentError()

    async def _responds(self, asks_for_commits: bool) -> bool:
        try:
            with anyio.fail_after(PROBE_SECONDS):
                await self._knock(asks_for_commits)
        except TimeoutError:
            return False
        except (exceptions.Neo4jError, exceptions.DriverError, OSError):
            # A refusal is an answer: tasks waiting on older connections will see what became of those.
            return True
        return True
