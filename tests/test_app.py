"""A desk's health: green while writes become searchable, red when they do not."""

from __future__ import annotations

import fcntl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from refdesk.app import SET_ASIDE, STUMBLING, Desk, open_desk
from refdesk.core.background.backups import BackupKeeper, Made, note_made, read_status
from refdesk.core.background.embedding import MAX_ATTEMPTS, Indexer
from refdesk.core.background.health import STALLED_AFTER
from refdesk.core.background.sync_log import BUG, SyncStatus, write_status
from refdesk.core.clock import FixedClock
from refdesk.core.keys import KeyRing
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing import audit
from refdesk.errors import StoreError
from refdesk.factories import upkeep
from refdesk.factories.backups import choose_schedule, is_own, make_backup
from refdesk.factories.bases import Base
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import State
from refdesk.sources import SourcePage
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.freezing import Sizes
from refdesk.toolsets.azure_updates.source import AzureUpdatesSource
from tests.core.fakes import NOW, ScriptedEmbedder, make_document
from tests.server.echo import make_settings
from tests.stores.sqlite.test_freezing import wait_for_parts
from tests.toolsets.azure_updates.samples import make_record


class Bench:
    """A desk without background work, over a clock that tests move."""

    def __init__(self, home: Path, toolset: str = "knowledge") -> None:
        self.clock = FixedClock(NOW)
        self.store = MemoryStore(self.clock)
        self.embedder = ScriptedEmbedder(poison=frozenset({"venom"}))
        semantics = Semantics(self.store, self.embedder)
        indexer = Indexer(self.store, semantics, self.clock)
        base = KnowledgeBase(self.store, semantics, self.clock)
        self.base = Base(base, semantics, indexer, KeyRing(self.store, self.clock, {}))
        self.desk = Desk(make_settings(home), load_toolsets([toolset]), self.open_base, in_background=False)

    @asynccontextmanager
    async def open_base(self) -> AsyncGenerator[Base]:
        yield self.base

    async def put(self, id: str, body: str = "") -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents([make_document(id, body)])


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(made.desk.run)
        await made.desk.get_base()
        yield made
        group.cancel_scope.cancel()


async def test_health_turns_red_when_nobody_embeds_what_is_written_and_green_when_somebody_did(bench: Bench) -> None:
    await bench.put("a")
    bench.clock.advance(STALLED_AFTER)
    assert (await bench.desk.get_health()).status == "ok"
    bench.clock.advance(timedelta(seconds=1))
    health = await bench.desk.get_health()
    assert health.status == "failing"
    assert "refdesk worker" in health.problems[0]
    await bench.base.indexer.run_once()
    assert (await bench.desk.get_health()).status == "ok"


async def test_an_old_backlog_is_no_failure_of_a_desk_that_has_just_opened(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.put("a")
    bench.clock.advance(timedelta(days=9))
    async with anyio.create_task_group() as group:
        group.start_soon(bench.desk.run)
        health = await bench.desk.get_health()
        assert (health.status, health.to_json()["oldestUnembeddedSeconds"]) == ("ok", 9 * 86400)
        group.cancel_scope.cancel()


async def test_a_model_that_is_down_is_named_while_it_is_tried_again_and_after(bench: Bench) -> None:
    bench.embedder.is_down = True
    await bench.put("a")
    async with anyio.create_task_group() as group:
        group.start_soon(bench.base.indexer.run)
        with anyio.fail_after(120):
            while bench.base.indexer.trouble is None:
                await anyio.lowlevel.checkpoint()
        health = await bench.desk.get_health()
        assert health.status == "degraded"
        assert "the model is down" in health.problems[0]
        bench.clock.advance(2 * STALLED_AFTER)
        health = await bench.desk.get_health()
        assert health.status == "failing"
        assert "the model is down" in health.problems[0]
        group.cancel_scope.cancel()


async def test_what_was_set_aside_is_said_with_what_to_do(bench: Bench) -> None:
    await bench.put("bad", "venom")
    for _ in range(MAX_ATTEMPTS):
        await bench.base.indexer.run_once()
        bench.clock.advance(timedelta(days=1))
    health = await bench.desk.get_health()
    assert (health.status, health.problems) == ("degraded", (SET_ASIDE,))
    assert health.to_json()["failedEmbeddings"] == 1


async def test_a_store_that_cannot_be_opened_is_failing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def refuse() -> object:
        raise RuntimeError("broken")

    bench.desk.open_base = refuse  # pyright: ignore[reportAttributeAccessIssue]
    async with anyio.create_task_group() as group:
        group.start_soon(bench.desk.run)
        health = await bench.desk.get_health()
        assert (health.status, health.backlog) == ("failing", None)
        group.cancel_scope.cancel()


async def test_health_tells_what_is_gone_from_a_source_and_was_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "azure-updates")
    status = SyncStatus(last_success=NOW, last_full=NOW, documents=300, withheld=120)
    async with bench.store.transaction() as transaction:
        await write_status(transaction, "azure-updates", status)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.desk.run)
        await bench.desk.get_base()
        health = await bench.desk.get_health()
        assert health.status == "degraded"
        problem = health.toolsets["azure-updates"].problem or ""
        assert "120 documents are gone from the source of azure-updates" in problem
        group.cancel_scope.cancel()


