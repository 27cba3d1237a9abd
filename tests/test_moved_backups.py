"""Backups of a store that was moved while it served: of where it is now, never of the file that it was moved out of."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from refdesk.cli.doctor import check_backups
from refdesk.core.background.backups import BackupKeeper, read_status
from refdesk.core.clock import FixedClock
from refdesk.core.keeping.moves import Move, find_moves, read_move
from refdesk.errors import StoreError
from refdesk.factories.backups import choose_schedule, is_own, keep_backups, make_backup
from refdesk.factories.stores import choose_followed
from refdesk.stores.sqlite import backups, open_store
from refdesk.stores.sqlite.driver import Connection
from tests.server.echo import make_settings
from tests.stores.samples import NOW, make_document, put
from tests.test_app import Bench, bench
from tests.test_cli import refdesk
from tests.test_cli_erase import ask, store

SERVER = "postgresql://desk:secret@db:5432/desk"
MOVED_THERE = "was moved to postgresql://db:5432/desk"


__all__ = ["bench"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def move(home: Path) -> Path:
    """Move what is in a home to another file while it serves, and return that."""
    file, new = home / "refdesk.sqlite3", home.parent / "new" / "new.sqlite3"
    ask(home, "migrate", "--from", f"sqlite:///{file}", "--to", f"sqlite:///{new}", "--serving")
    return new


async def begin(path: Path, target: str = SERVER) -> None:
    async with open_store(path) as opened:
        moves = find_moves(opened)
        assert moves is not None
        await moves.begin(Move(target))


async def read_state(path: Path) -> Move | None:
    async with open_store(path) as opened:
        return await read_move(opened)


async def switch(path: Path, target: str = SERVER) -> None:
    """Let a file say that its store was moved."""
    async with open_store(path) as opened:
        moves = find_moves(opened)
        assert moves is not None
        await moves.begin(Move(target))
        async with moves.stand_still() as standstill:
            await standstill.switch(Move(target, "switched"))


def read_titles(path: Path) -> list[str]:
    with closing(Connection(path, 0)) as connection:
        return [title for (title,) in connection.execute("SELECT title FROM documents ORDER BY title")]


def test_a_backup_by_hand_is_of_where_the_store_is_now_and_can_be_put_back_there(home: Path, tmp_path: Path) -> None:
    store(home, "before")
    new, target = move(home), tmp_path / "backup"
    store(home, "later")
    assert ask(home, "backup", str(target))["documents"] == 2
    assert read_titles(target) == ["About before", "About later"]
    acts = refdesk(home, ["audit", "show", "--org", "*"], REFDESK_STORE=f"sqlite:///{new}").output
    assert "backup" in acts
    restored = refdesk(home, ["restore", str(target)], REFDESK_STORE=f"sqlite:///{new}")
    assert restored.exit_code == 0, restored.output
    assert "Restored 2 documents" in restored.output
    store(home, "latest")
    assert len(read_titles(new)) == 3
    assert "own file" in refdesk(home, ["backup", "--force", str(home / "refdesk.sqlite3")]).output
    assert refdesk(home, ["doctor", "--deep"]).exit_code == 0


async def test_scheduled_backups_are_of_where_the_store_is_by_then(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    settings = make_settings(home, store=None, backup_every="1d", backup_keep=1, backup_to=folder)
    schedule, clock = choose_schedule(settings), FixedClock(NOW)
    assert schedule is not None
    await anyio.to_thread.run_sync(store, home, "before")
    async with choose_followed(settings.store_url)() as followed:
        keeper = BackupKeeper(followed, clock, schedule, partial(make_backup, settings), partial(is_own, settings))
        assert await keeper.run_once()
        new = await anyio.to_thread.run_sync(move, home)
        await put(followed, make_document("later", title="later"))
        clock.advance(timedelta(days=1))
        assert await keeper.run_once()
    # The one from before the move is not this store's to remove.
    before, last = sorted(folder.iterdir())
    assert read_titles(before) == ["About before"]
    assert read_titles(last) == read_titles(new) == ["About before", "later"]


async def test_a_desk_that_followed_its_store_to_a_server_says_that_no_backups_are_made(
    tmp_path: Path, bench: Bench
) -> None:
    file, folder = tmp_path / "refdesk.sqlite3", tmp_path / "kept"
    await switch(file)
    before = file.read_bytes()
    settings = make_settings(tmp_path, store=f"sqlite:///{file}", backup_every="1d", backup_to=folder)
    bench.desk.settings = settings
    health = await bench.desk.get_health()
    assert health.status == "degraded"
    assert MOVED_THERE in health.problems[0]
    async with anyio.create_task_group() as group:
        group.start_soon(keep_backups, settings, bench.base)
        with anyio.fail_after(120):
            while (await read_status(bench.store)).failed_at is None:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    status = await read_status(bench.store)
    assert MOVED_THERE in status.reason
    assert list(folder.iterdir()) == []
    check = await check_backups(settings, bench.base)
    assert (check.status, MOVED_THERE in check.found, "tools" in check.advice) == ("fail", True, True)
    assert file.read_bytes() == before


def test_what_a_server_has_now_is_refused_in_words_with_nothing_written(home: Path, tmp_path: Path) -> None:
    store(home, "before")
    anyio.run(switch, home / "refdesk.sqlite3")
    for more in ((), ("--force",)):
        done = refdesk(home, ["backup", str(tmp_path / "backup"), *more])
        assert done.exit_code == 1
        assert MOVED_THERE in done.output
        assert "secret" not in done.output
        assert list(tmp_path.glob("backup*")) == []


def test_a_backup_from_before_does_not_make_a_second_store_of_the_old_file(home: Path, tmp_path: Path) -> None:
    target, file = tmp_path / "backup", home / "refdesk.sqlite3"
    store(home, "before")
    ask(home, "backup", str(target))
    anyio.run(switch, file)
    for source, more in ((target, ()), (file, ("--as-is",))):
        done = refdesk(home, ["restore", str(source), *more])
        assert done.exit_code == 1, done.output
        assert MOVED_THERE in done.output
        assert "secret" not in done.output
    assert [each.name for each in home.glob("*sqlite3*") if "replaced" in each.name or "restoring" in each.name] == []
    # Not even where the old file cannot say so any more.
    file.write_bytes(b"damaged" * 1000)
    done = refdesk(home, ["restore", str(target)])
    assert (done.exit_code, MOVED_THERE in done.output) == (1, True), done.output
    # Who moves it away has said that it is gone for good.
    shutil.move(file, tmp_path / "away")
    done = refdesk(home, ["restore", str(target)])
    assert done.exit_code == 0, done.output
    file.write_bytes(b"damaged" * 1000)
    assert refdesk(home, ["restore", str(target)]).exit_code == 0, "it is the store now"


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_damaged_file_leads_on_still(home: Path, tmp_path: Path, *, is_killed: bool) -> None:
    store(home, "before")
    new, file, target = move(home), home / "refdesk.sqlite3", tmp_path / "backup"
    store(home, "later")
    if is_killed:  # right after the switch: whoever opens it next sets the mark
        (home / "refdesk.sqlite3-moved").unlink()
        store(home, "latest")
    file.write_bytes(b"damaged" * 1000)
    assert make_backup(make_settings(home, store=f"sqlite:///{file}"), target).documents == (3 if is_killed else 2)
    assert read_titles(target) == read_titles(new)


def test_a_copy_of_a_file_that_was_moved_out_of_is_usable_and_said_to_be_old(home: Path, tmp_path: Path) -> None:
    """An earlier refdesk went on making backups of it."""
    store(home, "before")
    file, url = home / "refdesk.sqlite3", f"sqlite:///{tmp_path / 'other.sqlite3'}"
    anyio.run(switch, file)
    restored = refdesk(home, ["restore", str(file)], REFDESK_STORE=url)
    assert restored.exit_code == 0, restored.output
    assert "had been moved to another one" in restored.output
    store_more = ["knowledge", "store", "--title", "more", "--body", "more"]
    assert refdesk(home, store_more, REFDESK_STORE=url).exit_code == 0


def test_a_backup_made_while_the_store_moves_is_not_moved_itself(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    anyio.run(begin, path)
    backups.make_backup(path, target)
    assert anyio.run(read_state, target) is None
    with closing(Connection(target, 0)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'move%'") == []
    # It is switched after somebody has looked, and before the copy is made.
    anyio.run(switch, path)
    with pytest.raises(StoreError, match="moved to another one while"):
        backups.make_backup(path, tmp_path / "late")
    assert list(tmp_path.glob("late*")) == []
