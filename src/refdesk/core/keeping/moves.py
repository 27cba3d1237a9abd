"""What a store records about its own move to another one while it serves, and what an engine does for that.

From the moment a move begins, the store itself notes what is changed, in the transaction of the change, whichever
process makes it. Once it has been switched, it refuses every write, and its record of the move says where everything
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.protocols import Reader, Store

KIND = "move"
STATE = MetadataKey(SHARED_ORG, KIND, "state")
NOTHING = MetadataKey("", KIND, "nothing")
"""A record that no store has; reading it begins a transaction without taking the turn of any org."""

MOVED = "refdesk: this store was moved"
"""The text of the engine's own refusal of a write."""

REFUSED = (
    "The store was moved to another one while this was on its way: nothing of it was written. Ask again, and it goes "
    "there; if that stays so, name the new store in REFDESK_STORE."
)

Stage: TypeAlias = Literal["moving", "switched"]
MovePhase: TypeAlias = Literal["copying", "comparing", "catching up"]
What: TypeAlias = Literal["document", "link", "record", "acts"]


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a store that has begun.

    Attributes:
        target: The URL of the store that it goes to, as a server is given one.
        delay: Seconds to wait before each transaction, because changes are written faster than they are moved.
        phase: The progress of the move.
    """

    target: str
    stage: Stage = "moving"
    delay: float = 0.0
    phase: MovePhase = "copying"

    def to_record(self) -> Metadata:
        """Return it as the store keeps it."""
        value = {"target": self.target, "stage": self.stage, "delay": self.delay, "phase": self.phase}
        return Metadata(STATE, value)


@dataclass(frozen=True, slots=True)
class Change:
    """What was changed: a document by org, toolset and id, a link by its key, a record by its key, acts by their org.

    Attributes:
        number: Grows with every change of the store, so a later change of the same thing has a higher one.
    """

    what: What
    key: tuple[str, ...]
    number: int = 0


class Standstill(Protocol):
    """A period in which nobody else writes to the store."""

    async def switch(self, move: Move) -> None:
        """Let the store record where it went, and refuse every write once the standstill ends."""
        ...


class Moves(Protocol):
    """What an engine does to be moved. Each method is a transaction of its own; all may be repeated."""

    async def begin(self, move: Move) -> None:
        """Record the move, and from this commit on note what any process changes."""
        ...

    async def read_changes(self, limit: int) -> list[Change]:
        """Return at most `limit` changes that have not been forgotten, the oldest first."""
        ...

    async def forget(self, changes: Sequence[Change]) -> None:
        """Forget changes, except of things that were changed again since."""
        ...

    async def cancel(self) -> None:
        """Forget the move and the changes; the store is then as if the move had never begun."""
        ...

    def stand_still(self) -> AbstractAsyncContextManager[Standstill]:
        """Wait until every transaction that has read anything has ended, and keep others from beginning.

        Leaving it by an exception changes nothing. Reads outside of transactions go on.
        """
        ...


@runtime_checkable
class Movable(Protocol):
    """A store that can be moved while it serves."""

    @property
    def moves(self) -> Moves:
        """What it does to be moved."""
        ...


async def read_move(reader: Reader) -> Move | None:
    """Return the move of a store, or `None` where it is not moved."""
    record = await reader.get_metadata(STATE)
    if record is None:
        return None
    stage: Stage = "switched" if record.value["stage"] == "switched" else "moving"
    known = get_args(MovePhase)
    phase: MovePhase = next((each for each in known if each == record.value.get("phase")), known[0])
    return Move(str(record.value["target"]), stage, float(str(record.value["delay"])), phase)


def find_moves(store: Store) -> Moves | None:
    """Return what the store does for its move, or `None` where its engine can be moved only while nobody uses it."""
    return store.moves if isinstance(store, Movable) else None
