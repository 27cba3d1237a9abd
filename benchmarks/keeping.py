"""What it costs to notice damage and to make backups: checksums, the look through a file, a backup and its restore.

`python -m benchmarks.keeping [NOTES]` prints the processor's time of the checksums beside that of storing and reading
the same notes, their bytes beside the file's, and how long a look through the file, a backup and a restore take.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread

from refdesk.core.clock import SystemClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import audit
from refdesk.model import SHARED_ORG, Collection, Principal
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.backups import make_backup
from refdesk.stores.sqlite.checking import list_faults
from refdesk.stores.sqlite.checksums import compute_checksum
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.restoring import restore
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import store_knowledge

NOTES = 500
TABLES = {
    "documents": "SELECT org, toolset, documents.* FROM documents JOIN collections ON collections.key = collection",
    "records": "SELECT org, kind, name, due_at, value FROM records",
    "links": "SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at FROM links",
}


async def store_notes(path: Path, count: int) -> tuple[float, float]:
    """Store notes, each as an agent does, and read them; return the processor's seconds of both."""
    principal = Principal("acme", "ann", frozenset())
    async with open_store(path) as store:
        kept = audit.watch(store, SystemClock(), audit.make_actor(principal, "mcp"), "store_knowledge")
        context = Context(principal, KnowledgeBase(kept))
        began = time.process_time()
        ids: list[str] = []
        for number in range(count):
            body = f"What was learned in round {number}. " * 100
            note = StoreInput.model_validate({"title": f"Note {number}", "body": body})
            ids.append((await store_knowledge(context, note)).id)
        stored = time.process_time()
        await store.get_documents(Collection("acme", "knowledge"), ids)
        return stored - began, time.process_time() - stored


def compute_all(path: Path) -> tuple[float, float, int]:
    """Compute a checksum of every row; return the processor's seconds, those of documents, and the checksums' bytes."""
    seconds: dict[str, float] = {}
    connection, rows_there = Connection(path, 1000), 0
    for table, statement in TABLES.items():
        rows = connection.execute(statement)
        texts = [[value for value in row if not isinstance(value, bytes)] for row in rows]
        began = time.process_time()
        for row in texts:
            compute_checksum(*row)
        seconds[table] = time.process_time() - began
        rows_there += len(rows)
    connection.close()
    return sum(seconds.values()), seconds["documents"], rows_there * 6


def measure(work: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def look_through(path: Path) -> None:
    """Look through a file as it is done after a crash."""
    connection = Connection(path, 1000)
    assert list_faults(connection) == []
    connection.close()


async def measure_all(count: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path, backup = Path(folder) / "store.sqlite3", Path(folder) / "backup"
        stored, read = await store_notes(path, count)
        every, documents, extra = compute_all(path)
        megabytes = (await anyio.Path(path).stat()).st_size / 1e6
        print(f"{count} notes, {megabytes:.1f} MB")
        print(f"checksums beside storing: {every / stored:.2%} of the processor's time")
        print(f"checksums beside reading: {documents / read:.2%} of the processor's time")
        print(f"checksums in the file: at most {extra / megabytes / 1e6:.2%} of it")
        looked = await anyio.to_thread.run_sync(measure, lambda: look_through(path))
        backed_up = await anyio.to_thread.run_sync(measure, lambda: make_backup(path, backup))
        began = time.perf_counter()
        await restore(backup, {"": path}, SystemClock(), audit.Actor(SHARED_ORG, "bench", "cli"))
        restored = time.perf_counter() - began
        for name, seconds in (("look through", looked), ("backup", backed_up), ("restore", restored)):
            print(f"{name}: {seconds:.2f} s, {seconds / megabytes * 1000:.0f} ms per MB")


def main() -> None:
    """Measure as often as asked."""
    anyio.run(measure_all, int(sys.argv[1]) if len(sys.argv) > 1 else NOTES)


if __name__ == "__main__":
    main()
