"""Catches the search indexes up with writes even when nobody searches: once there are many, and when writing pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from refdesk.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.model import Collection
    from refdesk.stores.sqlite.freezing import Sizes
    from refdesk.stores.sqlite.indexing import DerivedIndexes

PAUSE_SECONDS = 0.25
"""How long nobody must have written for writing to count as paused: the next write is then unlikely to come at once.
Reading two thousand documents keeps the interpreter busy for a twentieth of a second, and a write meanwhile takes two
to three times as long."""

LOOK_SECONDS = 0.05
"""How often to check, while waiting, whether the wait must end."""

MOST_WAIT_SECONDS = 30.0
"""How long catching up gives way to writes that do not pause."""


class CatchingUp:
    """Tracks how far each index is behind, and catches up those that are too far behind.

    Args:
        indexes: The indexes to catch up.
        sizes: How far is too far.
        keep: Stores what reading has derived.
    """

    def __init__(self, indexes: DerivedIndexes, sizes: Sizes, keep: Callable[[], Awaitable[None]]) -> None:
        self._indexes, self._sizes, self._keep = indexes, sizes, keep
        self._loop = asyncio.get_running_loop()
        self._behind: dict[Collection, int] = {}
        self._written_at = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    def note(self, changes: Mapping[Collection, int]) -> None:
        """Note how many documents were just written or embedded."""
        self._written_at = self._loop.time()
        self._add(changes)

    def note_older(self, collections: list[Collection]) -> None:
        """Note that so much was written before this process started that these indexes must not wait for a search."""
        self._add(dict.fromkeys(collections, self._sizes.catch_up_above))

    def forget(self, collection: Collection) -> None:
        """Note that a search has caught up the index."""
        self._behind.pop(collection, None)

    async def finish(self) -> None:
        """Stop, and wait for what is being read; call `DerivedIndexes.stop` first."""
        self._is_ending = True
        if self._task is not None:
            await asyncio.wait((self._task,))

    def _add(self, changes: Mapping[Collection, int]) -> None:
        for collection, count in changes.items():
            behind = self._behind[collection] = self._behind.get(collection, 0) + count
            if behind >= self._sizes.catch_up_above and self._task is None and not self._is_ending:
                self._task = self._loop.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        try:
            while not self._is_ending and (collection := self._find_due()) is not None:
                await self._wait_for_pause(collection)
                self.forget(collection)
                with suppress(StoreError):  # the next search tries again, and says why it fails
                    await self._indexes.catch_up(collection)
                    await self._keep()
        finally:
            self._task = None

    def _find_due(self) -> Collection | None:
        return next((each for each, count in self._behind.items() if count >= self._sizes.catch_up_above), None)

    async def _wait_for_pause(self, collection: Collection) -> None:
        """Return once nobody has written for a moment, or once a collection is too far behind to wait for that."""
        with anyio.move_on_after(MOST_WAIT_SECONDS):
            while not self._is_ending and self._behind.get(collection, 0) < self._sizes.catch_up_at:
                if (rest := self._written_at + PAUSE_SECONDS - self._loop.time()) <= 0:
                    return
                await anyio.sleep(min(rest, LOOK_SECONDS))
