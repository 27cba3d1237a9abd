"""Lets creating a skill go before refining one: a refinement gives way between its parts, as far as is fair.

Whoever has just helped a customer waits for the new skill, which takes some ten milliseconds; a refinement takes
several times as long, and is waited for less. With few processors each would take as long as both together.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import anyio

SHARE = 4
"""However many skills are created, a refinement goes on at no less than one part in this many of its own speed."""


@dataclass(slots=True)
class Precedence:
    """Knows whether skills are being created in this process."""

    _makers: int = 0
    _over: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def going_first(self) -> Generator[None]:
        """Make refinements give way until the block ends."""
        self._makers += 1
        try:
            yield
        finally:
            self._makers -= 1
            if not self._makers:
                self._over.set()
                self._over = anyio.Event()

    async def give_way(self, since: float) -> float:
        """Return once no skill is being created, or once this refinement has waited for as long as is fair.

        Args:
            since: When the part that has just ended began, by `perf_counter`.

        Returns:
            When the next part begins.
        """
        if self._makers:
            with anyio.move_on_after((SHARE - 1) * (perf_counter() - since)):
                await self._over.wait()
        return perf_counter()
