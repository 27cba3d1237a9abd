"""What is done for all orgs of a store, with a thousand of them and with ten thousand, on PostgreSQL.

    python -m benchmarks.tenants [URL] [--orgs 1000 10000] [--notes 5] [--json]

Without a URL a server is started for it from the wheel that `make test-engines` installs; a database named by a URL
must be refdesk's, and empty. Notes and vectors are invented from a seed. Measured, each as a median: what `GET /health`
counts, and what it takes a process that has just started to find what is to be embedded, while nothing waits for that
and while a note of every org does; and the look after a write. Beside it stands a plain count of all documents by org,
which grows with their number, as what would be read if nothing was counted as it is written.

Exit status 1 when something takes more than `MOST_GROWTH` times as long with ten times the orgs, or longer than
`MOST_MILLISECONDS`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from itertools import count
from statistics import median
from time import perf_counter

import anyio
import numpy as np
from psycopg import AsyncConnection

from benchmarks.invented import invent, make_document
from benchmarks.postgres import opened
from benchmarks.postgres_writes import connected
from refdesk.core.background.due import Lookout
from refdesk.core.background.embedding import LISTED_DOCUMENTS, Indexer
from refdesk.core.background.health import measure_backlog
from refdesk.core.clock import SystemClock
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import MODEL, HashingEmbedder
from refdesk.model import Collection, EmbeddedPassage
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store

ORGS = (1000, 10_000)
NOTES, TEXTS, ROUNDS, TOGETHER = 5, 2000, 7, 50
MOST_GROWTH = 15.0
MOST_MILLISECONDS = 1000.0

_PLAIN = "SELECT org, state, count(*) FROM documents GROUP BY org, state"


@cache
def _get_texts() -> Sequence[tuple[str, str]]:
    return invent(TEXTS).texts


async def fill(store: Store, orgs: range, notes: int) -> None:
    """Store so many notes in each of some orgs, with vectors."""
    random = np.random.default_rng(5)
    async with store.loading():
        for first in range(orgs.start, orgs.stop, TOGETHER):
            async with store.transaction() as transaction:
                for org in range(first, min(first + TOGETHER, orgs.stop)):
                    place = Collection(f"org-{org:05}", "knowledge")
                    documents = [
                        make_document(place, number, *_get_texts()[(org * notes + number) % TEXTS])
                        for number in range(notes)
                    ]
                    vectors = random.standard_normal((notes, MODEL.dimensions)).astype(np.float32)
                    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                    await transaction.put_documents(documents)
                    await transaction.put_all_vectors(
                        [
                            (document, [(MODEL, [EmbeddedPassage(0, len(document.body), vector)])])
                            for document, vector in zip(documents, vectors, strict=True)
                        ]
                    )


async def add(store: Store, orgs: Sequence[int], number: int) -> None:
    """Store one more note in each of some orgs, without vectors."""
    title, body = _get_texts()[number % TEXTS]
    async with store.transaction() as transaction:
        places = [Collection(f"org-{org:05}", "knowledge") for org in orgs]
        await transaction.put_documents([make_document(place, number, title, body) for place in places])


def start(store: Store) -> Indexer:
    """Return what looks for documents to embed in a process that has just started."""
    return Indexer(store, Semantics(store, HashingEmbedder()), SystemClock())


async def look(store: Store) -> object:
    """Find what is to be embedded as a process does that has just started."""
    return await Lookout(store, SystemClock()).find(MODEL.name, {}, LISTED_DOCUMENTS)


async def time(work: Callable[[], Awaitable[object]]) -> float:
    """Return how many milliseconds something takes: the median of some rounds."""
    times = list[float]()
    for _ in range(ROUNDS):
        begun = perf_counter()
        await work()
        times.append((perf_counter() - begun) * 1000)
    return median(times)


async def measure(store: Store, connection: AsyncConnection, orgs: int, notes: int) -> dict[str, float]:
    """Return the milliseconds that each thing takes."""
    await connection.execute("SELECT set_config('refdesk.all_orgs', 'on', false)")
    numbers = count(notes + 100 * orgs)  # none that another size has taken
    looking = start(store)
    await looking.sweep()

    async def write_and_look() -> None:
        await add(store, [0], next(numbers))
        await looking.sweep()

    found = {
        "counting all documents": await time(lambda: connection.execute(_PLAIN)),
        "health, all embedded": await time(lambda: measure_backlog(start(store))),
        "first look, all embedded": await time(lambda: look(store)),
        "a write and its look": await time(write_and_look),
    }
    await add(store, range(orgs), next(numbers))
    found["health, a note in each waits"] = await time(lambda: measure_backlog(start(store)))
    found["first look, a note in each waits"] = await time(lambda: look(store))
    while await looking.sweep() == 0.0:
        pass
    return found


async def run(url: str, sizes: Sequence[int], notes: int) -> dict[int, dict[str, float]]:
    """Measure and return the milliseconds by the number of orgs."""
    every, before = dict[int, dict[str, float]](), 0
    async with open_store(url) as store, connected(url, 1) as (connection,):
        for orgs in sizes:
            await fill(store, range(before, orgs), notes)
            every[orgs], before = await measure(store, connection, orgs, notes), orgs
    return every


def main() -> None:
    """Measure, print, and fail when it grows too fast or takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="the URL of an empty database")
    parser.add_argument("--orgs", type=int, nargs="+", default=ORGS)
    parser.add_argument("--notes", type=int, default=NOTES, help="notes of each org")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with opened(options.url) as url:
        every = anyio.run(run, url, options.orgs, options.notes)
    first, last = every[options.orgs[0]], every[options.orgs[-1]]
    print(f"{'milliseconds, by orgs':34}" + "".join(f"{orgs:>10,}" for orgs in every) + "     ratio")
    for name in first:
        print(
            f"{name:34}"
            + "".join(f"{each[name]:10.1f}" for each in every.values())
            + f"{last[name] / first[name]:10.1f}"
        )
    if options.json:
        print(json.dumps({str(orgs): each for orgs, each in every.items()}))
    ours = [name for name in first if name != "counting all documents"]
    sys.exit(any(last[name] > min(MOST_MILLISECONDS, MOST_GROWTH * first[name]) for name in ours))


if __name__ == "__main__":
    main()
