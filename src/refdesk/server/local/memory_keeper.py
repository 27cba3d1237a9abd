"""Keeps a desk small: gives memory back when it uses much, or when nobody has called for a while."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from refdesk.kit import memory

if TYPE_CHECKING:
    from refdesk.core.background.quiet import Quiet

MUCH_BYTES = 230_000_000
"""Above this, memory is given back even while calls come in; below, it serves the next search. It is lower than the 300
MB that a desk may take with 100,000 notes, by what a few searches bring in until the next check."""

LOOK_SECONDS = 1.0
"""How often to check whether there is anything to give back."""

WORK_SECONDS = 0.02
"""Processor time since memory was last given back above which there has been work, which leaves free memory behind and
touches pages of the index."""

REST_SECONDS = 60.0
"""After this long without a call, a search is not likely to come next."""

CALLS_SECONDS = 0.5
"""How long calls may read from the index before its pages are given back, if memory use is high. If they were given
back more often, the next search would read them again, and `benchmarks.desk` would show no less memory."""

SLICE_SECONDS = 0.01
"""How long background work may read from the index before its pages are given back: some tens of megabytes. One search
for documents similar to a long note reads a third of an index, which comes back from the system's cache as quickly as
it is read."""


@dataclass(frozen=True, slots=True)
class MemoryKeeper:
    """Gives memory back; `run` it as a background task.

    Attributes:
        quiet: Knows when nobody calls, and when background work is in progress.
        much_bytes: Resident memory, in bytes, above which memory is given back even while calls come in.
        rest_seconds: After this long without a call, all free memory is given back, however little it is.
        look_seconds: How often to check, whether anybody calls or not.
    """

    quiet: Quiet
    much_bytes: int = MUCH_BYTES
    rest_seconds: float = REST_SECONDS
    look_seconds: float = LOOK_SECONDS

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_work)
            group.start_soon(self._follow_calls)
            await self._look_now_and_then()

    async def _look_now_and_then(self) -> None:
        worked = 0.0
        while True:
            await anyio.sleep(self.look_seconds)
            if time.process_time() - worked <= WORK_SECONDS:
                continue
            await self.quiet.wait(self.look_seconds)
            if self._is_much() or self.quiet.seconds > self.rest_seconds:
                memory.give_back()
                worked = time.process_time()

    async def _follow_calls(self) -> None:
        while True:
            await self.quiet.wait_for_end()
            self._give_back_pages()
            await anyio.sleep(CALLS_SECONDS)

    async def _follow_work(self) -> None:
        while True:
            await self.quiet.wait_for_work()
            await anyio.sleep(SLICE_SECONDS)  # work that ends sooner has read little
            while self.quiet.at_work:
                self._give_back_pages()
                await anyio.sleep(SLICE_SECONDS)

    def _give_back_pages(self) -> None:
        if self._is_much():
            memory.give_back_pages()

    def _is_much(self) -> bool:
        resident = memory.measure_resident()
        return resident is not None and resident > self.much_bytes
