"""Keeps a desk small: gives back what calls have left, and what background work reads while it goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from refdesk.kit import memory

if TYPE_CHECKING:
    from refdesk.core.background.quiet import Quiet

LOOK_SECONDS = 5.0
"""How often it is looked whether there is anything to give back."""

WORK_SECONDS = 0.02
"""So much of the processor's time since the last look is work, which leaves memory and touches pages of the index."""

REST_SECONDS = LOOK_SECONDS / 2
"""Whoever has not called for so long is not likely to search next."""

SLICE_SECONDS = 0.01
"""So long background work may read of the index before that is given back: some tens of megabytes. One search for what
is like a long note reads a third of an index, which comes back from the system's cache as quickly as it is read."""


@dataclass(frozen=True, slots=True)
class MemoryKeeper:
    """Gives memory back; `run` it as a background task.

    Attributes:
        quiet: Tells when nobody calls, and when background work goes on.
        rest_seconds: Nothing is given back so soon after a call: what the next search reads would take it longer.
    """

    quiet: Quiet
    rest_seconds: float = REST_SECONDS

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_work)
            await self._look_now_and_then()

    async def _look_now_and_then(self) -> None:
        worked = 0.0
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if time.process_time() - worked <= WORK_SECONDS:
                continue
            await self.quiet.wait(LOOK_SECONDS)
            if self._is_resting:
                memory.give_back()
                worked = time.process_time()

    async def _follow_work(self) -> None:
        while True:
            await self.quiet.wait_for_work()
            await anyio.sleep(SLICE_SECONDS)  # what ends sooner has read little
            while self.quiet.at_work:
                if self._is_resting:
                    memory.give_back_pages()
                await anyio.sleep(SLICE_SECONDS)

    @property
    def _is_resting(self) -> bool:
        return self.quiet.seconds > self.rest_seconds
