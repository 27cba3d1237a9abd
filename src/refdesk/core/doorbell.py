"""A doorbell: wakes a background worker from anywhere in the process."""

from __future__ import annotations

import anyio


class Doorbell:
    """Rung by many, waited for by one. A ring while nobody waits is kept until the next wait."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the one who waits, now or at its next wait."""
        self._rung = True
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
