"""Many transactions to one commit: each is whole or undone, and nobody hears of success before it is on the disk."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import apsw
import pytest

from refdesk.core.writing import audit
from refdesk.errors import StoreError
from refdesk.model import Metadata, MetadataKey
from refdesk.protocols import Store, Transaction
from refdesk.stores.sqlite import connections, open_store, transactions
from refdesk.stores.sqlite.driver import Connection
from tests.stores.samples import NOTES, day, make_document, put

WRITERS = 32
KEY = MetadataKey("acme", "count", "n")
MORNING = day(1)


@dataclass(slots=True)
class Commits:
    """Counts the commits of the writing connection; `refuse` says which of them fail."""

    count: int = 0
    refuse: Callable[[], bool] = field(default=lambda: False)

    def on_commit(self) -> bool:
        self.count += 1
        return self.refuse()


@dataclass(slots=True)
class Desk:
    """A store whose writing connection is watched, and a connection of somebody else to its file."""

    store: Store
    commits: Commits
    connection: Any
    beside: Connection

    def list_stored(self) -> set[str]:
        return {id for (id,) in self.beside.execute("SELECT id FROM documents")}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    opened: list[Any] = []
    hooks: list[Any] = apsw.connection_hooks
    hooks.append(opened.append)
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        hooks.remove(opened.append)
        await put(store, make_document("first"))
        commits = Commits()
        opened[0].set_commit_hook(commits.on_commit)
        beside = Connection(path, 0)
        yield Desk(store, commits, opened[0], beside)
        beside.close()


async def write_all(desk: Desk, write: Callable[[Transaction, int], Any], count: int = WRITERS) -> set[int]:
    """Let so many tasks write at once; return who was told that it is stored, each of them seen there by others."""
    told: set[int] = set()

    async def run(number: int) -> None:
        try:
            async with desk.store.transaction() as transaction:
                await write(transaction, number)
        except (StoreError, ZeroDivisionError):
            return
        assert f"{number}" in desk.list_stored()
        told.add(number)

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(run, number)
    return told


async def write_one(store: Store, write: Callable[[Transaction, int], Any], number: int) -> None:
    async with store.transaction() as transaction:
        await write(transaction, number)


async def store_one(transaction: Transaction, number: int) -> None:
    await transaction.put_documents([make_document(f"{number}")])


async def test_one_transaction_is_one_commit(desk: Desk) -> None:
    for number in range(3):
        await put(desk.store, make_document(f"{number}"))
        assert desk.commits.count == number + 1


async def test_those_who_write_at_once_share_a_commit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_SECONDS", 3600.0)
    assert await write_all(desk, store_one) == set(range(WRITERS))
    assert desk.commits.count <= 3


async def test_whoever_came_with_the_last_group_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE", "PATIENCE_FOR_NEXT"):
        monkeypatch.setattr(transactions, name, 1e6)
    monkeypatch.setattr(transactions, "MOST_SECONDS", 3600.0)

    async def write_later(number: int) -> None:
        for _ in range(300 * number):
            await anyio.lowlevel.checkpoint()
        await put(desk.store, make_document(f"again-{number}"))

    await write_all(desk, store_one, 8)  # the first commits while the others line up
    before = desk.commits.count
    async with anyio.create_task_group() as group:
        for number in range(7):
            group.start_soon(write_later, number)
    assert desk.commits.count == before + 1


async def test_nobody_waits_long_for_those_who_stay_away(desk: Desk) -> None:
    await write_all(desk, store_one, 8)
    before = desk.commits.count
    with anyio.fail_after(120):
        for number in range(3):
            await put(desk.store, make_document(f"alone-{number}"))
    assert desk.commits.count == before + 3


async def test_those_who_go_on_do_not_wait_for_all_when_one_has_finished(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 1e9)
    monkeypatch.setattr(transactions, "MOST_SECONDS", 3600.0)
    await write_all(desk, store_one, 8)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(put, desk.store, make_document(f"again-{number}"))


async def test_a_group_has_an_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_MEMBERS", 4)
    assert await write_all(desk, store_one) == set(range(WRITERS))
    assert desk.commits.count >= WRITERS // 4


async def test_who_fails_is_undone_alone(desk: Desk) -> None:
    async def write(transaction: Transaction, number: int) -> None:
        await store_one(transaction, number)
        if number % 3 == 0:
            raise ZeroDivisionError

    wanted = {number for number in range(WRITERS) if number % 3}
    assert await write_all(desk, write) == wanted
    assert desk.list_stored() == {"first", *map(str, wanted)}
    assert desk.commits.count <= 3


async def test_each_sees_what_those_before_it_wrote(desk: Desk) -> None:
    async def count_up(transaction: Transaction, number: int) -> None:
        await store_one(transaction, number)
        record = await transaction.get_metadata(KEY)
        value = int(str(record.value["n"])) if record is not None else 0
        await transaction.put_metadata([Metadata(KEY, {"n": value + 1})])

    await write_all(desk, count_up)
    record = await desk.store.get_metadata(KEY)
    assert record is not None
    assert record.value == {"n": WRITERS}


async def test_the_audit_log_goes_on_from_the_last_act_that_was_kept(desk: Desk) -> None:
    async def act(transaction: Transaction, number: int) -> None:
        await store_one(transaction, number)
        await audit.append(transaction, "acme", MORNING, {"action": f"{number}"})
        if number % 3 == 0:
            raise ZeroDivisionError

    wanted = await write_all(desk, act)
    verdict = await audit.verify(desk.store, "acme")
    assert (verdict.broken, verdict.entries) == (None, len(wanted))
    acts = [entry.act["action"] for entry in await desk.store.get_audit("acme")]
    assert acts == [f"{number}" for number in sorted(wanted)]


async def test_the_end_of_the_audit_log_is_read_once_for_all_of_a_commit(desk: Desk) -> None:
    read: list[str] = []

    def watch(cursor: object, statement: str, bindings: object) -> bool:
        del cursor, bindings
        read.append(statement)
        return True

    async def act(transaction: Transaction, number: int) -> None:
        await store_one(transaction, number)
        await audit.append(transaction, "acme", MORNING, {"action": f"{number}"})

    await write_one(desk.store, act, WRITERS)
    desk.commits.count = 0
    desk.connection.set_exec_trace(watch)
    async with anyio.create_task_group() as group:
        for number in range(WRITERS):
            group.start_soon(write_one, desk.store, act, number)
    assert sum("FROM audit" in statement for statement in read) == desk.commits.count


async def test_a_commit_that_fails_is_told_to_all_it_was_for(desk: Desk) -> None:
    desk.commits.refuse = lambda: True
    assert await write_all(desk, store_one) == set()
    assert desk.list_stored() == {"first"}
    desk.commits.refuse = lambda: False
    assert await write_all(desk, store_one) == set(range(WRITERS))


async def test_who_only_read_waits_for_what_it_read(desk: Desk) -> None:
    desk.commits.refuse = lambda: True
    seen: list[bool] = []

    async def write(transaction: Transaction, number: int) -> None:
        # The first to come commits alone: nobody else waits yet.
        if number < 2:
            await store_one(transaction, number)
        else:
            seen.append((await transaction.get_documents(NOTES, ["1"])) != [None])

    assert await write_all(desk, write, 3) == set()
    assert seen == [True]


async def test_a_full_disk_ends_the_group_and_nobody_in_it_is_told_otherwise(desk: Desk) -> None:
    pages = desk.connection.pragma("page_count")

    async def write(transaction: Transaction, number: int) -> None:
        if number == WRITERS // 2:
            desk.connection.pragma("max_page_count", pages + 20)
            await transaction.put_documents([make_document("large", "word " * 100_000)])
        await store_one(transaction, number)

    told = await write_all(desk, write)
    assert {f"{number}" for number in told} | {"first"} == desk.list_stored()
    desk.connection.pragma("max_page_count", 100_000)
    await put(desk.store, make_document("last"))
    assert "last" in desk.list_stored()


@pytest.mark.parametrize("seed", range(5))
async def test_tasks_cancelled_at_any_point_take_nobody_along(desk: Desk, seed: int) -> None:
    chance = random.Random(seed)
    scopes = [anyio.CancelScope() for _ in range(WRITERS)]
    told: set[str] = set()

    async def run(number: int) -> None:
        with scopes[number]:
            async with desk.store.transaction() as transaction:
                for part in "ab":
                    await transaction.put_documents([make_document(f"{number}{part}")])
                    await anyio.lowlevel.checkpoint()
            told.update({f"{number}a", f"{number}b"})

    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            for number in range(WRITERS):
                group.start_soon(run, number)
            for victim in chance.sample(range(WRITERS), WRITERS // 2):
                for _ in range(chance.randrange(20)):
                    await anyio.lowlevel.checkpoint()
                scopes[victim].cancel()
    stored = desk.list_stored() - {"first"}
    assert told <= stored
    assert {id[:-1] + other for id in stored for other in "ab"} == stored
    await put(desk.store, make_document("last"))
    assert "last" in desk.list_stored()


async def test_a_long_log_is_moved_when_the_commit_that_made_it_so_is_acknowledged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_move, moved = threading.Event(), list[bool]()
    checkpoint = Connection.checkpoint

    def move(connection: Connection) -> bool:
        may_move.wait()
        moved.append(checkpoint(connection))
        return moved[-1]

    monkeypatch.setattr(Connection, "checkpoint", move)
    monkeypatch.setattr(connections, "LONG_LOG_PAGES", 1)
    await put(desk.store, make_document("second"))
    assert desk.list_stored() == {"first", "second"}
    async with anyio.create_task_group() as group:
        group.start_soon(put, desk.store, make_document("third"))
        await anyio.wait_all_tasks_blocked()
        # Whoever reads waits for nothing; whoever writes does.
        assert await desk.store.get_documents(NOTES, ["second", "third"]) == [make_document("second"), None]
        monkeypatch.setattr(connections, "LONG_LOG_PAGES", 4000)
        may_move.set()
    assert moved == [True]
    assert desk.list_stored() == {"first", "second", "third"}


async def test_the_log_does_not_grow_with_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LONG_LOG_PAGES", 1000)
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        longest = 0
        for number in range(60):
            await put(store, make_document(f"{number}", body="x" * 200_000))
            longest = max(longest, (tmp_path / "store.sqlite3-wal").stat().st_size)
    page = 4096
    assert path.stat().st_size > 2 * connections.LONG_LOG_PAGES * page
    assert longest < 2 * connections.LONG_LOG_PAGES * page
