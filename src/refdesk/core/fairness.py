"""Fair turns: who works when there are more requests than can be worked on at once.

A caller has all turns until another shows up. From then on each org gets an equal part of a smaller number, and each
agent an equal part of its org's, however much one of them asks. Of the waiting requests, the one whose org and agent
have been served least goes next, so a queue, however long, delays only its own caller. Turns are not kept busy at any
price: those left free for the others keep their answers quick.

Work of different weight goes in lanes. While more than one lane is in use, each has an equal part of that smaller
number, whoever asks, so that slow work holds up nothing but its own lane.

The idea is that of fair queueing (A. Demers, S. Keshav, S. Shenker, *Analysis and Simulation of a Fair Queueing
Algorithm*, 1989), with turns instead of packets and two levels of senders.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from refdesk.errors import LimitExceededError

Holder: TypeAlias = tuple[str, str]
"""An org and one of its agents."""

ACTIVE_SECONDS = 10.0
"""How long after the last request its caller still counts as one of those who share."""

MOST_OF_AGENT = 64
MOST_OF_ORG = 256
"""Most requests that one agent and one org may have in hand, waiting or not."""


@dataclass(slots=True, eq=False)
class Turn:
    """One request's right to work.

    Attributes:
        has_ended: Whether the request has been answered; whatever part of it is still running gets no further turn.
        granted: Set when the turn is granted; exists only once somebody waits for that.
    """

    holder: Holder
    lane: str = ""
    is_running: bool = False
    has_ended: bool = False
    granted: anyio.Event | None = None


_current: ContextVar[tuple[FairTurns, Turn] | None] = ContextVar("turn", default=None)


@dataclass(slots=True)
class FairTurns:
    """Turns that callers share.

    Attributes:
        most: How many turns there are at once.
        shared: How many there are at once where several callers are active: few, as each slows down the others.
        now: A clock in seconds.
    """

    most: int
    shared: int
    now: Callable[[], float] = time.monotonic
    _in_hand: Counter[Holder] = field(default_factory=Counter[Holder])
    _orgs_in_hand: Counter[str] = field(default_factory=Counter[str])
    _running: Counter[Holder] = field(default_factory=Counter[Holder])
    _orgs_running: Counter[str] = field(default_factory=Counter[str])
    _seen: OrderedDict[str, OrderedDict[str, float]] = field(
        default_factory=OrderedDict[str, "OrderedDict[str, float]"]
    )
    _lanes_running: Counter[str] = field(default_factory=Counter[str])
    _lanes_seen: dict[str, float] = field(default_factory=dict[str, float])
    _waiting: list[Turn] = field(default_factory=list[Turn])
    _served: dict[str | Holder, int] = field(default_factory=dict[str | Holder, int])
    _count: int = 0

    @asynccontextmanager
    async def take(self, org: str, agent: str, lane: str = "") -> AsyncGenerator[Turn]:
        """Wait for a turn, and hold it until the block ends; `outside` lends it to others meanwhile.

        Args:
            org: The caller's org.
            agent: The caller, an agent of that org.
            lane: The lane in which the request waits; see `Operation.lane`.

        Raises:
            LimitExceededError: Too many requests of the agent or of its org are in hand.
        """
        holder = org, agent
        self._admit(holder)
        turn = Turn(holder, lane)
        try:
            await self.wait(turn)
            token = _current.set((self, turn))
            try:
                yield turn
            finally:
                _current.reset(token)
        finally:
            turn.has_ended = True
            self.give_back(turn)
            self._leave(holder)

    @property
    def is_empty(self) -> bool:
        """Whether no request is in hand."""
        return not self._in_hand

    def give_back(self, turn: Turn) -> None:
        """Let others have the turn; does nothing if it is not held."""
        if turn.is_running:
            turn.is_running = False
            _add(self._running, turn.holder, -1)
            _add(self._orgs_running, turn.holder[0], -1)
            _add(self._lanes_running, turn.lane, -1)
            self._note_lane(turn.lane)
            self._hand_out()

    def _admit(self, holder: Holder) -> None:
        if self._in_hand[holder] >= MOST_OF_AGENT or self._orgs_in_hand[holder[0]] >= MOST_OF_ORG:
            raise LimitExceededError(
                "Too many of your requests wait for an answer already; wait for some of them.", retry_after_seconds=1.0
            )
        _add(self._in_hand, holder, 1)
        _add(self._orgs_in_hand, holder[0], 1)
        self._note(holder)

    def _leave(self, holder: Holder) -> None:
        self._note(holder)
        _add(self._in_hand, holder, -1)
        _add(self._orgs_in_hand, holder[0], -1)

    async def wait(self, turn: Turn) -> None:
        """Wait until the turn is granted."""
        self._note_lane(turn.lane)
        self._waiting.append(turn)
        try:
            self._hand_out()
            if not turn.is_running:
                turn.granted = anyio.Event()
                await turn.granted.wait()
        except BaseException:
            # It may have been granted and cancelled before it could work: nobody else would ever give it back.
            self.give_back(turn)
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)

    def _hand_out(self) -> None:
        while (turn := self._choose()) is not None:
            self._waiting.remove(turn)
            self._count += 1
            self._served[turn.holder[0]] = self._served[turn.holder] = self._count
            _add(self._running, turn.holder, 1)
            _add(self._orgs_running, turn.holder[0], 1)
            _add(self._lanes_running, turn.lane, 1)
            turn.is_running = True
            if turn.granted is not None:
                turn.granted.set()

    def _choose(self) -> Turn | None:
        """Return the next turn to grant: of those allowed, the one served least; `None` where none is allowed."""
        if not self._waiting or self._running.total() >= self.most:
            return None
        if len(self._waiting) == 1:
            [turn] = self._waiting
            is_free = self._lanes_running[turn.lane] < self._count_of_lane()
            return turn if is_free and self._may(turn.holder) else None
        first = OrderedDict["tuple[Holder, str]", Turn]()
        for turn in self._waiting:
            first.setdefault((turn.holder, turn.lane), turn)
        of_lane = self._count_of_lane()
        free = (turn for turn in first.values() if self._lanes_running[turn.lane] < of_lane)
        return min((turn for turn in free if self._may(turn.holder)), key=self._rank, default=None)

    def _count_of_lane(self) -> int:
        """Return how many turns each lane has, after forgetting lanes that are no longer used."""
        since = self.now() - ACTIVE_SECONDS
        for lane, seen in list(self._lanes_seen.items()):
            if seen < since and not self._lanes_running[lane] and all(turn.lane != lane for turn in self._waiting):
                del self._lanes_seen[lane]
        return self.most if len(self._lanes_seen) <= 1 else max(1, self.shared // len(self._lanes_seen))

    def _note_lane(self, lane: str) -> None:
        self._lanes_seen[lane] = self.now()

    def _rank(self, turn: Turn) -> tuple[int, int, int, int]:
        org, served = turn.holder[0], self._served
        return (
            self._orgs_running[org],
            served.get(org, 0),
            self._running[turn.holder],
            served.get(turn.holder, 0),
        )

    def _may(self, holder: Holder) -> bool:
        orgs, agents = self._count_orgs(), self._count_agents(holder[0])
        of_org = self.most if orgs == 1 else max(1, self.shared // orgs)
        of_agent = of_org if agents == 1 else max(1, min(of_org, self.shared) // agents)
        return self._orgs_running[holder[0]] < of_org and self._running[holder] < of_agent

    def _note(self, holder: Holder) -> None:
        org, agent = holder
        agents = self._seen.setdefault(org, OrderedDict())
        agents[agent] = self.now()
        agents.move_to_end(agent)
        self._seen.move_to_end(org)

    def _count_orgs(self) -> int:
        """Return how many orgs share the turns, after forgetting those that no longer do."""
        since = self.now() - ACTIVE_SECONDS
        while self._seen and (agents := next(iter(self._seen.values()))) and _last(agents) < since:
            org = next(iter(self._seen))
            if self._orgs_in_hand[org]:
                agents[next(reversed(agents))] = self.now()
                self._seen.move_to_end(org)
            else:
                self._served.pop(org, None)
                for agent in self._seen.pop(org):
                    self._served.pop((org, agent), None)
        return len(self._seen)

    def _count_agents(self, org: str) -> int:
        """Return how many agents share the turns of their org, after forgetting those that no longer do."""
        agents, since = self._seen[org], self.now() - ACTIVE_SECONDS
        while agents and next(iter(agents.values())) < since:
            agent = next(iter(agents))
            if self._in_hand[org, agent]:
                agents[agent] = self.now()
                agents.move_to_end(agent)
            else:
                del agents[agent]
                self._served.pop((org, agent), None)
        return len(agents)


def _last(agents: OrderedDict[str, float]) -> float:
    return next(reversed(agents.values()))


@asynccontextmanager
async def outside() -> AsyncGenerator[None]:
    """Lend the turn of this request, if it has one, while it waits for another service, and wait for one afterwards."""
    held = _current.get()
    if held is None or not held[1].is_running:
        yield
        return
    turns, turn = held
    turns.give_back(turn)
    try:
        yield
    finally:
        if not turn.has_ended:
            await turns.wait(turn)


def _add(counts: Counter[Holder] | Counter[str], key: object, number: int) -> None:
    counts[key] += number  # pyright: ignore[reportArgumentType] - each counter is given its own kind of key
    if counts[key] <= 0:  # pyright: ignore[reportArgumentType]
        del counts[key]  # pyright: ignore[reportArgumentType]
