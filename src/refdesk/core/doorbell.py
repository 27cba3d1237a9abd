"""A doorbell: wakes a background worker from anywhere in the process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import anyio


class Doorbell:
    """A bell that many ring and one waits for. A ring while nobody waits is kept until the next wait.

    Attributes:
        now: A clock in seconds.
        rung_at: When it was last rung, by that clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.rung_at = -math.inf
        self._event: anyio.Event | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the one who waits, now or at its next wait."""
        self._rung = True
        self.rung_at = self.now()
        if self._event is not None:
            self._event.set()

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or when `seconds` have passed."""
        self._event = anyio.Event()
        with anyio.move_on_after(seconds):
            if not self._rung:
                await self._event.wait()
        self._event = None
        self._rung = False
