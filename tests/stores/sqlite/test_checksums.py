"""A row that is not as it was written is never shown, and a file that others wrote to is looked through."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from refdesk.errors import StoreError
from refdesk.model import Link, Metadata, MetadataKey, Reference
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.lineage import Seal, look
from tests.stores.samples import NOTES, NOW, make_document, put, revise

KEY = MetadataKey("acme", "job", "n")
LINK = Link("acme", Reference("notes", "a"), "references", Reference("task", "1"), NOW)


async def fill(path: Path) -> None:
    async with open_store(path) as store:
        first = make_document("a", "apples are green")
        await put(store, first)
        await put(store, revise(first, body="apples are red"))
        await put(store, make_document("b", "bread"))
        async with store.transaction() as transaction:
            await transaction.put_metadata([Metadata(KEY, {"state": "waiting"})])
            await transaction.put_links([LINK])


def run_beside(path: Path, statement: str) -> None:
    """Change the file as a fault would, while a store has it open."""
    connection = Connection(path, 1000)
    connection.execute(statement)
    connection.close()


READS: dict[str, tuple[str, Callable[[Store], Awaitable[object]]]] = {
    "a body": (
        "UPDATE documents SET body = 'apples are rad' WHERE id = 'a'",
        lambda store: store.get_documents(NOTES, ["a"]),
    ),
    "when": (
        "UPDATE documents SET recorded_at = recorded_at + 1 WHERE id = 'a'",
        lambda store: store.get_documents(NOTES, ["a"]),
    ),
    "a version": (
        "UPDATE revisions SET body = 'apples are greed'",
        lambda store: store.get_revisions(NOTES, "a"),
    ),
    "two rows in each other's place": (
        "UPDATE documents SET id = CASE id WHEN 'a' THEN 'b' ELSE 'a' END || '-'; "
        "UPDATE documents SET id = substr(id, 1, 1)",
        lambda store: store.get_documents(NOTES, ["b"]),
    ),
    "an org": (
        "UPDATE collections SET org = 'acne'",
        lambda store: store.get_revisions(type(NOTES)("acne", "notes"), "a"),
    ),
    "a record": ("""UPDATE records SET value = '{"state":"baiting"}'""", lambda store: store.get_metadata(KEY)),
    "a link": ("UPDATE links SET created_at = 7", lambda store: store.get_links("acme", Reference("notes", "a"))),
    "half a character": (
        "UPDATE documents SET title = CAST(x'c3' AS TEXT) WHERE id = 'a'",
        lambda store: store.get_documents(NOTES, ["a"]),
    ),
}


@pytest.mark.parametrize("what", READS)
async def test_what_is_not_as_it_was_written_is_refused_and_turns_health_red(tmp_path: Path, what: str) -> None:
    statement, read = READS[what]
    path = tmp_path / "store.sqlite3"
    await fill(path)
    async with open_store(path) as store:
        await store.check()
        await read(store)
        run_beside(path, statement)
        with pytest.raises(StoreError, match=r"damaged.*refdesk restore"):
            await read(store)
        with pytest.raises(StoreError, match="damaged"):
            await store.check()


async def check_on(store: Store) -> None:
    """Check until that fails."""
    with anyio.fail_after(120):
        while True:
            await store.check()


def flip(path: Path, text: bytes) -> None:
    """Flip a bit of each occurrence of a text."""
    content = path.read_bytes()
    assert text in content
    path.write_bytes(content.replace(text, bytes([text[0] ^ 1]) + text[1:]))


@pytest.mark.parametrize("text", [b"apples are red", b"apples are green", b"waiting", b"references"])
async def test_a_closed_file_that_was_changed_since_is_looked_through_before_it_serves(
    tmp_path: Path, text: bytes
) -> None:
    path = tmp_path / "store.sqlite3"
    await fill(path)
    flip(path, text)
    damaged = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"damaged.*refdesk restore"):
            async with open_store(path):
                pass
    assert path.read_bytes() == damaged


async def test_a_large_file_is_looked_through_while_it_serves(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    await fill(path)
    flip(path, b"apples are red")
    async with open_store(path, largest_at_once=0) as store:
        assert await store.get_documents(NOTES, ["b"])
        with pytest.raises(StoreError, match=r"damaged.*refdesk restore"):
            await check_on(store)
    assert not look(path, Seal(path)).is_untouched
    flip(path, b"\x60pples are red")
    async with open_store(path, largest_at_once=0) as store:
        await store.check()


async def test_a_file_that_nobody_touched_is_opened_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    await fill(path)
    assert look(path, Seal(path)).is_untouched
    status = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not look(path, Seal(path)).is_untouched
    async with open_store(path):
        pass
    assert look(path, Seal(path)).is_untouched
