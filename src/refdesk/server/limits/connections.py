"""Who holds which connection, and who must give one up when there are too many.

A connection belongs to its address until a request on it carries a valid key, and to that caller from then on. If there
is no room for a new one, it is let in and a connection that nobody is waiting on is dropped: among those that have not
shown a key, the one that has been silent longest; among callers, the one that has been idle longest in the org that
holds most. So neither half-sent requests nor hoarded connections keep anybody out.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from refdesk import errors

if TYPE_CHECKING:
    from starlette.types import Scope

    from refdesk.model import Principal

logger = logging.getLogger(__name__)

CONNECTION = "refdesk.connection"
"""The key in a request's `state` for its connection."""

ORG_SHARE = 0.5
AGENT_SHARE = 0.25
"""The share of all connections, or of all sessions, that one org may hold (`ORG_SHARE`), and that one of its agents may
hold."""

Holder: TypeAlias = tuple[str, str]
"""An org and one of its agents."""


class Connection(Protocol):
    """What needs to be known of a connection in order to count it."""

    @property
    def address(self) -> str:
        """The address of the other end."""
        ...

    @property
    def holder(self) -> Holder | None:
        """The caller whose key it has shown; `None` if none was shown."""
        ...

    @property
    def is_answering(self) -> bool:
        """Whether a request on it is being answered."""
        ...

    def drop(self) -> None:
        """End it at once."""
        ...


@dataclass(slots=True)
class Connections:
    """The open connections of a server, the longest silent first.

    Attributes:
        most: Most connections at once.
        most_by_address: Most of them from one address that have not shown a valid key.
        is_exempt: Returns whether an address may hold any number, as a trusted proxy may.
        refused: How many were dropped to make room, or not let in.
    """

    most: int
    most_by_address: int
    is_exempt: Callable[[str], bool] = lambda _: False
    refused: int = 0
    _open: dict[Connection, None] = field(default_factory=dict[Connection, None])
    _by_address: Counter[str] = field(default_factory=Counter[str])
    _by_org: Counter[str] = field(default_factory=Counter[str])
    _by_holder: Counter[Holder] = field(default_factory=Counter[Holder])

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Count a new connection, which no caller holds yet; return whether there is room for it."""
        address = connection.address
        if not self.is_exempt(address) and self._by_address[address] >= self.most_by_address:
            strangers = (each for each in self._open if each.holder is None and each.address == address)
            if not self._make_room(strangers):
                return False
        if len(self._open) >= self.most and not self._make_room(self._list_dispensable()):
            return False
        self._open[connection] = None
        self._by_address[address] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection, if it is known."""
        if connection in self._open:
            del self._open[connection]
            self._count(connection, -1)

    def touch(self, connection: Connection) -> None:
        """Note that something was received on a connection."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def hand_over(self, connection: Connection, take: Callable[[], None], holder: Holder) -> None:
        """Make a caller the holder of a connection, by calling `take`.

        Raises:
            LimitExceededError: The caller or its org already holds its share of connections, and waits for an answer on
                each of them.
        """
        if connection not in self._open or connection.holder == holder:
            return
        org, _ = holder
        if self._by_org[org] >= max(1, int(self.most * ORG_SHARE)):
            self._give_up(each for each in self._list_held(org) if each is not connection)
        if self._by_holder[holder] >= max(1, int(self.most * AGENT_SHARE)):
            self._give_up(each for each in self._list_held(org) if each.holder == holder and each is not connection)
        self._count(connection, -1)
        take()
        self._count(connection, 1)

    def _give_up(self, candidates: Iterable[Connection]) -> None:
        if not self._make_room(candidates):
            raise errors.LimitExceededError(
                "You hold as many connections as one caller may, and all of them are in use; close some.",
                retry_after_seconds=1.0,
            )

    def _make_room(self, candidates: Iterable[Connection]) -> bool:
        """Drop the first candidate on which no request is being answered; return whether there was one."""
        found = next((each for each in candidates if not each.is_answering), None)
        self.refused += 1
        if set(str(self.refused)[1:]) <= {"0"}:
            logger.warning("too many connections", extra={"open": len(self._open), "dropped so far": self.refused})
        if found is not None:
            self.remove(found)
            found.drop()
        return found is not None

    def _list_dispensable(self) -> list[Connection]:
        """Return the connections to drop, in order, if there are too many in all: those of strangers, then those of the
        largest org."""
        strangers = [each for each in self._open if each.holder is None]
        largest = max(self._by_org, key=lambda org: self._by_org[org], default=None)
        return strangers + (self._list_held(largest) if largest is not None else [])

    def _list_held(self, org: str) -> list[Connection]:
        return [each for each in self._open if each.holder is not None and each.holder[0] == org]

    def _count(self, connection: Connection, number: int) -> None:
        if connection.holder is None:
            _add(self._by_address, connection.address, number)
        else:
            _add(self._by_org, connection.holder[0], number)
            _add(self._by_holder, connection.holder, number)


def claim(scope: Scope, principal: Principal) -> None:
    """Note whose key the connection of a request has shown, if connections are counted.

    Raises:
        LimitExceededError: The caller or its org already holds its share.
    """
    guarded = scope.get("state", {}).get(CONNECTION)
    if guarded is not None:
        guarded.claim((principal.org, principal.agent))


def _add(counts: Counter[str] | Counter[Holder], key: object, number: int) -> None:
    counts[key] += number  # pyright: ignore[reportArgumentType] - each counter is given its own kind of key
    if counts[key] <= 0:  # pyright: ignore[reportArgumentType]
        del counts[key]  # pyright: ignore[reportArgumentType]
