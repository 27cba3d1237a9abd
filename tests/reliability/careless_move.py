"""Planted faults: movers that forget what was changed since they copied it, or let others write while they switch."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from refdesk.core.keeping import moving
from refdesk.core.keeping.moves import Change, Move, Moves, Standstill, find_moves
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store


class Forgetful:
    """Moves that notice no change."""

    def __init__(self, inner: Moves) -> None:
        self._inner = inner

    async def begin(self, move: Move) -> None:
        await self._inner.begin(move)

    async def read_changes(self, limit: int) -> list[Change]:
        return []

    async def forget(self, changes: Sequence[Change]) -> None:
        await self._inner.forget(changes)

    async def cancel(self) -> None:
        await self._inner.cancel()

    @asynccontextmanager
    async def stand_still(self) -> AsyncGenerator[Standstill]:
        async with self._inner.stand_still() as standstill:
            yield standstill


async def move() -> None:
    """Move as the command would, without noticing what changes."""
    arguments = sys.argv
    old, new = (Path(url.removeprefix("sqlite:///")) for url in (arguments[3], arguments[5]))

    def find(store: Store) -> Moves:
        return Forgetful(cast("Moves", find_moves(store)))

    moving.find_moves = find
    async with open_store(old) as source, open_store(new) as target:
        await moving.Mover(source, target, "careless", arguments[5]).run()