async def test_backups_that_are_asked_for_and_not_made_degrade_health(bench: Bench, tmp_path: Path) -> None:
    bench.desk.settings = make_settings(tmp_path, backup_every="1d", store=None)
    assert (await bench.desk.get_health()).status == "ok"
    bench.clock.advance(timedelta(days=2, seconds=1))
    health = await bench.desk.get_health()
    assert health.status == "degraded"
    assert "Backups are overdue: none was made" in health.problems[0]
    assert "lastBackup" not in health.to_json()
    await note_made(bench.store, bench.clock, audit.SERVER, "by-hand", Made(1, 1))
    assert (await bench.desk.get_health()).to_json()["lastBackup"] == bench.clock.now().isoformat()
    bench.desk.settings = make_settings(tmp_path, backup_every="1d", store="postgresql://desk@db/desk")
    assert "not a file" in (await bench.desk.get_health()).problems[0]


async def test_a_server_makes_the_backups_that_are_asked_for(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, backup_every="1d", backup_to=tmp_path / "kept", store=None)
    async with open_desk(settings, load_toolsets(["knowledge"])) as desk:
        store = (await desk.get_base()).knowledge_base.store
        with anyio.fail_after(120):
            while (status := await read_status(store)).made_at is None:
                await anyio.lowlevel.checkpoint()
    async with open_store(tmp_path / "kept" / status.name) as backup:
        await backup.check()


async def test_desks_that_share_a_folder_for_backups_leave_each_others_alone(tmp_path: Path) -> None:
    folder, clock = tmp_path / "kept", FixedClock(NOW)
    folder.mkdir()
    (folder / "refdesk-20250101T000000Z.sqlite3.partial").touch()
    (folder / "refdesk-20250102T000000Z.sqlite3.partial-journal").touch()
    making = (folder / "refdesk-20250102T000000Z.sqlite3.partial").open("w")
    fcntl.flock(making, fcntl.LOCK_EX)
    for home in ("a", "b", "a", "a"):
        path = tmp_path / home / "refdesk.sqlite3"
        settings = make_settings(path.parent, backup_every="1d", backup_keep=1, backup_to=folder, store=None)
        schedule = choose_schedule(settings)
        assert schedule is not None
        async with open_store(path) as store:
            make, own = partial(make_backup, settings), partial(is_own, settings)
            assert await BackupKeeper(store, clock, schedule, make, own).run_once()
        clock.advance(timedelta(days=1))
    making.close()
    assert sorted(each.name for each in folder.iterdir()) == [
        "refdesk-20250102T000000Z.sqlite3.partial",
        "refdesk-20250102T000000Z.sqlite3.partial-journal",
        "refdesk-20260302T120000Z.sqlite3",
        "refdesk-20260304T120000Z.sqlite3",
    ]


async def test_a_desk_makes_an_index_that_is_missing_before_anybody_searches(tmp_path: Path) -> None:
    path = tmp_path / "desk.sqlite3"
    async with open_store(path, index_sizes=Sizes(catch_up_above=10**9)) as store, store.transaction() as transaction:
        # What is withdrawn is not embedded, which alone would make it.
        ids = [f"d{number}" for number in range(Sizes().catch_up_above)]
        await transaction.put_documents([make_document(id, state=State.WITHDRAWN) for id in ids])
    assert await wait_for_parts(path, last=0) == []
    async with open_desk(make_settings(tmp_path, store=f"sqlite:///{path}"), load_toolsets(["knowledge"])):
        await wait_for_parts(path, Sizes().catch_up_above)


async def test_a_store_that_is_away_when_a_desk_starts_leaves_it_unhurt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = anyio.Event()

    async def refuse(store: MemoryStore) -> None:
        asked.set()
        raise StoreError("away")

    monkeypatch.setattr(MemoryStore, "catch_up", refuse)
    async with open_desk(make_settings(tmp_path), load_toolsets(["knowledge"])) as desk:
        await desk.get_base()
        await asked.wait()
        await anyio.lowlevel.checkpoint()
        assert desk.broken == set()


async def test_a_bug_in_a_sync_turns_health_red_until_a_round_goes_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_mended = False
    rounds = 0

    async def read(source: AzureUpdatesSource, known: object, since: str | None) -> AsyncIterator[SourcePage]:
        nonlocal rounds
        rounds += 1
        if not is_mended:
            raise OverflowError("planted")
        yield SourcePage((make_record(),))

    monkeypatch.setattr(AzureUpdatesSource, "read_with", read)
    monkeypatch.setattr(upkeep, "RETRY_SECONDS", 0.01)
    settings = make_settings(tmp_path)
    with anyio.fail_after(120):
        async with open_desk(settings, load_toolsets(["azure-updates"], settings)) as desk:
            await desk.get_base()
            while rounds < 3:
                await anyio.lowlevel.checkpoint()
            health = await desk.get_health()
            assert (health.status, health.problems[0]) == ("failing", STUMBLING.format("sync of azure-updates"))
            assert BUG in health.problems[1]
            is_mended = True
            while desk.stumbling:
                await anyio.lowlevel.checkpoint()
            assert (await desk.get_health()).status == "ok"
    [*_, told] = [record for record in caplog.records if record.message == "syncing broke"]
    assert told.exc_info is not None
    assert told.exc_info[0] is OverflowError
