"""Who makes a skill goes before who refines one, and neither keeps the other from its end."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import anyio

from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills.giving_way import Precedence
from tests.toolsets.skills.conftest import INVOICE, make_desk

HOUR = 3600.0


async def test_a_refinement_waits_while_a_skill_is_made_and_not_longer() -> None:
    precedence, done = Precedence(), list[str]()

    async def refine() -> None:
        await precedence.give_way(perf_counter() - HOUR)
        done.append("refined")

    with anyio.fail_after(HOUR):
        async with anyio.create_task_group() as group:
            with precedence.going_first(), precedence.going_first():
                group.start_soon(refine)
                await anyio.wait_all_tasks_blocked()
                done.append("made")
    assert done == ["made", "refined"]


async def test_a_refinement_that_has_given_way_for_long_enough_goes_on() -> None:
    precedence = Precedence()
    with anyio.fail_after(HOUR), precedence.going_first():
        await precedence.give_way(perf_counter())


async def test_where_no_skill_is_made_nothing_waits() -> None:
    precedence = Precedence()
    with precedence.going_first():
        pass
    with anyio.fail_after(HOUR):
        await precedence.give_way(perf_counter() - 100 * HOUR)


async def test_updates_come_to_their_end_beside_creations_without_one() -> None:
    call, made, updated = make_desk(MemoryStore()).serve(), list[dict[str, Any]](), anyio.Event()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]

    async def create(maker: int) -> None:
        number = 0
        while not updated.is_set():
            number += 1
            talk = f"Customer: My scanner {maker} shows fault {number}.\nAgent: Please open lid {number} of {maker}."
            made.append(await call("create_skill", conversation=talk))

    async with anyio.create_task_group() as group:
        for maker in range(3):
            group.start_soon(create, maker)
        for number in range(4):
            talk = f"Customer: My invoice {number} is wrong.\nAgent: I have replaced it, and {number} more."
            await call("update_skill", skill_id=id, conversation=talk)
        updated.set()
    assert (await call("get_skill", skill_id=id))["version"] == 5
    assert made
