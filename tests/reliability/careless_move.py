"""A planted fault: a mover that forgets what was changed since it copied it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from refdesk.core.keeping import moving
from refdesk.core.keeping.moves import Change, Move, Moves, Standstill, find_moves
from refdesk.factories.stores import choose_store
from refdesk.protocols import Store


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
    old, new = (choose_store(sys.argv[place], sys.argv[place - 1]) for place in (3, 5))

    def find(store: Store) -> Moves:
        return Forgetful(cast("Moves", find_moves(store)))

    moving.find_moves = find
    async with old() as source, new() as target:
        await moving.Mover(source, target, "careless", sys.argv[5]).run()
