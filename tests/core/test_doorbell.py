from __future__ import annotations

import anyio

from refdesk.core.doorbell import Doorbell


async def test_a_ring_wakes_the_one_who_waits() -> None:
    bell = Doorbell()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            group.start_soon(bell.wait, 1000)
            await anyio.lowlevel.checkpoint()
            bell.ring()


async def test_a_ring_before_the_wait_is_kept() -> None:
    bell = Doorbell()
    bell.ring()
    with anyio.fail_after(120):
        await bell.wait(1000)


async def test_a_ring_is_used_up_by_one_wait() -> None:
    bell = Doorbell()
    bell.ring()
    await bell.wait(1000)
    with anyio.move_on_after(0.01) as scope:
        await bell.wait(1000)
    assert scope.cancelled_caught
