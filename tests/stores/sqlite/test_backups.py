"""A backup is whole or absent, and putting it back brings nothing back that must be gone."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from refdesk.core.clock import FixedClock, SystemClock
from refdesk.core.keeping import erasing
from refdesk.core.keys import KeyRing
from refdesk.core.writing import audit
from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import ConfigurationError, InvalidInputError, RefdeskError, StoreError, UnauthenticatedError
from refdesk.model import SHARED_ORG
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.backups import BackedUp, make_backup
from refdesk.stores.sqlite.beside import ERASED
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.lineage import SEAL_SUFFIX, Seal, read_marks
from refdesk.stores.sqlite.migrations import load_migrations, migrate
from refdesk.stores.sqlite.restoring import Restored, restore
from tests.stores.samples import MODEL, NOTES, NOW, embed, make_document, passage, put, revise
from tests.stores.sqlite.test_lineage import cut_off

ANN = audit.Actor("acme", "ann", "test")
OPERATOR = audit.Actor(SHARED_ORG, "cli", "cli")
CANARY = "canary-8461"


async def fill(path: Path, *ids: str) -> None:
    async with open_store(path) as store:
        watched = audit.watch(store, SystemClock(), ANN, "store_knowledge")
        for id in ids:
            await put(watched, make_document(id, f"{CANARY} of {id} " * 50))


async def back_up(path: Path, target: Path, apart: dict[str, Path] | None = None) -> BackedUp:
    return await anyio.to_thread.run_sync(make_backup, path, target, apart)


async def put_back(backup: Path, path: Path, *, as_is: bool = False) -> Restored:
    [restored] = await restore(backup, {"": path}, SystemClock(), OPERATOR, as_is=as_is)
    return restored


def list_left(folder: Path) -> list[Path]:
    return list(folder.glob("*.partial*"))


def read_all(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def remove(path: str) -> None:
    Path(path).unlink()


def note_more_commits(path: Path) -> None:
    """Let the seal say that more was acknowledged than the file holds."""
    seal, connection = Seal(path), Connection(path, 0)
    marks = read_marks(connection)
    connection.close()
    assert marks is not None
    seal.write(marks.store, marks.commits + 3)
    seal.close()


async def list_living(path: Path) -> list[str]:
    async with open_store(path, patience_seconds=0.2) as store:
        await store.check()
        return sorted(await store.get_digests(NOTES))


async def test_a_backup_beside_use_is_one_moment_of_the_store_and_opens_as_one(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a", "b")
    async with open_store(path) as store, anyio.create_task_group() as group:
        is_done = anyio.Event()

        async def write_on() -> None:
            number = 0
            while not is_done.is_set():
                number += 1
                await put(store, make_document(f"x{number:05}", "more"))
                await anyio.lowlevel.checkpoint()

        group.start_soon(write_on)
        counts = (await back_up(path, target)).counts
        is_done.set()
        assert counts["documents"] == len(await list_living(target))
    held = await list_living(target)
    assert held[:2] == ["a", "b"]
    assert held[2:] == [f"x{number:05}" for number in range(1, len(held) - 1)]
    assert list_left(tmp_path) == []


async def test_no_backup_is_made_over_another_file_nor_where_there_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    await fill(path, "a")
    (tmp_path / "there").write_text("precious")
    for target in ("there", "nowhere/b", ".", path.name, f"{path.name}-wal", f"{path.name}{SEAL_SUFFIX}"):
        with pytest.raises(InvalidInputError):
            await back_up(path, tmp_path / target)
    assert (tmp_path / "there").read_text() == "precious"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InvalidInputError, match="own file"):
        await anyio.to_thread.run_sync(lambda: make_backup(path, tmp_path / "link", replaces=True))
    await anyio.to_thread.run_sync(lambda: make_backup(path, tmp_path / "there", replaces=True))
    assert await list_living(tmp_path / "there") == ["a"]


async def test_a_damaged_store_is_not_backed_up_and_the_earlier_backup_stays(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a", "b")
    await back_up(path, target)
    before = target.read_bytes()
    connection = Connection(path, 0)
    connection.execute("UPDATE documents SET body = replace(body, 'canary', 'kanary') WHERE id = 'a'")
    connection.close()
    with pytest.raises(StoreError, match="damaged, so there is no backup"):
        await anyio.to_thread.run_sync(lambda: make_backup(path, target, replaces=True))
    assert target.read_bytes() == before
    assert list_left(tmp_path) == []


async def test_what_a_kill_left_behind_is_not_written_to(tmp_path: Path) -> None:
    """A kill between giving the backup its name and taking the old one away leaves one file with two names."""
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a")
    await back_up(path, target)
    (tmp_path / "backup.partial").hardlink_to(target)
    (tmp_path / "backup.partial-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(9000))
    before = target.read_bytes()
    with pytest.raises(InvalidInputError):
        await back_up(path, target)
    assert target.read_bytes() == before
    await fill(path, "b")
    await anyio.to_thread.run_sync(lambda: make_backup(path, target, replaces=True))
    assert list_left(tmp_path) == []
    assert await list_living(target) == ["a", "b"]


async def test_files_kept_apart_go_with_it_and_come_back_to_their_places(tmp_path: Path) -> None:
    path, skills, target = tmp_path / "store.sqlite3", tmp_path / "skills.sqlite3", tmp_path / "backup"
    await fill(path, "a")
    await fill(skills, "s")
    made = await back_up(path, target, {"skills": skills})
    assert made.enclosed == ("skills",)
    assert made.counts["documents"] == 2
    elsewhere = {"": tmp_path / "new" / "store.sqlite3", "skills": tmp_path / "other" / "skills.sqlite3"}
    with pytest.raises(InvalidInputError, match="skills"):
        await restore(target, {"": elsewhere[""]}, SystemClock(), OPERATOR)
    results = await restore(target, elsewhere, SystemClock(), OPERATOR)
    assert [(each.name, each.documents, each.kept) for each in results] == [("", 1, None), ("skills", 1, None)]
    assert await list_living(elsewhere[""]) == ["a"]
    assert await list_living(elsewhere["skills"]) == ["s"]
    assert b"enclosed" not in elsewhere[""].read_bytes()


async def test_what_was_erased_and_revoked_since_stays_so_and_the_log_goes_on(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a", "b", "c")
    async with open_store(path) as store:
        ring = KeyRing(store, SystemClock(), {"read": "reads"}, ANN)
        key, secret = await ring.create(org="acme", agent="bot", scopes=["read"])
    await back_up(path, target)
    async with open_store(path) as store:
        await erasing.erase(store, SystemClock(), ANN, erasing.Erasable("acme", "a"))
        await put(store, make_document("later", "later"))
        await KeyRing(store, SystemClock(), {"read": "reads"}, ANN).revoke(key.id)
        last = await store.get_last_audit("acme")
        assert last is not None
    restored = await put_back(target, path)
    assert restored.carried.erased == 1
    assert restored.carried.keys == 1
    assert restored.knows_erasures
    assert await list_living(path) == ["b", "c"]
    async with open_store(path) as store:
        verdict = await audit.verify(store, "acme", f"{last.number}:{last.digest}")
        assert verdict.broken is None
        with pytest.raises(UnauthenticatedError):
            await KeyRing(store, SystemClock(), {}).find(secret)
        acts = [entry.act["action"] for entry in await store.get_audit(SHARED_ORG)]
        assert acts == ["restore"]
    assert f"{CANARY} of a ".encode() not in read_all(path)
    assert restored.kept is not None
    assert await list_living(restored.kept) == ["b", "c", "later"]


async def test_an_agent_or_org_that_was_erased_whole_stays_so_but_what_came_later_is_kept(tmp_path: Path) -> None:
    path, early, late = tmp_path / "store.sqlite3", tmp_path / "early", tmp_path / "late"
    await fill(path, "a")
    await back_up(path, early)
    await fill(path, "b")
    async with open_store(path) as store:
        await erasing.erase(store, SystemClock(), ANN, erasing.Erasable("acme"))
    await fill(path, "c")
    await back_up(path, late)
    await put_back(late, path)
    assert await list_living(path) == ["c"]
    await put_back(early, path)
    assert await list_living(path) == []


async def test_the_list_beside_a_file_that_cannot_be_read_says_what_was_erased(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a", "b")
    await back_up(path, target)
    async with open_store(path) as store:
        await erasing.erase(store, SystemClock(), ANN, erasing.Erasable("acme", "a"))
    path.write_bytes(b"\xff" * 50_000)
    restored = await put_back(target, path)
    assert (restored.carried.erased, restored.knows_erasures) == (1, True)
    assert await list_living(path) == ["b"]
    path.write_bytes(b"\xff" * 50_000)
    path.with_name(f"{path.name}{ERASED}").unlink()
    assert not (await put_back(target, path)).knows_erasures


async def test_a_file_in_use_is_not_replaced_and_a_damaged_backup_changes_nothing(tmp_path: Path) -> None:
    path, target = tmp_path / "store.sqlite3", tmp_path / "backup"
    await fill(path, "a")
    await back_up(path, target)
    async with open_store(path):
        with pytest.raises(StoreError, match="has the store open"):
            await put_back(target, path)
    content = target.read_bytes()
    before = path.read_bytes()
    damages: list[Callable[[], object]] = [
        lambda: target.write_bytes(content.replace(CANARY.encode(), b"canary-8460")),
        lambda: target.write_bytes(content[: len(content) // 2]),
        lambda: target.write_bytes(b""),
        lambda: target.write_bytes(b"no database at all" * 300),
        target.unlink,
    ]
    for damage in damages:
        damage()
        with pytest.raises(RefdeskError):
            await put_back(target, path)
        assert path.read_bytes() == before
    assert await list_living(path) == ["a"]


@pytest.mark.parametrize("refused", ["the sync of the copy", "the removal of the shared memory", "the new name"])
async def test_a_disk_that_refuses_at_the_end_leaves_the_file_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    backup, path, killed = tmp_path / "backup", tmp_path / "old" / "store.sqlite3", tmp_path / "new" / "store.sqlite3"
    await fill(path, "a")
    await back_up(path, backup)
    async with open_store(path) as store:
        await put(store, make_document("b"))
        shutil.copytree(path.parent, killed.parent)

    copy = killed.with_name("store.sqlite3.restoring")

    def is_copy(file: Path | int) -> bool:
        return copy.exists() and os.path.samestat(os.stat(file), copy.stat())

    def refuse(is_meant: Callable[[Any], bool], do: Callable[..., object]) -> Callable[..., object]:
        def ask(first: Path | int, *rest: object, **more: object) -> object:
            if is_meant(first):
                raise OSError(errno.EIO, "Input/output error")
            return do(first, *rest, **more)

        return ask

    with monkeypatch.context() as disk:
        if refused == "the sync of the copy":
            disk.setattr(os, "fsync", refuse(is_copy, os.fsync))
        elif refused == "the new name":
            disk.setattr(Path, "replace", refuse(is_copy, Path.replace))
        else:
            disk.setattr(Path, "unlink", refuse(lambda path: path.name == "store.sqlite3-shm", Path.unlink))
        with pytest.raises(StoreError, match="Input/output error"):
            await put_back(backup, killed)
    assert await list_living(killed) == ["a", "b"]
    assert [each.name for each in killed.parent.iterdir() if "replaced" in each.name or "restoring" in each.name] == []
    await put_back(backup, killed)
    assert await list_living(killed) == ["a"]


async def test_a_file_of_another_program_is_not_taken(tmp_path: Path) -> None:
    path, other = tmp_path / "store.sqlite3", tmp_path / "other"
    await fill(path, "a")
    other.touch()
    connection = Connection(other, 0)
    connection.execute("CREATE TABLE migrations (number, name)")
    connection.close()
    with pytest.raises(ConfigurationError):
        await put_back(other, path)
    with pytest.raises(InvalidInputError, match="own file"):
        await put_back(path, path)


async def test_a_backup_of_an_earlier_refdesk_is_brought_up_to_date(tmp_path: Path) -> None:
    path, old = tmp_path / "new" / "store.sqlite3", tmp_path / "old"
    old.touch()
    connection = Connection(old, 0)
    migrate(connection, load_migrations()[:1], 0)
    connection.execute("""
        INSERT INTO collections VALUES (1, 'acme', 'notes', 1);
        INSERT INTO documents VALUES
            (1, 1, 'a', 1, 'current', 0, 0, 0, 'd', 't', 1, 0, 0, 0, 'ann', 'A', '{}', '{}', x'', 'one', '{}');
    """)
    connection.close()
    assert (await put_back(old, path)).documents == 1
    assert await list_living(path) == ["a"]


@pytest.mark.parametrize("loss", ["log", "seal and log", "file is older", "log of another"])
async def test_a_file_that_was_refused_is_accepted_as_it_is_when_asked(tmp_path: Path, loss: str) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    [other] = await cut_off(tmp_path / "b", ["o"])
    path = left / "store.sqlite3"
    if loss == "file is older":
        shutil.copy(tmp_path / "a" / "store.sqlite3", path)
        remove(f"{path}-wal")
        note_more_commits(path)
    elif loss == "log of another":
        shutil.copy(other / "store.sqlite3-wal", f"{path}-wal")
    else:
        remove(f"{path}-wal")
    if loss == "seal and log":
        remove(f"{path}{SEAL_SUFFIX}")
    with pytest.raises(StoreError, match="restore --as-is"):
        await list_living(path)
    restored = await put_back(path, path, as_is=True)
    assert restored.has_left_log == (loss == "log of another")
    assert len(await list_living(path)) == (3 if loss == "file is older" else restored.documents)


async def test_as_it_is_brings_what_is_in_its_log_and_a_copy_in_use_is_no_backup(tmp_path: Path) -> None:
    [left] = await cut_off(tmp_path / "a", ["x", "y", "z"])
    path, copy = tmp_path / "new" / "store.sqlite3", left / "store.sqlite3"
    with pytest.raises(InvalidInputError, match="in use when it was copied"):
        await put_back(copy, path)
    assert not path.exists()
    assert (await put_back(copy, path, as_is=True)).documents == 3
    assert await list_living(path) == ["x", "y", "z"]


async def test_versions_vectors_and_links_come_back_as_they_were(tmp_path: Path) -> None:
    path, target, clock = tmp_path / "store.sqlite3", tmp_path / "backup", FixedClock(NOW)
    async with open_store(path, clock=clock) as store:
        first = make_document("a", "one")
        second = revise(first, body="two")
        await put(store, first)
        clock.advance(timedelta(days=1))
        await put(store, second)
        await embed(store, second, passage((1, 0, 0, 0)))
        wanted = await describe(store)
    await back_up(path, target)
    await put_back(target, path)
    async with open_store(path) as store:
        assert await describe(store) == wanted


async def describe(store: Store) -> object:
    [vectors] = await store.get_vectors(NOTES, ["a"])
    kept = [(model, [each.vector.tolist() for each in passages]) for model, passages in vectors]
    assert kept[0][0] == MODEL
    revisions = await store.get_revisions(NOTES, "a")
    assert not any(is_erased(each.document) for each in revisions)
    return revisions, kept
