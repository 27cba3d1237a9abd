"""Quiet: the times when no call is being answered, so that work nobody waits for can go on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET_SECONDS = 0.25
"""How long after the end of a call another one is likely to follow; only then is it quiet."""

LOOK_SECONDS = 0.02
"""How often to check whether the calls that are being answered have ended."""

MOST_WAIT_SECONDS = 30.0
"""How long work that nobody waits for gives way to calls."""

MOST_STEP_WAIT_SECONDS = 0.25
"""How long each further step of such work gives way: less, since other processes may be waiting for its lease."""


@dataclass(slots=True)
class Quiet:
    """Tells when all calls have been answered, and no other has come for a moment.

    Attributes:
        is_asked: Returns whether anybody is waiting for an answer.
        at_work: How many pieces of work that nobody waits for are going on right now, inside `working`.
    """

    is_asked: Callable[[], bool]
    at_work: int = 0
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _ended_at: float = float("-inf")
    _ended: anyio.Event = field(default_factory=anyio.Event)
    _loading: anyio.Lock = field(default_factory=anyio.Lock)

    def note_end(self) -> None:
        """Note that a call has just ended."""
        self._ended_at = anyio.current_time()
        self._ended.set()

    async def wait_for_end(self) -> None:
        """Return when the next call ends."""
        self._ended = anyio.Event()
        await self._ended.wait()

    def _get_rest(self) -> float:
        """Return the seconds after which it may be quiet; 0 if it is quiet now."""
        since_end = anyio.current_time() - self._ended_at
        return max(QUIET_SECONDS - since_end, LOOK_SECONDS if self.is_asked() else 0.0)

    @property
    def seconds(self) -> float:
        """How long ago the last call ended; 0 while one is being answered, infinite before the first one."""
        return 0.0 if self.is_asked() else anyio.current_time() - self._ended_at

    async def wait(self, most_seconds: float = MOST_WAIT_SECONDS) -> None:
        """Return when it is quiet, or after `most_seconds` in any case."""
        with anyio.move_on_after(most_seconds):
            await anyio.sleep(LOOK_SECONDS)  # where the machine was asleep, whoever calls now is heard first
            while (rest := self._get_rest()) > 0:  # noqa: ASYNC110 - looking rarely costs calls less than being told
                await anyio.sleep(rest)

    async def give_way(self, most_seconds: float = MOST_STEP_WAIT_SECONDS) -> None:
        """Pause between the steps of work that has begun: return at once if it is quiet, otherwise as `wait` does."""
        if self._get_rest() > 0:
            await self.wait(most_seconds)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Wait for quiet before work that nobody waits for begins; until the block ends it counts in `at_work`."""
        await self.wait()
        self.at_work += 1
        self._begun.set()
        try:
            yield
        finally:
            self.at_work -= 1
            if not self.at_work:
                self._begun = anyio.Event()

    async def wait_for_work(self) -> None:
        """Return as soon as such work is going on."""
        await self._begun.wait()

    async def load(self, *modules: str, most_seconds: float = MOST_WAIT_SECONDS) -> None:
        """Import what background work needs, one module whenever it is quiet, and the rest after `most_seconds`.

        Importing everything at once takes a tenth of a second, during which every call would stand still. Importing on
        another thread would delay calls even longer: they would wait for the interpreter at each of their steps.
        """
        last = anyio.current_time() + most_seconds
        for module in modules:
            async with self._loading:
                await self.wait(max(0.0, last - anyio.current_time()))
                import_module(module)
