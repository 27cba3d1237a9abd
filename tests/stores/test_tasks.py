"""Tasks on every engine: one process at a time has one, and its outcome is kept as long as was said."""

from __future__ import annotations

from datetime import timedelta

from refdesk.core.background.leases import Holder
from refdesk.core.background.tasks import KEPT, LEASE, TaskLog
from refdesk.core.clock import FixedClock
from refdesk.model import Principal
from refdesk.protocols import Store
from tests.stores.samples import NOW

READER = Principal("local", "tester", frozenset({"echo:read"}))


async def test_a_task_that_another_took_over_is_not_finished_by_the_one_it_was_taken_from(store: Store) -> None:
    clock = FixedClock(NOW)
    first, second = TaskLog(store, clock, Holder(host="a")), TaskLog(store, clock, Holder(host="b"))
    task = await first.create(READER, "wait_for_it", {})
    assert await second.take_over() == []
    clock.advance(LEASE)
    assert [each.id for each in await second.take_over()] == [task.id]
    assert not await first.renew(task, "Still here")
    await first.finish(task, "completed", {"from": "the first"})
    found = await second.get(READER, task.id)
    assert found is not None
    assert (found.status, found.outcome) == ("working", None)
    await second.finish(found, "completed", {"from": "the second"})
    found = await first.get(READER, task.id)
    assert found is not None
    assert (found.status, found.outcome, found.arguments) == ("completed", {"from": "the second"}, None)
    clock.advance(KEPT - timedelta(seconds=1))
    assert await second.take_over() == []
    assert await first.get(READER, task.id) is not None
    clock.advance(timedelta(seconds=1))
    assert await second.take_over() == []
    assert await first.get(READER, task.id) is None


async def test_a_task_comes_back_as_it_was_made_and_is_its_agents_alone(store: Store) -> None:
    log = TaskLog(store, FixedClock(NOW))
    task = await log.create(READER, "wait_for_it", {"said": "ünï", "nested": {"n": [1, None, True]}})
    assert await log.get(READER, task.id) == task
    for other in (Principal("local", "another", READER.scopes), Principal("others", "tester", READER.scopes)):
        assert await log.get(other, task.id) is None
    await log.cancel(task)
    assert not await log.renew(task, "Too late")
    await log.finish(task, "completed", {"too": "late"})
    cancelled = await log.get(READER, task.id)
    assert cancelled is not None
    assert (cancelled.status, cancelled.arguments, cancelled.outcome) == ("cancelled", None, None)
