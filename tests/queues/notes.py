"""A scratchpad in this process: what the shared one promises, without a server."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio


@dataclass
class MemoryScratchpad:
    """Notes with an end. `forget` loses them all, as a scratchpad may at any time; while `is_away` it keeps nothing."""

    is_away: bool = False
    puts: int = 0
    _notes: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def forget(self) -> None:
        self._notes.clear()

    def find(self, key: str) -> str | None:
        note, end = self._notes.get(key, ("", 0.0))
        return note if end > anyio.current_time() else None

    async def add(self, key: str, note: str, seconds: float) -> str | None:
        if self.is_away:
            return None
        known = self.find(key)
        if known is None:
            self._notes[key] = note, anyio.current_time() + seconds
        return known

    async def put(self, key: str, note: str, seconds: float) -> None:
        if not self.is_away:
            self._notes[key] = note, anyio.current_time() + seconds
            self.puts += 1

    async def remove(self, key: str) -> None:
        self._notes.pop(key, None)

    async def count(self, key: str, seconds: float) -> int | None:
        if self.is_away:
            return None
        count = int(self.find(key) or 0) + 1
        end = self._notes[key][1] if count > 1 else anyio.current_time() + seconds
        self._notes[key] = str(count), end
        return count
