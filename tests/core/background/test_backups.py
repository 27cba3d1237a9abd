"""Backups are made when they are due, by one process, rotated, and their failures are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from refdesk.core.background.backups import (
    KIND,
    LEASE,
    BackupKeeper,
    Made,
    Schedule,
    find_problem,
    note_made,
    read_status,
)
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.clock import FixedClock
from refdesk.core.writing import audit
from refdesk.errors import StoreError
from refdesk.model import SHARED_ORG
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class Desk:
    """A store, a clock, and a way to make backups that can be told to fail."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.clock = FixedClock(NOW)
        self.store: Store = MemoryStore(self.clock)
        self.schedule = Schedule(DAY, keep, folder)
        self.failure = ""
        self.made = 0

    def make(self, target: Path) -> Made:
        if self.failure:
            raise StoreError(self.failure)
        self.made += 1
        target.write_text("backup")
        return Made(6, 1)

    def is_own(self, path: Path) -> bool:
        return path.read_text() in ("backup", "")

    def keeper(self) -> BackupKeeper:
        return BackupKeeper(self.store, self.clock, self.schedule, self.make, self.is_own)

    async def find_problem(self) -> str | None:
        return find_problem(await read_status(self.store), self.schedule, self.clock.now(), NOW)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "backups")


async def test_one_is_made_at_once_and_then_when_the_interval_has_passed(desk: Desk) -> None:
    assert await desk.keeper().run_once()
    assert not await desk.keeper().run_once()
    desk.clock.advance(DAY - timedelta(seconds=1))
    assert not await desk.keeper().run_once()
    desk.clock.advance(timedelta(seconds=1))
    assert await desk.keeper().run_once()
    status = await read_status(desk.store)
    assert (status.made_at, status.name) == (NOW + DAY, "refdesk-20260302T120000Z.sqlite3")
    assert [entry.act["action"] for entry in await desk.store.get_audit(SHARED_ORG)] == ["backup", "backup"]
    assert await desk.find_problem() is None


async def test_only_so_many_are_kept_and_nothing_else_is_removed(desk: Desk) -> None:
    folder = desk.schedule.folder
    folder.mkdir()
    (folder / "refdesk-20260102T000000Z.sqlite3").write_text("of another desk")
    for name in ("mine.sqlite3", "refdesk-2026.sqlite3", "refdesk-20260101T000000Z.sqlite3.partial"):
        (folder / name).touch()
    for _ in range(4):
        assert await desk.keeper().run_once()
        desk.clock.advance(DAY)
    assert list_names(folder) == [
        "mine.sqlite3",
        "refdesk-2026.sqlite3",
        "refdesk-20260102T000000Z.sqlite3",
        "refdesk-20260303T120000Z.sqlite3",
        "refdesk-20260304T120000Z.sqlite3",
    ]


async def test_what_cannot_be_removed_ends_nothing_and_is_said(desk: Desk) -> None:
    stuck = desk.schedule.folder / "refdesk-20200101T000000Z.sqlite3"
    stuck.mkdir(parents=True)  # no file, so it cannot be unlinked, as little as one of another user in a sticky folder
    desk.is_own = lambda path: True
    for _ in range(4):
        assert await desk.keeper().run_once()
        assert stuck.name in (await desk.find_problem() or "") or desk.made < 2
        desk.clock.advance(DAY)
    assert len(list_names(desk.schedule.folder)) == 3
    stuck.rmdir()
    assert await desk.keeper().run_once()
    assert await desk.find_problem() is None


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_of_several_processes_one_makes_it(desk: Desk) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(desk.keeper().run_once)
    assert desk.made == 1
    desk.clock.advance(DAY)
    lease = Lease(LEASE, desk.store, desk.clock, Holder(host="elsewhere"))
    assert await lease.acquire()
    assert not await desk.keeper().run_once()
    await lease.release()
    assert await desk.keeper().run_once()


async def test_a_failure_is_told_kept_from_removing_anything_and_tried_again(desk: Desk) -> None:
    assert await desk.keeper().run_once()
    desk.clock.advance(DAY)
    desk.failure = "The disk that takes the backup is full."
    assert not await desk.keeper().run_once()
    assert "disk that takes the backup is full" in (await desk.find_problem() or "")
    assert len(list_names(desk.schedule.folder)) == 1
    desk.failure = ""
    assert not await desk.keeper().run_once()
    desk.clock.advance(timedelta(minutes=10))
    assert await desk.keeper().run_once()
    assert await desk.find_problem() is None


async def test_overdue_backups_are_a_problem_and_one_made_by_hand_counts(desk: Desk) -> None:
    desk.clock.advance(2 * DAY)
    assert await desk.find_problem() is None
    desk.clock.advance(timedelta(seconds=1))
    assert "none was made" in (await desk.find_problem() or "")
    await note_made(desk.store, desk.clock, audit.SERVER, "by-hand", Made(1, 1))
    assert await desk.find_problem() is None
    assert not await desk.keeper().run_once()
    assert [record.key.name for record in await desk.store.list_metadata(KIND)] == ["made"]


async def test_a_backup_dated_in_the_future_stops_none_and_hides_no_failure(desk: Desk) -> None:
    """The clock was ten years ahead for a moment."""
    await note_made(desk.store, FixedClock(NOW + 3650 * DAY), audit.SERVER, "ahead", Made(1, 1))
    desk.clock.advance(2 * DAY + timedelta(seconds=1))
    assert "overdue" in (await desk.find_problem() or "")
    desk.failure = "The disk that takes the backup is full."
    assert not await desk.keeper().run_once()
    assert "disk that takes the backup is full" in (await desk.find_problem() or "")
    desk.failure = ""
    desk.clock.advance(timedelta(minutes=10))
    assert await desk.keeper().run_once()
    assert (await read_status(desk.store)).made_at == desk.clock.now()
    assert await desk.find_problem() is None
    assert not await desk.keeper().run_once()
    # So does a failure that is.
    desk.failure = "full"
    desk.clock.advance(3650 * DAY)
    assert not await desk.keeper().run_once()
    desk.failure = ""
    desk.clock.advance(-3649 * DAY)
    assert await desk.keeper().run_once()
