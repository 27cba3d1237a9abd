"""Full disks, damaged files, held locks and cancelled tasks: a clear error, nothing half done, and on it goes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import apsw
import pytest

from refdesk.errors import InvalidInputError, StoreError
from refdesk.model import CollectionStatistics, Metadata, MetadataKey
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.counting import Counts
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.failures import describe, translated
from tests.stores.samples import NOTES, asking, find_ids, make_document, put, revise

KEY = MetadataKey("acme", "count", "n")
SMALL, LARGE = make_document("small", "apple"), make_document("large", "word " * 100_000)


def open_beside(folder: Path) -> Connection:
    """Return another connection to the file of the `sqlite` fixture."""
    return Connection(folder / "store.sqlite3", 0)


async def test_a_cancelled_transaction_is_undone_and_the_next_one_works(sqlite: Store) -> None:
    with anyio.CancelScope() as scope:
        async with sqlite.transaction() as transaction:
            await transaction.put_documents([make_document("a")])
            scope.cancel()
            await transaction.put_documents([make_document("b")])
    assert scope.cancelled_caught
    assert await sqlite.get_digests(NOTES) == {}
    await put(sqlite, make_document("c"))
    assert list(await sqlite.get_digests(NOTES)) == ["c"]


async def test_many_tasks_cancelled_at_any_point_leave_whole_transactions_only(sqlite: Store) -> None:
    async def write(number: int) -> None:
        async with sqlite.transaction() as transaction:
            await transaction.put_documents([make_document(f"{number}-a")])
            await transaction.put_documents([make_document(f"{number}-b")])

    for checkpoints in range(30):
        async with anyio.create_task_group() as group:
            group.start_soon(write, checkpoints)
            for _ in range(checkpoints * 20):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    ids = set(await sqlite.get_digests(NOTES))
    assert {id.split("-")[0] + "-a" for id in ids} | {id.split("-")[0] + "-b" for id in ids} == ids
    await put(sqlite, make_document("last"))


async def test_a_task_that_waits_for_another_process_can_be_cancelled(tmp_path: Path, sqlite: Store) -> None:
    other = open_beside(tmp_path)
    other.execute("BEGIN IMMEDIATE")
    with anyio.fail_after(120):
        with anyio.move_on_after(0.05) as scope:
            await put(sqlite, make_document("a"))
        assert scope.cancelled_caught
    other.close()
    await put(sqlite, make_document("b"))
    assert list(await sqlite.get_digests(NOTES)) == ["b"]


async def test_a_store_held_too_long_by_another_process_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, patience_seconds=0.3) as store:
        other = open_beside(tmp_path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Another process held the store too long"):
            await put(store, make_document("a"))
        with pytest.raises(StoreError, match="Another process held the store too long"):
            await store.check()
        assert await find_ids(store, asking()) == []
        other.close()
        await put(store, make_document("a"))
        await store.check()


async def test_reads_go_on_while_another_process_writes(tmp_path: Path, sqlite: Store) -> None:
    await put(sqlite, make_document("a", "apple"))
    other = open_beside(tmp_path)
    other.execute("BEGIN IMMEDIATE; UPDATE documents SET title = 'half done'")
    (document,) = await sqlite.get_documents(NOTES, ["a"])
    assert document == make_document("a", "apple")
    assert await find_ids(sqlite, asking("apple")) == ["a"]
    other.close()


@pytest.fixture
async def small(tmp_path: Path) -> AsyncGenerator[tuple[Store, Callable[[int], None]]]:
    """A store with a document, and what sets how many pages its file may have."""
    writers: list[Any] = []
    hooks: list[Any] = apsw.connection_hooks
    hooks.append(writers.append)
    async with open_store(tmp_path / "small.sqlite3") as store:
        hooks.remove(writers.append)
        await put(store, SMALL)
        yield store, lambda pages: writers[0].pragma("max_page_count", pages)


async def test_a_full_disk_is_said_and_undone_until_there_is_space(small: tuple[Store, Callable[[int], None]]) -> None:
    store, limit_pages = small
    limit_pages(60)
    with pytest.raises(StoreError, match="full"):
        await put(store, revise(SMALL, body="pear"), LARGE)
    assert await find_ids(store, asking("apple")) == ["small"]
    limit_pages(100_000)
    await put(store, LARGE)
    assert set(await store.get_digests(NOTES)) == {"small", "large"}


async def test_who_goes_on_after_a_full_disk_commits_no_half(small: tuple[Store, Callable[[int], None]]) -> None:
    store, limit_pages = small
    limit_pages(60)

    async def ignore_the_failure() -> None:
        async with store.transaction() as transaction:
            await transaction.put_documents([revise(SMALL, body="pear")])
            with suppress(StoreError):
                await transaction.put_documents([LARGE])
            await transaction.put_metadata([Metadata(KEY, {})])

    with pytest.raises(StoreError):
        await ignore_the_failure()
    assert await store.get_metadata(KEY) is None
    assert await store.get_documents(NOTES, ["small"]) == [SMALL]


@pytest.mark.parametrize("refusal", [apsw.FullError("full"), apsw.IOError("disk I/O error")])
async def test_what_is_on_the_disk_is_acknowledged_though_the_log_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: apsw.Error
) -> None:
    moved, checkpoint = list[bool](), Connection.checkpoint

    def move(connection: Connection) -> bool:
        if not moved:
            moved.append(False)
            raise refusal
        moved.append(checkpoint(connection))
        return moved[-1]

    async with open_store(tmp_path / "store.sqlite3"):
        pass
    monkeypatch.setattr(Connection, "checkpoint", move)
    async with open_store(tmp_path / "store.sqlite3") as store:
        await put(store, make_document("a"))
        await put(store, make_document("b"))
        assert moved == [False, True]
        assert sorted(await store.get_digests(NOTES)) == ["a", "b"]


async def test_a_damaged_file_is_said_without_naming_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        await put(store, *(make_document(f"{n}", "word " * 200) for n in range(100)))
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as caught:
        async with open_store(path) as store:
            await store.get_documents(NOTES, ["1"])
    assert str(tmp_path) not in caught.value.message
    assert isinstance(caught.value.__cause__, apsw.Error)


async def test_a_transaction_that_has_ended_takes_no_more_orders(sqlite: Store) -> None:
    async with sqlite.transaction() as transaction:
        await transaction.put_metadata([Metadata(KEY, {"n": 1})])
    with pytest.raises(RuntimeError, match="has ended"):
        await transaction.put_metadata([Metadata(KEY, {"n": 2})])
    assert await sqlite.get_metadata(KEY) == Metadata(KEY, {"n": 1})


async def test_asking_for_an_id_that_is_no_text_is_the_callers_mistake(sqlite: Store) -> None:
    await put(sqlite, make_document("a"))
    with pytest.raises(InvalidInputError):
        await sqlite.get_documents(NOTES, ["\ud800"])
    assert await sqlite.get_documents(NOTES, ["a"]) == [make_document("a")]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (apsw.BusyError("x"), "Another process"),
        (apsw.FullError("x"), "full"),
        (apsw.CorruptError("x"), "damaged"),
        (apsw.NotADBError("x"), "not a SQLite database"),
        (apsw.ReadOnlyError("x"), "read-only"),
        (apsw.CantOpenError("x"), "cannot be opened"),
        (apsw.IOError("x"), "Check the disk"),
        (apsw.MisuseError("secret detail"), "MisuseError"),
    ],
)
def test_each_failure_says_what_to_do_and_nothing_of_the_engines_words(error: apsw.Error, words: str) -> None:
    assert words in describe(error)
    assert str(error) not in describe(error).split()
    with pytest.raises(StoreError) as caught, translated():
        raise error
    assert caught.value.__cause__ is error


def test_what_the_system_refuses_is_said_without_a_path() -> None:
    with pytest.raises(StoreError, match=r"\(Permission denied\)") as caught, translated():
        raise PermissionError(13, "Permission denied", "/private/place")
    assert "private" not in caught.value.message


async def test_whether_a_store_answers_is_asked_without_counting_what_is_in_it(
    sqlite: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[CollectionStatistics]:
        raise AssertionError("everything was counted")

    await put(sqlite, make_document("a"))
    monkeypatch.setattr(Counts, "get", refuse)
    await sqlite.check()
