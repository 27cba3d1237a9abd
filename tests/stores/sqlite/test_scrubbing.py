"""No trace of what was erased is left in the file or its log, whatever happened to the file before or meanwhile."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from refdesk.core.clock import FixedClock
from refdesk.errors import StoreError
from refdesk.model import Document, Metadata, MetadataKey, State
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.writes import forget_traces, get_traces, note_traces
from tests.stores.samples import NOTES, NOW, embed, make_document, passage, put, revise

CANARY = "xylocarpine"
RECORD = Metadata(MetadataKey("acme", "case", "a/b"), {"reason": f"{CANARY} " * 3000})
ERASE_AND_DIE = """
import asyncio, os, sys
from pathlib import Path
from refdesk.core.clock import FixedClock
from refdesk.stores.sqlite import open_store
from tests.stores.samples import NOTES, NOW
from tests.stores.sqlite.test_scrubbing import empty
async def main():
    async with open_store(Path(sys.argv[1]), clock=FixedClock(NOW)) as store:
        [document] = await store.get_documents(NOTES, ["a"])
        async with store.transaction() as transaction:
            await transaction.erase_documents([empty(document)])
        os._exit(9)
asyncio.run(main())
"""
REMOVE_AND_DIE = """
import asyncio, os, sys
from pathlib import Path
from refdesk.core.clock import FixedClock
from refdesk.stores.sqlite import open_store
from tests.stores.sqlite.test_scrubbing import RECORD
from tests.stores.samples import NOW
async def main():
    async with open_store(Path(sys.argv[1]), clock=FixedClock(NOW)) as store:
        async with store.transaction() as transaction:
            await transaction.leave_no_trace()
            await transaction.remove_metadata([RECORD.key])
        os._exit(9)
asyncio.run(main())
"""


def empty(document: Document) -> Document:
    blank = replace(document, title="", body="", facets={}, date_ranges={}, data={})
    return replace(blank, state=State.WITHDRAWN, version=document.version + 1)


def find_traces(path: Path) -> list[str]:
    return [each.name for each in path.parent.iterdir() if each.is_file() and CANARY.encode() in each.read_bytes()]


async def fill(path: Path) -> Document:
    """Make a store whose file has the canary in rows, free pages and log: long and short texts that came and went."""
    async with open_store(path, clock=FixedClock(NOW)) as store:
        document = make_document("a", f"{CANARY} " * 3000)
        await put(store, document, *(make_document(f"n{number}", f"Note {number} " * 50) for number in range(40)))
        for body in (f"Short {CANARY}.", f"{CANARY} in the middle. " * 500):
            document = revise(document, body=body, facets={"tags": (CANARY,)})
            await put(store, document)
        await embed(store, document, passage((1, 2, 3, 4)))
        return document


async def test_no_trace_is_left(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    document = await fill(path)
    async with open_store(path, clock=FixedClock(NOW)) as store:
        assert find_traces(path)
        async with store.transaction() as transaction:
            await transaction.erase_documents([empty(document)])
        assert find_traces(path), "without scrubbing there is something to find"
        assert await store.scrub()
        assert find_traces(path) == []
        assert len(await store.get_digests(NOTES)) == 40


async def test_who_reads_meanwhile_sees_what_was(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    document = await fill(path)
    async with open_store(path, clock=FixedClock(NOW), patience_seconds=0.3) as store:
        async with store.transaction() as transaction:
            await transaction.erase_documents([empty(document)])
        reader = Connection(path, 100)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM documents") == [(41,)]
        with pytest.raises(StoreError, match="opened next"):
            await store.scrub()
        reader.execute("COMMIT")
        reader.close()
        assert await store.scrub()
        assert find_traces(path) == []


async def test_a_killed_erasure_leaves_no_trace_once_the_store_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    await fill(path)
    done = await anyio.run_process([sys.executable, "-c", ERASE_AND_DIE, str(path)], check=False)
    assert done.returncode == 9
    assert find_traces(path)
    async with open_store(path, clock=FixedClock(NOW)) as store:
        [left] = await store.get_documents(NOTES, ["a"])
        assert left is not None
        assert left.body == ""
        assert find_traces(path) == []


async def test_what_was_removed_or_replaced_leaves_no_trace_either(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)) as store:
        async with store.transaction() as transaction:
            await transaction.put_metadata([RECORD])
        async with store.transaction() as transaction:
            await transaction.put_metadata([Metadata(RECORD.key, {"reason": ""})])
        assert find_traces(path), "without scrubbing there is something to find"
        assert await store.scrub()
        assert find_traces(path) == []


async def test_a_removal_that_was_killed_leaves_no_trace_once_the_store_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)) as store, store.transaction() as transaction:
        await transaction.put_metadata([RECORD])
    done = await anyio.run_process([sys.executable, "-c", REMOVE_AND_DIE, str(path)], check=False)
    assert done.returncode == 9
    assert find_traces(path)
    async with open_store(path, clock=FixedClock(NOW)):
        assert find_traces(path) == []


async def test_what_another_process_erases_meanwhile_stays_noted(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)):
        connection = Connection(path, 100)
        first = note_traces(connection)
        later = note_traces(connection)
        forget_traces(connection, first)
        assert get_traces(connection) == later
        forget_traces(connection, later)
        assert note_traces(connection) not in (first, later), "a note that is taken away gives its number to no other"
        connection.close()
