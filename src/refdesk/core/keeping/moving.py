"""Moves a store to another while it serves: copies, catches up, compares, and switches within one short standstill.

Changes made meanwhile are noted by the source itself, in the transaction of the change. The source stays authoritative
until one transaction of its own says that it was switched; before that commit everything can be repeated or given up,
and after it the source refuses every write. At that commit the target holds everything, and the last changes have been
read back for comparison: nobody has written in between, since writers wait. See decision 23.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from refdesk.core.keeping import erasing, migrating
from refdesk.core.keeping.equalising import FOREIGN, Pair
from refdesk.core.keeping.following import NOTICE_SECONDS
from refdesk.core.keeping.moves import Change, Move, find_moves, read_move
from refdesk.errors import ConflictError, StoreError

if TYPE_CHECKING:
    from refdesk.core.keeping.moves import Moves
    from refdesk.protocols import Store

STANDSTILL_SECONDS = 1.5
"""How long others may have to wait for the last step. If it takes longer, it is undone and tried again later."""

FEW = 100
"""The last step is tried when fewer things than this are left to be done."""

ROUNDS = 4
"""After this many rounds in a row in which there was more than that, writers are slowed down further."""

LEAST_DELAY_SECONDS, MOST_DELAY_SECONDS = 0.02, 1.0

PIECE = 500
WAIT_SECONDS = 0.05

Phase: TypeAlias = Literal["moving", "building", "comparing", "switching"]

NOT_WHILE_SERVING = (
    "The source cannot be moved while it serves: its engine notes no changes, or it is a cluster. Stop what uses it, "
    "and leave --serving out."
)


@dataclass(slots=True)
class Mover:
    """The move of one store.

    Attributes:
        name: Distinguishes one source from another.
        url: Where servers find the target.
        note: Called with how many more documents were written or compared.
        begin: Called when a further phase begins.
        standstill_seconds: How long the last attempt at switching kept writers waiting.
    """

    source: Store
    target: Store
    name: str
    url: str
    note: Callable[[int], None] = lambda _: None
    begin: Callable[[Phase], None] = lambda _: None
    standstill_seconds: float = 0.0
    _pair: Pair = field(init=False)
    _read: dict[str, int] = field(default_factory=dict[str, int], init=False)
    _has_traces: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._pair = Pair(self.source, self.target)

    async def run(self) -> None:
        """Move the store, and return once it is switched; called again after any failure, it continues.

        Raises:
            ConflictError: The target holds something else; or the source was moved, or is being moved, elsewhere.
        """
        moves = require_moves(self.source)
        move = await read_move(self.source)
        if move is not None and move.target != self.url:
            raise ConflictError("The source was moved to another target, or is being moved there (--abort ends that).")
        if move is not None and move.stage == "switched":
            return
        await migrating.require_fit(self.source, self.target, self.name)
        # Where a move goes on, nobody knows what was erased since it began, so all logs are read.
        self._read = {} if move is not None else await self._find_ends()
        await moves.begin(Move(self.url))
        begun_at = anyio.current_time()
        await migrating.copy(self.source, self.target, self.name, self.note, self.begin)
        self.begin("comparing")
        await moves.begin(Move(self.url, phase="comparing"))
        unsure: list[Change] = []
        async for count, differing in self._pair.find_differing():
            self.note(count)
            unsure += differing
        self.begin("switching")
        await moves.begin(Move(self.url, phase="catching up"))
        await self._catch_up(moves, unsure, begun_at)

    async def _catch_up(self, moves: Moves, unsure: list[Change], begun_at: float) -> None:
        """Return once the source is switched; `unsure` may still differ."""
        delay, rounds = 0.0, 0
        while True:
            changes = await moves.read_changes(PIECE)
            unsure = await self._pair.equalise([*unsure, *changes])
            await moves.forget(changes)
            rounds = rounds + 1 if len(changes) >= FEW else 0
            if rounds == ROUNDS:
                # Changes are written faster than they can be moved, so each writer has to wait a moment.
                delay, rounds = min(MOST_DELAY_SECONDS, max(2 * delay, LEAST_DELAY_SECONDS)), 0
                await moves.begin(Move(self.url, delay=delay, phase="catching up"))
            is_noticed = anyio.current_time() - begun_at > NOTICE_SECONDS
            if (
                is_noticed
                and len(changes) + len(unsure) < FEW
                and await self._try_switching(moves, [*unsure, *changes])
            ):
                return
            await anyio.sleep(0 if changes else WAIT_SECONDS)

    async def _try_switching(self, moves: Moves, unsure: list[Change]) -> bool:
        """Return whether the store is switched; nothing that was erased from it has left a trace in the target then."""
        if await self._was_erased():
            # Its traces are overwritten once the target has been made equal, which comes first, and nobody waits yet.
            self._has_traces = True
            return False
        if self._has_traces:
            await self._scrub()
        if not await self._switch(moves, unsure):
            return False
        if await self._was_erased():
            await self._scrub()
        return True

    async def _find_ends(self) -> dict[str, int]:
        ends = [await self.source.get_last_audit(org) for org in await self.source.list_audited_orgs()]
        return {end.org: end.number for end in ends if end is not None}

    async def _was_erased(self) -> bool:
        """Return whether anything was erased from the source since this was last asked, as its audit logs say."""
        found = False
        for org in await self.source.list_audited_orgs():
            while acts := await self.source.get_audit(org, self._read.get(org, 0), PIECE):
                found = found or any(entry.act["action"] == erasing.ACTION for entry in acts)
                self._read[org] = acts[-1].number
        return found

    async def _scrub(self) -> None:
        # Where it cannot be done now, it is done when the target is opened next.
        with suppress(StoreError):
            await self.target.scrub()
        self._has_traces = False

    async def _switch(self, moves: Moves, unsure: list[Change]) -> bool:
        """Try to switch within the time that others may have to wait; return whether the store is switched."""
        begun_at = anyio.current_time()
        with anyio.move_on_after(STANDSTILL_SECONDS):
            async with moves.stand_still() as standstill:
                last = [*unsure, *await moves.read_changes(PIECE)]
                await self._pair.equalise(last)
                if differing := await self._pair.equalise(last):
                    raise ConflictError(FOREIGN.format(" ".join(differing[0].key)))
                await standstill.switch(Move(self.url, "switched"))
        self.standstill_seconds = anyio.current_time() - begun_at
        # The commit is not undone when time is up, so it may have happened after all.
        move = await read_move(self.source)
        return move is not None and move.stage == "switched"


def require_moves(store: Store) -> Moves:
    """Return what a store does to be moved.

    Raises:
        ConflictError: It can be moved only while nobody uses it.
    """
    moves = find_moves(store)
    if moves is None:
        raise ConflictError(NOT_WHILE_SERVING)
    return moves


async def cancel(source: Store) -> None:
    """Give up the move of a store; its users notice nothing.

    Raises:
        ConflictError: It is not being moved, or was already switched.
    """
    moves, move = require_moves(source), await read_move(source)
    if move is None or move.stage == "switched":
        what = "is not being moved" if move is None else "was switched already, and is the truth no more"
        raise ConflictError(f"The source {what}: there is nothing to give up.")
    await moves.cancel()
