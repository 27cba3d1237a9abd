"""Short-lived values in Redis. Every key expires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refdesk.queues.bullmq.connection import RedisConnection


@dataclass(frozen=True, slots=True)
class RedisScratchpad:
    """Notes that every process with the same Redis sees; see `Scratchpad`."""

    connection: RedisConnection

    async def add(self, key: str, note: str, seconds: float) -> str | None:
        """Keep a note unless the key already has one, which is then returned."""
        return await self.connection.call(lambda: self._add(key, note, seconds))

    async def put(self, key: str, note: str, seconds: float) -> None:
        """Keep a note, replacing any existing one."""
        await self.connection.call(lambda: self.connection.client.set(key, note, px=_to_milliseconds(seconds)))

    async def remove(self, key: str) -> None:
        """Remove a note."""
        await self.connection.call(lambda: self.connection.client.delete(key))

    async def count(self, key: str, seconds: float) -> int | None:
        """Count one more; the first sets when the count expires, so that none stays for ever."""
        return await self.connection.call(lambda: self._count(key, seconds))

    async def _add(self, key: str, note: str, seconds: float) -> str | None:
        # A note may expire between the two commands; then this one is set after all.
        while not await self.connection.client.set(key, note, px=_to_milliseconds(seconds), nx=True):
            if (known := await self.connection.client.get(key)) is not None:
                return str(known)
        return None

    async def _count(self, key: str, seconds: float) -> int:
        async with self.connection.client.pipeline(transaction=True) as pipe:
            pipe.set(key, 0, px=_to_milliseconds(seconds), nx=True)
            pipe.incr(key)
            return int((await pipe.execute())[1])


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
