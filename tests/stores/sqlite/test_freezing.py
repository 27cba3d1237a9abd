"""The part of the index that is kept in files: shared, derived, and never believed without reason."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import anyio
import pytest

from refdesk.core.clock import FixedClock
from refdesk.model import Document, State
from refdesk.protocols import Store
from refdesk.stores import sqlite
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import freezing
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.freezing import Sizes
from refdesk.stores.sqlite.index import CollectionIndex, IndexRow, files
from refdesk.stores.sqlite.index.files import Content
from tests.stores.samples import NOW, asking, embed, find_ids, make_document, near, passage, put, revise
from tests.stores.walks import COLLECTIONS, Walk, assert_same

WORDS = ("apple", "pear", "plum", "fig")
COUNT = 40
EAST, NORTH = (1.0, 0, 0, 0), (0, 1.0, 0, 0)


open_store = partial(sqlite.open_store, index_sizes=Sizes(freeze_above=8))
"""Lets a few documents be worth a file."""


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file with documents, all embedded, and a file of its index."""
    path = tmp_path / "a.sqlite3"
    async with open_store(path) as store:
        documents = [make_document(f"d{number:02}", WORDS[number % 4]) for number in range(COUNT)]
        await put(store, *documents)
        for number, document in enumerate(documents):
            await embed(store, document, passage(EAST if number % 2 else NORTH))
        await check_answers(store)
    return path


async def check_answers(store: Store) -> None:
    assert await find_ids(store, asking("apple")) == [f"d{number:02}" for number in range(0, COUNT, 4)]
    assert await find_ids(store, asking(vector=near(EAST), depth=20)) == [f"d{n:02}" for n in range(1, COUNT, 2)]


catching_up = partial(sqlite.open_store, index_sizes=Sizes(freeze_above=8, catch_up_above=COUNT))
"""Lets a few documents be too many for the next search."""


async def wait_for_parts(path: Path, last: int = 1) -> list[str]:
    """Return the names of the parts once they hold a collection up to a change."""
    while True:
        connection = Connection(path, 0)
        held = connection.execute("SELECT name, last FROM index_parts ORDER BY name")
        connection.close()
        if max((change for _, change in held), default=0) >= last:
            return [name for name, _ in held]
        await anyio.sleep(0.01)


