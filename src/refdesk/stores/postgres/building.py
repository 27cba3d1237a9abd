"""Looks after the graphs of a store from one process: builds those that are missing, while the process serves."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from refdesk.errors import StoreError
from refdesk.stores.postgres import hnsw
from refdesk.stores.postgres.transactions import Turns, open_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from refdesk.stores.postgres.connections import Connections

logger = logging.getLogger(__name__)

BUILD_AFTER_SECONDS = 1.0
"""How long a store is open before missing graphs are built."""

LOOK_SECONDS = 1.0
"""How often to try again while another process works on the graphs."""


class Graphs:
    """The graphs of a store's models; see `hnsw`."""

    def __init__(self, connections: Connections) -> None:
        """Make it; nothing is begun."""
        self._connections = connections
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = False

    def begin(self) -> None:
        """Have missing graphs built in the background; searches are right without them.

        The build does not begin at once: a load that continues where another one ended builds them at its own end.
        """
        self._is_wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._build_later())

    async def wait(self) -> None:
        """Return once the missing graphs are built, by this process or another one."""
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        """Give up building; whoever builds next begins anew what was begun."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def drop(self) -> None:
        """Drop all graphs, so that vectors are written faster; waits for a build by another process."""
        await self.stop()
        await _repeat(self._try_drop)

    async def build(self) -> None:
        """Build the missing graphs; return once none is missing.

        Raises:
            StoreError: A build failed.
        """
        await _repeat(partial(hnsw.build, self._connections))

    async def _try_drop(self) -> bool:
        async with open_session(self._connections, Turns(), is_alone=True) as session:
            return await hnsw.drop(session)

    async def _build_later(self) -> None:
        await asyncio.sleep(BUILD_AFTER_SECONDS)
        try:
            while self._is_wanted:
                self._is_wanted = False
                await self.build()
        except StoreError as error:
            # The next to open the store tries again.
            logger.info("graphs not built", extra={"reason": error.message})


async def _repeat(attempt: Callable[[], Awaitable[bool]]) -> None:
    """Repeat an attempt until it succeeds; it does not while another process works on the graphs."""
    while True:
        if await attempt():
            return
        await asyncio.sleep(LOOK_SECONDS)
