"""What a bug ends is written down, and what would bring one out is taken."""

from __future__ import annotations

import pytest

from refdesk.core.background import sync_log
from refdesk.core.background.sync_log import BUG
from tests.core.background.test_syncing import make_bench, make_record


async def test_a_run_that_a_bug_ended_is_remembered_as_failed_without_what_the_bug_says() -> None:
    async def break_down(_page: int) -> None:
        raise OverflowError("canary")

    bench = make_bench([make_record("a")])
    bench.source.then = break_down
    with pytest.raises(OverflowError):
        await bench.syncer.sync()
    [run] = await sync_log.read_runs(bench.store, "news")
    assert (run.outcome, run.error, run.added) == ("failed", BUG, 1)
    assert (await bench.syncer.get_status()).last_error == BUG


async def test_a_source_that_only_has_the_first_of_all_dates_is_read_from_the_start_each_time() -> None:
    bench = make_bench([make_record("a", modified="0001-01-01")])
    await bench.syncer.sync()
    report = await bench.syncer.sync()
    assert (report.outcome, report.unchanged) == ("succeeded", 1)


async def test_a_bug_in_the_source_leaves_the_lease_free() -> None:
    async def break_down(_page: int) -> None:
        raise ZeroDivisionError

    bench = make_bench([make_record("a")])
    bench.source.then = break_down
    with pytest.raises(ZeroDivisionError):
        await bench.syncer.sync()
    bench.source.then = None
    assert (await bench.syncer.sync()).outcome == "succeeded"
