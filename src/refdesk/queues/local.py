"""The in-process queue: only a wake-up call; workers find the work in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from refdesk.core.doorbell import Doorbell
    from refdesk.protocols import EmbeddingJob, JobOutcome


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Rings when jobs are announced, but hands none out: whoever looks for work finds them in the store."""

    doorbell: Doorbell
    is_shared: bool = False
    trouble: str | None = None

    def announce(self, jobs: Sequence[EmbeddingJob]) -> None:
        """Wake whoever looks for work in this process."""
        self.doorbell.ring()

    async def enqueue(self, jobs: Sequence[EmbeddingJob]) -> bool:
        """Return `False`: nobody else will do them."""
        return False

    async def forget(self, is_meant: Callable[[EmbeddingJob], bool]) -> bool:
        """Return `True`: there are no jobs."""
        return True

    async def consume(self, work: Callable[[EmbeddingJob], Awaitable[JobOutcome]]) -> None:
        """Return at once: nothing comes from elsewhere."""
