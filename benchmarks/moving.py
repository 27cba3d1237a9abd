"""How long writes wait while a store is moved, and what it costs to be ready to follow.

    python -m benchmarks.moving [--notes 5000] [--writers 4] [--postgres] [--json]

A file of notes with a vector each is moved to another file, or to a PostgreSQL of its own, while writers store notes
through a store that follows, and readers read what was stored. Printed are the longest that a write and a read took
during the move, how long the mover let writes stand still, and how long all of it took. Then reads of one record by a
store that follows are compared with those by the store itself, in turns, as CPU time.

Exit status 1 when a write took longer than `MOST_SECONDS`, or following costs more than `MOST_COST`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import anyio
import numpy as np

from refdesk.core.clock import SystemClock
from refdesk.core.keeping.following import follow
from refdesk.core.keeping.moving import Mover
from refdesk.factories.stores import choose_store
from refdesk.model import Collection, Document, EmbeddedPassage, EmbeddingModel, MetadataKey
from refdesk.stores.sqlite import open_store

if TYPE_CHECKING:
    from refdesk.protocols import Store

MOST_SECONDS = 2.0
MOST_COST = 1.5
"""Of the CPU of reading one record, for following."""

NOTES = Collection("acme", "knowledge")
MODEL = EmbeddingModel("random", 384)
PIECE = 200
READS = 2000
ROUNDS = 7


def make_note(number: int, name: str = "n") -> Document:
    """Return a note of some sentences."""
    words = " ".join(f"word{(number * 31 + place) % 4000}" for place in range(80))
    now = SystemClock().now()
    return Document(
        collection=NOTES,
        id=f"{name}{number:07}",
        title=f"Note {number}",
        body=words,
        author="ann",
        created_at=now,
        modified_at=now,
    )


async def fill(store: Store, notes: int) -> None:
    """Store the notes, each with a vector."""
    random = np.random.default_rng(5)
    for start in range(0, notes, PIECE):
        documents = [make_note(number) for number in range(start, min(notes, start + PIECE))]
        async with store.transaction() as transaction:
            await transaction.put_documents(documents)
            for document in documents:
                vector = random.standard_normal(MODEL.dimensions).astype(np.float32)
                passage = EmbeddedPassage(0, len(document.body), (vector / np.linalg.norm(vector)).astype(np.float32))
                await transaction.put_vectors(NOTES, document.id, MODEL, document.text_digest, [passage])


class Load:
    """Writers and readers, until the move is through and a moment longer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers = count()
        self.is_over = False
        self.written: list[float] = []
        self.read: list[float] = []

    async def run(self) -> None:
        """Store a note and read it, again and again."""
        while not self.is_over:
            note = make_note(next(self._numbers), "w")
            began = perf_counter()
            async with self._store.transaction() as transaction:
                await transaction.put_documents([note])
            self.written.append(perf_counter() - began)
            began = perf_counter()
            assert (await self._store.get_documents(NOTES, [note.id]))[0] is not None
            self.read.append(perf_counter() - began)


@asynccontextmanager
async def open_target(url: str) -> AsyncGenerator[Store]:
    """Yield the store at a URL."""
    async with choose_store(url)() as store:
        yield store


async def measure_move(path: Path, url: str, notes: int, writers: int) -> dict[str, float]:
    """Return seconds by what took them."""

    def open_other(_: str) -> AbstractAsyncContextManager[Store]:
        return open_target(url)

    async with open_store(path) as source, open_target(url) as target, follow(open_store(path), open_other) as served:
        await fill(source, notes)
        load, began, took = Load(served), perf_counter(), 0.0
        mover = Mover(source, target, "benchmark", url)
        async with anyio.create_task_group() as group:
            for _ in range(writers):
                group.start_soon(load.run)
            await mover.run()
            took = perf_counter() - began
            for number in range(50):  # in the new store
                async with served.transaction() as transaction:
                    await transaction.put_documents([make_note(number, "after")])
            load.is_over = True
        assert len(await target.get_digests(NOTES)) == notes + len(load.written) + 50
        return {
            "notes": notes,
            "written": len(load.written),
            "move": took,
            "standstill": mover.standstill_seconds,
            "longest write": max(load.written),
            "median write": median(load.written),
            "longest read": max(load.read),
        }


async def measure_cost(path: Path) -> float:
    """Return the CPU of a read by a store that follows, of that by the store itself."""
    key, costs = MetadataKey("acme", "none", "none"), list[float]()
    async with open_store(path) as own, follow(open_store(path), open_target) as followed:
        for _ in range(ROUNDS):
            spent: list[float] = []
            for store in (own, followed):
                began = process_time()
                for _ in range(READS):
                    await store.get_metadata(key)
                spent.append(process_time() - began)
            costs.append(spent[1] / spent[0])
    return median(costs)


def main() -> int:
    """Print what was measured; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'new.sqlite3'}"
        if options.postgres:
            from tests.engines.postgres import running

            url = stack.enter_context(running(fsync=True)).get_url()
        figures = anyio.run(measure_move, folder / "old.sqlite3", url, options.notes, options.writers)
        figures["cost of following"] = anyio.run(measure_cost, folder / "cost.sqlite3")
    for name, figure in figures.items():
        if not options.json:
            sys.stdout.write(f"{name:20} {figure:10.4g}\n")
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
    return int(figures["longest write"] > MOST_SECONDS or figures["cost of following"] > MOST_COST)


if __name__ == "__main__":
    sys.exit(main())
