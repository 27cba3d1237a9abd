"""Keeps a desk small: gives memory back when it is much, or when nobody has called for long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from refdesk.kit import memory

if TYPE_CHECKING:
    from refdesk.core.background.quiet import Quiet

MUCH_BYTES = 230_000_000
"""From so much on it is given back whoever calls: what is less serves the next search. Below the 300 MB that a desk is
to take with 100,000 notes, by what a few searches bring in until the next look."""

LOOK_SECONDS = 1.0
"""How often it is looked whether there is anything to give back."""

WORK_SECONDS = 0.02
"""So much of the processor's time since the last look is work, which leaves memory and touches pages of the index."""

REST_SECONDS = 60.0
"""Whoever has not called for so long is not likely to search next."""

CALLS_SECONDS = 0.5
"""So long calls may read of the index before that is given back, where it is much. Given back more often, it is read
again by the next search, and `benchmarks.desk` shows no less memory for that."""

SLICE_SECONDS = 0.01
"""So long background work may read of the index before that is given back: some tens of megabytes. One search for what
is like a long note reads a third of an index, which comes back from the system's cache as quickly as it is read."""


@dataclass(frozen=True, slots=True)
class MemoryKeeper:
    """Gives memory back; `run` it as a background task.

    Attributes:
        quiet: Tells when nobody calls, and when background work goes on.
        much_bytes: So much, in bytes, is much.
        rest_seconds: After so long without a call whatever is free is given back, however little it is.
        look_seconds: How often it is looked, whether anybody calls or not.
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
            await anyio.sleep(SLICE_SECONDS)  # what ends sooner has read little
            while self.quiet.at_work:
                self._give_back_pages()
                await anyio.sleep(SLICE_SECONDS)

    def _give_back_pages(self) -> None:
        if self._is_much():
            memory.give_back_pages()

    def _is_much(self) -> bool:
        resident = memory.measure_resident()
        return resident is not None and resident > self.much_bytes
