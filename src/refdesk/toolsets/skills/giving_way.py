"""Who makes a skill goes before who refines one: a refinement gives way between its parts, as far as is fair.

A new skill is waited for by whoever has just helped a customer, and takes some ten milliseconds; a refinement takes
several times that, and nobody waits for it as long. On few processors both would take as long as they take together.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import anyio

SHARE = 4
"""However many skills are made, a refinement goes on at this part of its own speed."""


@dataclass(slots=True)
class Precedence:
    """Knows whether skills are being made in this process."""

    _makers: int = 0
    _over: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def going_first(self) -> Generator[None]:
        """Let refinements give way until the end."""
        self._makers += 1
        try:
            yield
        finally:
            self._makers -= 1
            if not self._makers:
                self._over.set()
                self._over = anyio.Event()

    async def give_way(self, since: float) -> float:
        """Return when no skill is being made, or when fairness lets go on; it returns at once where none is.

        Args:
            since: When the part that has ended began, by `perf_counter`.

        Returns:
            When the next part begins.
        """
        if self._makers:
            with anyio.move_on_after((SHARE - 1) * (perf_counter() - since)):
                await self._over.wait()
        return perf_counter()
