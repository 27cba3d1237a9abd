"""However much one caller asks, the others' turns come."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.abc import TaskGroup

from refdesk.core.fairness import ACTIVE_SECONDS, MOST_OF_AGENT, MOST_OF_ORG, FairTurns, Holder, outside
from refdesk.errors import LimitExceededError


@dataclass
class Floor:
    """Requests that work until they are told to end, one by one."""

    turns: FairTurns
    group: TaskGroup
    at: list[float]
    running: list[tuple[Holder, anyio.Event]] = field(default_factory=list[tuple[Holder, anyio.Event]])
    finished: list[Holder] = field(default_factory=list[Holder])
    lanes: list[str] = field(default_factory=list[str])

    async def ask(self, org: str, agent: str = "ann", number: int = 1, lane: str = "") -> None:
        for _ in range(number):
            self.group.start_soon(self._work, (org, agent), lane)
            await anyio.wait_all_tasks_blocked()

    async def _work(self, holder: Holder, lane: str) -> None:
        async with self.turns.take(*holder, lane):
            end = anyio.Event()
            self.running.append((holder, end))
            self.lanes.append(lane)
            await end.wait()
        self.finished.append(holder)

    async def finish(self) -> Holder:
        """End the work that runs longest, and return whose it was."""
        holder, end = self.running.pop(0)
        end.set()
        await anyio.wait_all_tasks_blocked()
        return holder

    def count(self) -> Counter[str]:
        return Counter(org for (org, _), _ in self.running)


@asynccontextmanager
async def open_floor(most: int = 8, shared: int = 2) -> AsyncGenerator[Floor]:
    at = [0.0]
    async with anyio.create_task_group() as group:
        yield Floor(FairTurns(most, shared, lambda: at[0]), group, at)
        group.cancel_scope.cancel()


async def test_who_is_alone_has_every_turn_and_no_more() -> None:
    async with open_floor() as floor:
        await floor.ask("a", number=10)
        assert floor.count() == {"a": 8}
        await floor.finish()
        assert floor.count() == {"a": 8}


async def test_a_newcomer_is_let_in_before_a_queue_as_long_as_you_like() -> None:
    async with open_floor() as floor:
        await floor.ask("a", number=60)
        await floor.ask("b")
        assert floor.count() == {"a": 8}
        await floor.finish()
        assert floor.count() == {"a": 7, "b": 1}


async def test_who_floods_has_one_part_as_soon_as_there_is_another() -> None:
    async with open_floor() as floor:
        await floor.ask("a", number=60)
        await floor.ask("b")
        while floor.count()["a"] > 1:
            await floor.finish()
        served = Counter[str]()
        for _ in range(20):
            await floor.ask("b")
            served[(await floor.finish())[0]] += 1
            assert floor.count()["a"] <= 1
            assert floor.count()["b"] <= 1
        assert served == {"a": 10, "b": 10}


async def test_an_orgs_agents_share_its_part() -> None:
    async with open_floor(shared=4) as floor:
        await floor.ask("a", "ann", 20)
        await floor.ask("a", "bob", 2)
        await floor.ask("b")
        for _ in range(8):
            await floor.finish()
        assert Counter(holder for holder, _ in floor.running if holder[0] == "a") == {("a", "ann"): 1, ("a", "bob"): 1}


async def test_who_went_away_leaves_its_part_to_the_others() -> None:
    async with open_floor() as floor:
        await floor.ask("b")
        await floor.ask("a", number=20)
        assert floor.count() == {"a": 1, "b": 1}
        await floor.finish()
        floor.at[0] += ACTIVE_SECONDS + 1
        await floor.ask("a")
        assert floor.count() == {"a": 8}


async def test_what_waits_is_bounded_for_each_agent_and_org() -> None:
    async with open_floor() as floor:
        await floor.ask("a", "ann", MOST_OF_AGENT)
        with pytest.raises(LimitExceededError) as refused:
            async with floor.turns.take("a", "ann"):
                pass
        assert refused.value.retry_after_seconds == 1.0
        for number in range(MOST_OF_ORG // MOST_OF_AGENT - 1):
            await floor.ask("a", f"agent-{number}", MOST_OF_AGENT)
        with pytest.raises(LimitExceededError):
            async with floor.turns.take("a", "new"):
                pass
        await floor.ask("b")
        assert floor.count()["b"] == 0
        await floor.finish()
        assert floor.count()["b"] == 1


async def test_one_who_is_cancelled_while_waiting_takes_no_turn_along() -> None:
    async with open_floor(most=1) as floor:
        await floor.ask("a")
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with floor.turns.take("b", "bob"):
                pytest.fail("there was no turn")
        await floor.ask("c")
        await floor.finish()
        assert floor.count() == {"c": 1}


async def test_who_waits_for_another_service_lends_its_turn() -> None:
    turns, answered, told = FairTurns(1, 1), anyio.Event(), list[str]()

    async def ask_outside() -> None:
        async with turns.take("a", "ann"):
            async with outside():
                told.append("asked")
                await answered.wait()
            told.append("back")

    async with anyio.create_task_group() as group:
        group.start_soon(ask_outside)
        await anyio.wait_all_tasks_blocked()
        async with turns.take("b", "bob"):
            answered.set()
            await anyio.wait_all_tasks_blocked()
            assert told == ["asked"]
    assert told == ["asked", "back"]


@pytest.mark.parametrize("is_answered_before", [True, False])
async def test_what_is_cancelled_while_it_waits_for_another_service_keeps_no_turn(is_answered_before: bool) -> None:
    """As `search_everything` does with a toolset that hangs: it is cancelled, and the answer goes out without it."""
    turns = FairTurns(1, 1)

    async def hang(scope: anyio.CancelScope) -> None:
        with scope:
            async with outside():
                await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        async with turns.take("acme", "ann"):
            group.start_soon(hang, scope)
            await anyio.wait_all_tasks_blocked()
            if not is_answered_before:
                scope.cancel()
                await anyio.wait_all_tasks_blocked()
        scope.cancel()
    with anyio.fail_after(120):
        async with turns.take("acme", "ann"):
            pass


async def test_outside_of_any_request_nothing_is_lent() -> None:
    async with outside():
        pass


async def test_what_takes_long_holds_up_nothing_but_its_own_lane() -> None:
    async with open_floor() as floor:
        await floor.ask("acme", number=20)
        await floor.ask("acme", number=10, lane="refining")
        assert len(floor.running) == 8
        await floor.ask("acme", lane="learning")
        for _ in range(10):
            await floor.finish()
        # They came next, ahead of all that had waited for longer, and each lane has one turn from then on.
        assert sorted(floor.lanes[8:10]) == ["learning", "refining"]
        assert len(floor.running) <= 3


async def test_a_lane_that_nobody_uses_takes_nothing_from_the_others() -> None:
    async with open_floor() as floor:
        await floor.ask("acme", number=2, lane="learning")
        await floor.finish()
        await floor.finish()
        floor.at[0] += ACTIVE_SECONDS + 1
        await floor.ask("acme", number=20)
        assert len(floor.running) == 8


async def test_whoever_has_a_turn_at_once_goes_on_at_once() -> None:
    others: list[str] = []

    async def note() -> None:
        others.append("came")

    async with anyio.create_task_group() as group:
        group.start_soon(note)
        async with FairTurns(4, 2).take("acme", "ann"):
            assert others == []
    assert others == ["came"]
