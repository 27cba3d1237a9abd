from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from refdesk.core.background.batching import Rounds
from refdesk.errors import StoreError


class Doubler:
    """Doubles numbers, in rounds that wait for the gate; a negative one breaks its round."""

    def __init__(self, most: int = 4) -> None:
        self.rounds: list[list[int]] = []
        self.gate = anyio.Event()
        self.asking = Rounds(self._double, most)
        self.answers: dict[int, int | str] = {}

    async def _double(self, numbers: Sequence[int]) -> list[int]:
        self.rounds.append(list(numbers))
        await self.gate.wait()
        if min(numbers) < 0:
            raise StoreError("no negative numbers")
        return [2 * number for number in numbers]

    async def ask(self, number: int) -> None:
        try:
            self.answers[number] = await self.asking.ask(number)
        except StoreError as error:
            self.answers[number] = error.message


async def test_what_is_asked_while_a_round_runs_is_done_together_in_the_next_ones() -> None:
    doubler = Doubler()
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(doubler.ask, number)
        await anyio.wait_all_tasks_blocked()
        assert len(doubler.rounds) == 1
        doubler.gate.set()
    assert doubler.answers == {number: 2 * number for number in range(10)}
    assert [number for one in doubler.rounds for number in one] == list(range(10))
    assert len(doubler.rounds) <= 4
    assert max(len(one) for one in doubler.rounds) == 4


async def test_a_round_that_breaks_breaks_for_those_in_it_alone() -> None:
    doubler = Doubler(most=2)
    doubler.gate.set()
    async with anyio.create_task_group() as group:
        for number in (1, -2, 3, 4, 5):
            group.start_soon(doubler.ask, number)
    broken = {number for one in doubler.rounds if -2 in one for number in one}
    assert -2 in broken
    assert doubler.answers == {
        number: "no negative numbers" if number in broken else 2 * number for number in (1, -2, 3, 4, 5)
    }


async def test_one_who_is_cancelled_takes_nobody_along() -> None:
    doubler = Doubler()
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as doomed:
            doomed.start_soon(doubler.ask, 1)
            await anyio.wait_all_tasks_blocked()
            for number in (2, 3):
                group.start_soon(doubler.ask, number)
            await anyio.wait_all_tasks_blocked()
            doomed.cancel_scope.cancel()
        doubler.gate.set()
    assert doubler.answers == {2: 4, 3: 6}
    assert 1 not in doubler.rounds[-1]


async def test_one_who_is_cancelled_while_waiting_is_not_done() -> None:
    doubler = Doubler()
    async with anyio.create_task_group() as group:
        group.start_soon(doubler.ask, 1)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await doubler.ask(2)
        doubler.gate.set()
    assert doubler.rounds == [[1]]
    assert doubler.answers == {1: 2}


async def test_each_gets_the_failure_of_his_own_round() -> None:
    doubler = Doubler()
    doubler.gate.set()
    with pytest.raises(StoreError):
        await doubler.asking.ask(-1)
    assert await doubler.asking.ask(1) == 2