async def test_an_index_that_is_lost_is_made_anew_by_who_serves_before_anybody_searches(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in list_written(path):
        file.unlink()
    connection = Connection(path, 0)
    connection.execute("DELETE FROM index_parts")
    connection.close()
    read = note_rows(monkeypatch)
    async with catching_up(path) as store:
        assert get_names(path) == []
        await store.catch_up()
        await wait_for_parts(path)
        made = list(read)
        await check_answers(store)
    assert (len(made), read) == (COUNT, made)


async def test_nothing_is_read_again_for_who_serves_an_index_that_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = note_rows(monkeypatch)
    async with catching_up(path) as store:
        await store.catch_up()
    assert read == []


def list_files(path: Path) -> list[Path]:
    return sorted(path.with_name(f"{path.name}-index").iterdir())


def list_written(path: Path) -> list[Path]:
    return [file for file in list_files(path) if file.suffix != ".tmp"]


def get_names(path: Path) -> list[str]:
    connection = Connection(path, 0)
    names = [name for (name,) in connection.execute("SELECT name FROM index_parts ORDER BY name")]
    connection.close()
    return names


def note_rows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the id of each document that is read to be indexed from now on."""
    noted: list[str] = []
    apply = CollectionIndex.apply

    def note(index: CollectionIndex, rows: Sequence[IndexRow]) -> None:
        noted.extend(row.id for row in rows)
        apply(index, rows)

    monkeypatch.setattr(CollectionIndex, "apply", note)
    return noted


async def test_a_new_process_reads_no_document_that_a_file_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = note_rows(monkeypatch)
    async with open_store(path) as store:
        await check_answers(store)
        assert read == []
        await put(store, make_document("new", "apple"))
        assert "new" in await find_ids(store, asking("apple"))
        assert read == ["new"]


async def test_a_large_collection_is_read_in_pieces_and_leaves_one_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in list_files(path):
        file.unlink()
    written = list[str]()
    write = freezing.write_content

    def note(file: Path, content: Content) -> None:
        written.append(file.name.split("-")[0])
        write(file, content)

    monkeypatch.setattr(freezing, "write_content", note)
    async with sqlite.open_store(path, index_sizes=Sizes(freeze_above=8, set_aside=10)) as store:
        await check_answers(store)
        await put(store, make_document("new", "apple"))
        assert "new" in await find_ids(store, asking("apple"))
    assert written == ["aside"] * 4 + ["1"]
    assert len(list_files(path)) == 1
    async with open_store(path) as store:
        assert "new" in await find_ids(store, asking("apple"))


class Gate:
    """Lets a call of another thread begin, and go on when it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        call = getattr(owner, name)

        def wait(*args: object) -> object:
            self.reached.set()
            assert self.opened.wait(60)
            return call(*args)

        monkeypatch.setattr(owner, name, wait)


async def test_the_files_of_a_search_that_is_given_up_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, gate = tmp_path / "a.sqlite3", Gate(monkeypatch, CollectionIndex, "apply")
    async with open_store(path) as store:
        await put(store, *(make_document(f"d{number:02}", "apple") for number in range(COUNT)))
        async with anyio.create_task_group() as group:
            group.start_soon(store.find, asking("apple"))
            await anyio.to_thread.run_sync(gate.reached.wait)
            group.cancel_scope.cancel()
            gate.opened.set()
        assert [file.name for file in list_files(path)] == get_names(path) != []


async def test_a_file_that_is_written_in_the_background_is_kept_without_another_search(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, gate = get_names(path), Gate(monkeypatch, freezing.IndexFolder, "write")
    async with open_store(path) as store:
        for part in (range(7), range(7, 8)):  # eight are worth a file, and one was quick to read
            await put(store, *(make_document(f"e{number:02}", "cherry") for number in part))
            await find_ids(store, asking("cherry"))
        gate.opened.set()
        with anyio.fail_after(120):
            # Named by another task than this one, and what it replaces is removed after that.
            while get_names(path) == known or [file.name for file in list_files(path)] != get_names(path):  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_the_files_are_for_the_owner_only(path: Path) -> None:
    assert [oct(file.stat().st_mode & 0o777) for file in list_files(path)] == ["0o600"]
    assert oct(list_files(path)[0].parent.stat().st_mode & 0o777) == "0o700"


def flip(file: Path, place: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0x10
    replace(file, bytes(content))


def cut(file: Path, place: float) -> None:
    replace(file, file.read_bytes()[: int(place * file.stat().st_size)])


def remove(file: Path, place: float) -> None:
    file.unlink()


def replace(file: Path, content: bytes) -> None:
    """Put another file in its place: whoever has the old one mapped keeps it."""
    other = file.with_suffix(".other")
    other.write_bytes(content)
    other.replace(file)


@pytest.mark.parametrize("place", [0, 0.001, 0.02, 0.3, 0.6, 0.9, 1])
@pytest.mark.parametrize("damage", [flip, cut, remove])
async def test_a_damaged_file_costs_time_and_nothing_else(
    path: Path, damage: Callable[[Path, float], None], place: float
) -> None:
    [file] = list_files(path)
    damage(file, place)
    for _ in range(2):
        async with open_store(path) as store:
            await check_answers(store)
    assert [file.name for file in list_files(path)] == get_names(path)


def get_nothing(_: object) -> int:
    return 0


@pytest.mark.parametrize("is_checked", [True, False])
async def test_the_damage_would_show_if_nobody_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_checked: bool
) -> None:
    if not is_checked:
        monkeypatch.setattr(files, "_sum_up", get_nothing)
        list_files(path)[0].unlink()
        async with open_store(path) as store:
            await check_answers(store)
    [file] = list_files(path)
    replace(file, read(file).replace(b"d00", b"d0x"))
    async with open_store(path) as store:
        assert ("d0x" in await find_ids(store, asking("apple"))) is not is_checked


def read(path: Path) -> bytes:
    return path.read_bytes()


def put_back(path: Path, copy: bytes) -> None:
    for ending in ("wal", "shm"):
        path.with_name(f"{path.name}-{ending}").unlink(missing_ok=True)
    path.write_bytes(copy)
    path.with_name(f"{path.name}-seal").unlink()


async def test_a_store_put_back_from_a_copy_does_not_believe_what_came_later(path: Path) -> None:
    copy = read(path)
    async with open_store(path) as store:
        await put(store, *(make_document(f"x{number}", "apple") for number in range(20)))
        assert len(await find_ids(store, asking("apple"))) == COUNT // 4 + 20
    put_back(path, copy)
    async with open_store(path) as store:
        await put(store, *(make_document(f"y{number}", "plum") for number in range(20)))
        await check_answers(store)
        assert len(await find_ids(store, asking("plum"))) == COUNT // 4 + 20


async def test_what_is_removed_for_good_is_in_no_file(path: Path) -> None:
    before = list_files(path)
    async with open_store(path) as reader:
        await check_answers(reader)
        connection = Connection(path, 0)
        connection.execute("DELETE FROM vectors; DELETE FROM documents WHERE id = 'd00'")
        connection.close()
        assert get_names(path) == []
        assert "d00" not in await find_ids(reader, asking("apple"))
    assert not {file.name for file in list_files(path)} & {file.name for file in before}


async def test_what_is_erased_is_in_no_file(path: Path) -> None:
    async with open_store(path) as store, open_store(path) as other:
        await check_answers(other)
        async with store.transaction() as transaction:
            await transaction.erase_documents([revise(make_document("d00", "", state=State.WITHDRAWN))])
        await store.scrub()
        assert list_files(path) == []
        for each in (other, store):
            assert "d00" not in await find_ids(each, asking("apple"))
        assert list_files(path)
    assert not any(b"d00" in read(file) for file in list_files(path))


async def test_without_room_on_the_disk_searches_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("No space left on device")

    for file in list_files(path):
        file.unlink()
    monkeypatch.setattr(freezing, "write_content", refuse)
    read = note_rows(monkeypatch)
    async with open_store(path) as store:
        await check_answers(store)
        await put(store, *(make_document(f"x{number}", "fig") for number in range(20)))
        assert len(await find_ids(store, asking("fig"))) == COUNT // 4 + 20
        await check_answers(store)
        assert len(read) == COUNT + 20
        monkeypatch.undo()
        await put(store, *(make_document(f"z{number}", "fig") for number in range(20)))
        assert len(await find_ids(store, asking("fig"))) == COUNT // 4 + 40
    assert get_names(path)


async def test_of_two_versions_the_newer_ones_files_stand(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = get_names(path)
    monkeypatch.setattr(freezing, "VERSION", freezing.VERSION + 1)
    async with open_store(path) as newer:
        await check_answers(newer)
        new = get_names(path)
        assert not {*new} & {*old}
        monkeypatch.undo()
        async with open_store(path) as older:
            await check_answers(older)
            await put(older, *(make_document(f"x{number}", "fig") for number in range(20)))
            assert len(await find_ids(older, asking("fig"))) == COUNT // 4 + 20
        assert get_names(path) == new


DIE = """
import os, sys, anyio
from pathlib import Path
from refdesk.stores.sqlite import freezing, open_store
from refdesk.stores.sqlite.freezing import Sizes
from refdesk.stores.sqlite.index import files
from tests.stores.samples import asking, make_document, put

def die(*_, **__):
    os._exit(9)

def die_aside(_, names):
    if any(name.startswith("aside") for name in names):
        die()

async def main(path, point):
    owner, name = {"writing": (files.np, "ascontiguousarray"), "renaming": (files.os, "replace"),
        "naming": (freezing, "name_part"), "tidying": (freezing, "list_named"),
        "setting aside": (freezing.IndexFolder, "remove")}[point]
    async with open_store(Path(path), index_sizes=Sizes(freeze_above=8, set_aside=8)) as store:
        await put(store, *(make_document(f"x{number}", "fig") for number in range(20)))
        if point == "writing":
            files._make_header = die
        else:
            setattr(owner, name, die_aside if point == "setting aside" else die)
        await store.find(asking("fig"))

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize("point", ["writing", "renaming", "naming", "tidying", "setting aside"])
async def test_a_process_that_dies_while_it_freezes_leaves_nothing_wrong(path: Path, point: str) -> None:
    died = await anyio.run_process([sys.executable, "-c", DIE, str(path), point], check=False)
    assert died.returncode == 9
    for _ in range(2):
        async with open_store(path) as store:
            await check_answers(store)
            assert len(await find_ids(store, asking("fig"))) == COUNT // 4 + 20
            await store.get_statistics()
    assert {*get_names(path)} <= {file.name for file in list_files(path)}


GROW = """
import sys, anyio
from itertools import count
from pathlib import Path
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.freezing import Sizes
from tests.stores.samples import asking, make_document, put

async def main(path, first):
    async with open_store(Path(path), index_sizes=Sizes(freeze_above=8, set_aside=5)) as store:
        for number in count(int(first)):
            await put(store, *(make_document(f"x{number:04}-{each:02}", "fig") for each in range(12)))
            print("stored", flush=True)
            await store.find(asking("fig"))
            print("found", flush=True)

anyio.run(main, *sys.argv[1:])
"""


def grow_and_kill(path: Path, first: int, count: int) -> list[str]:
    """Return what the process wrote that was killed after so many lines."""
    command = [sys.executable, "-c", GROW, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        process.kill()
        return lines + process.stdout.readlines()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 12))])
async def test_what_a_killed_process_froze_is_whole_or_made_again(path: Path, seed: int) -> None:
    """Killed while it goes on after a line that it wrote, so anywhere between two."""
    random, stored = Random(seed), 0
    for _ in range(3):
        stored += grow_and_kill(path, stored, random.randrange(1, 12)).count("stored\n")
        found: list[str] = []
        for _ in range(2):
            async with open_store(path) as store:
                await check_answers(store)
                found = await find_ids(store, asking("fig", depth=1000))
                held = COUNT // 4 + 12 * stored
                assert len(found) in (held, held + 12), "nothing that was acknowledged is missing"
        assert {*get_names(path)} <= {file.name for file in list_files(path)}
        stored = (len(found) - COUNT // 4) // 12


async def test_files_that_nobody_names_go_when_they_are_old(path: Path) -> None:
    folder = list_files(path)[0].parent
    for name, age in (("forgotten", 2 * freezing.FORGOTTEN_SECONDS), ("young", 0)):
        (folder / name).write_bytes(b"")
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))
    async with open_store(path) as store:
        await put(store, *(make_document(f"x{number}", "fig") for number in range(20)))
        await find_ids(store, asking("fig"))
    names = {file.name for file in list_files(path)}
    assert "young" in names
    assert "forgotten" not in names


async def test_a_withdrawn_document_stays_gone_whichever_file_holds_it(path: Path) -> None:
    documents = [make_document(f"d{number:02}", WORDS[number % 4]) for number in range(0, COUNT, 4)]
    async with open_store(path) as store:
        await put(store, *(revise(each, state=State.WITHDRAWN) for each in documents))
        assert await find_ids(store, asking("apple")) == []
    async with open_store(path) as store:
        assert await find_ids(store, asking("apple")) == []
        again: list[Document] = [revise(revise(each), body="apple again") for each in documents]
        await put(store, *again)
        assert await find_ids(store, asking("apple")) == [each.id for each in documents]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40))])
async def test_stores_on_one_file_agree_with_the_reference_whatever_becomes_of_the_files(
    seed: int, tmp_path: Path
) -> None:
    random, path, clock = Random(seed), tmp_path / "a.sqlite3", FixedClock(NOW)
    open_store = partial(sqlite.open_store, clock=clock, index_sizes=Sizes(freeze_above=2, set_aside=3))
    walk, reference = Walk(random), MemoryStore(clock)
    async with open_store(path) as one, open_store(path) as other:
        for _ in range(40):
            await walk.write([reference, random.choice((one, other))])
            if random.random() < 0.2 and (found := list_written(path) if get_names(path) else []):
                random.choice((flip, cut, remove))(random.choice(found), random.random())
            for store in random.sample((one, other), 2):
                request = walk.draw_request()
                assert_same(await store.find(request), await reference.find(request), request)
    assert {collection for collection, _ in walk.documents} <= {*COLLECTIONS}
