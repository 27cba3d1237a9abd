from __future__ import annotations

import anyio

from refdesk.core.doorbell import Doorbell
from refdesk.protocols import EmbeddingJob
from tests.engines.redis import until
from tests.queues.conftest import Bench


def make_job(n: int, text_digest: str = "d") -> EmbeddingJob:
    return EmbeddingJob("acme", "knowledge", f"note {n}", text_digest)


async def is_rung(doorbell: Doorbell) -> bool:
    """Return whether somebody who waits would wake at once."""
    with anyio.move_on_after(0.05) as scope:
        await doorbell.wait(1000)
    return not scope.cancelled_caught


async def test_what_is_announced_reaches_a_worker_or_wakes_who_looks(bench: Bench) -> None:
    async with bench.working():
        bench.queue.announce([make_job(1)])

        async def is_heard() -> bool:
            return bool(bench.done) or await is_rung(bench.doorbell)

        await until(is_heard)
    assert bench.done in ([], ["note 1"])


async def test_an_announcement_of_nothing_in_particular_wakes_who_looks(bench: Bench) -> None:
    assert not await is_rung(bench.doorbell)
    bench.queue.announce([])
    assert await is_rung(bench.doorbell)


async def test_what_is_enqueued_is_handed_out_exactly_if_the_queue_says_so(bench: Bench) -> None:
    jobs = [make_job(n) for n in range(250)]
    is_taken = await bench.queue.enqueue(jobs)
    assert is_taken == bench.queue.is_shared
    if not is_taken:
        async with bench.working():
            pass
        assert bench.done == []
        return

    async def are_all_done() -> bool:
        return len(bench.done) >= len(jobs)

    async with bench.working():
        await until(are_all_done)
    assert sorted(bench.done) == sorted(job.id for job in jobs)


async def test_a_job_that_waits_is_not_added_again_but_another_text_is(bench: Bench) -> None:
    waiting = [make_job(1), make_job(1), make_job(2), make_job(1, "other")]
    taken = [await bench.queue.enqueue([job]) for job in waiting]
    if not all(taken):
        assert not any(taken)
        return
    await bench.queue.enqueue(waiting)
    last = EmbeddingJob("acme", "knowledge", "last")
    await bench.queue.enqueue([last])

    async def is_last_done() -> bool:
        return "last" in bench.done and len(bench.done) >= 4

    async with bench.working():
        await until(is_last_done)
    assert sorted(bench.done) == ["last", "note 1", "note 1", "note 2"]


async def test_a_job_that_is_done_can_be_asked_for_again(bench: Bench) -> None:
    async with bench.working():
        for count in (1, 2):
            if not await bench.queue.enqueue([make_job(1)]):
                assert not bench.queue.is_shared
                return

            async def is_done_so_often(count: int = count) -> bool:
                # The same job is free again a moment after it was done.
                await bench.queue.enqueue([make_job(1)])
                return len(bench.done) >= count

            await until(is_done_so_often)


async def test_a_queue_that_works_has_no_trouble(bench: Bench) -> None:
    assert bench.queue.trouble is None
