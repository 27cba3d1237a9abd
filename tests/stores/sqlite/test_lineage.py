"""Files that were replaced, copied or lost beside their logs are never served as if they were whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from refdesk.errors import StoreError
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.connections import make_folder
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX
from tests.stores.samples import NOTES, make_document, put

NAME = "store.sqlite3"


def unlink(path: Path) -> None:
    path.unlink()


def unlink_and_make_anew(path: Path) -> None:
    path.unlink()
    path.touch()


def rename_over(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


def replace_log(path: Path) -> None:
    rename_over(path.with_name(f"{path.name}-wal"))


@pytest.mark.parametrize("meddle", [unlink, unlink_and_make_anew, rename_over, replace_log])
async def test_nothing_is_acknowledged_or_read_once_the_file_is_another(
    tmp_path: Path, meddle: Callable[[Path], None]
) -> None:
    path = tmp_path / NAME
    async with open_store(path) as store:
        await put(store, make_document("a", "apple"))
        meddle(path)
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            await put(store, make_document("b", "bread"))
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            await store.get_documents(NOTES, ["a"])
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            await store.check()


def copy_all(folder: Path, to: Path) -> None:
    to.mkdir()
    for file in folder.glob(f"{NAME}*"):
        shutil.copy(file, to)


async def cut_off(folder: Path, *batches: list[str]) -> list[Path]:
    """Return copies of all files of a store in use, one after each batch: what a kill would leave."""
    left: list[Path] = []
    make_folder(folder / NAME)
    async with open_store(folder / NAME) as store:
        for number, batch in enumerate(batches):
            for id in batch:
                await put(store, make_document(id, f"note {id}"))
            left.append(folder / f"left-{number}")
            copy_all(folder, left[-1])
    return left


async def open_again(folder: Path) -> int:
    async with open_store(folder / NAME, patience_seconds=0.2) as store:
        return sum(sum(each.documents.values()) for each in await store.get_statistics())


async def refuse(folder: Path) -> str:
    """Return why the store is not opened, twice the same, its file left as it was."""
    before = (folder / NAME).read_bytes()
    reasons = set[str]()
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await open_again(folder)
        reasons.add(caught.value.message)
    assert (folder / NAME).read_bytes() == before
    (reason,) = reasons
    return reason


async def test_after_a_kill_everything_acknowledged_is_there(tmp_path: Path) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    assert await open_again(left) == 3
    assert await open_again(left) == 3


KILLED_AFTER_THE_FIRST_COMMIT = """
import os, sys, anyio
from pathlib import Path
from refdesk.stores.sqlite import lineage, open_store

lineage.Seal.write = lambda self, store, commits: os._exit(9)

async def make():
    async with open_store(Path(sys.argv[1])):
        pass

anyio.run(make)
"""


def kill_after_first_commit(folder: Path) -> Path:
    """Kill who makes a store before its first commit is on record; then let another program move the log into it."""
    path = folder / NAME
    make_folder(path)
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_THE_FIRST_COMMIT, str(path)], check=False)
    assert killed.returncode == 9
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint")
    assert not path.with_name(f"{NAME}-wal").exists()
    return path


async def test_a_kill_right_after_the_first_commit_leaves_a_store_that_opens(tmp_path: Path) -> None:
    kill_after_first_commit(tmp_path)
    assert await open_again(tmp_path) == 0


async def test_such_a_file_in_another_place_is_doubted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    shutil.copy(kill_after_first_commit(tmp_path), tmp_path / "copied")
    assert "was in use when it was copied" in await refuse(tmp_path / "copied")


async def test_a_kill_while_the_log_was_moved_into_the_file_damages_nothing(tmp_path: Path) -> None:
    [left] = await cut_off(tmp_path / "desk", ["a", "b"])
    connection = Connection(left / NAME, 0)
    connection.execute("CREATE TABLE passing (x)")
    connection.execute("DROP TABLE passing")
    copy_all(left, tmp_path / "torn")
    with (tmp_path / "torn" / NAME).open("r+b") as file:
        # The first page, on which the kill came: the log has it whole.
        file.seek(100)
        file.write(b"\xff" * 400)
    assert await open_again(tmp_path / "torn") == 2
    connection.close()


async def test_a_store_that_was_closed_may_be_copied_and_one_in_use_not_without_its_log(tmp_path: Path) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    (tmp_path / "closed").mkdir()
    shutil.copy(tmp_path / "a" / NAME, tmp_path / "closed")
    assert await open_again(tmp_path / "closed") == 3
    (tmp_path / "in-use").mkdir()
    shutil.copy(left / NAME, tmp_path / "in-use")
    assert "was in use when it was copied" in await refuse(tmp_path / "in-use")


@pytest.mark.parametrize("keeps_seal", [True, False])
async def test_a_log_that_was_lost_after_a_kill_is_missed(tmp_path: Path, keeps_seal: bool) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    (left / f"{NAME}-wal").unlink()
    if not keeps_seal:
        (left / f"{NAME}{SEAL_SUFFIX}").unlink()
    assert "its log" in await refuse(left)


async def test_a_log_that_was_cut_is_missed(tmp_path: Path) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    os.truncate(left / f"{NAME}-wal", 4096)
    assert "commits are missing" in await refuse(left)


async def test_the_log_of_an_earlier_time_is_not_mixed_in(tmp_path: Path) -> None:
    early, late = await cut_off(tmp_path / "a", ["x"], ["y", "z"])
    shutil.copy(early / f"{NAME}-wal", late)
    assert "are missing" in await refuse(late)


async def test_the_log_of_another_store_is_not_mixed_in(tmp_path: Path) -> None:
    [mine] = await cut_off(tmp_path / "a", ["x", "y"])
    [theirs] = await cut_off(tmp_path / "b", ["z"])
    shutil.copy(theirs / f"{NAME}-wal", mine)
    assert "is of another file" in await refuse(mine)


async def test_a_log_put_back_beside_a_file_that_was_closed_since_is_not_mixed_in(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    [left] = await cut_off(folder, ["x", "y"])
    shutil.copy(left / f"{NAME}-wal", folder)
    assert "of an earlier time" in await refuse(folder)


async def test_an_earlier_copy_in_the_place_of_the_file_is_missed(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    await cut_off(folder, ["x"])
    shutil.copy(folder / NAME, tmp_path / "earlier")
    async with open_store(folder / NAME) as store:
        await put(store, make_document("y", "note y"))
    shutil.copy(tmp_path / "earlier", folder / NAME)
    assert "older than what was acknowledged" in await refuse(folder)


async def test_a_file_that_is_gone_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    await cut_off(folder, ["x"])
    (folder / NAME).unlink()
    with pytest.raises(StoreError, match="was here and is gone"):
        await open_again(folder)
    (folder / f"{NAME}{SEAL_SUFFIX}").unlink()
    assert await open_again(folder) == 0
