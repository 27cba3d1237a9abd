"""How fast the feed arrives and is searched: the real records where they are present, else the sample world.

    python -m benchmarks.updates [--no-vectors]

The emulator serves the records in a process of its own; refdesk's own client reads them into a new store. Searches
run in this process, with a warm model, beside the same words on a plain FTS5 table in this run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

import anyio

from refdesk.core.background.embedding import Indexer
from refdesk.core.background.syncing import Syncer
from refdesk.core.clock import SystemClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.question_vectors import QuestionVectors
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.model import Principal
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.azure_updates.models import COLLECTION, SearchInput
from refdesk.toolsets.azure_updates.records import get_converter_version, to_document
from refdesk.toolsets.azure_updates.search import search_updates
from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader
from sample_world.azure_updates import load_world
from sample_world.azure_updates.process import running_emulator

REPOSITORY = Path(__file__).resolve().parent.parent
ROUNDS = 5
QUESTIONS = (
    "kubernetes node patching",
    "retirement of basic load balancer",
    "private endpoint for storage accounts",
    "postgresql flexible server high availability",
    "confidential computing virtual machines",
    "what is new in azure functions",
    "openai model availability in new regions",
    "firewall threat intelligence",
    "managed identity for data factory",
    "backup of disks across regions",
)
FILTERS = {"availabilityRing": "General Availability", "dateFrom": "2025-09-01"}


async def measure(records: list[dict[str, object]], home: Path, *, with_vectors: bool) -> None:
    """Sync, embed and search; print a line for each."""
    file = home / "records.json"
    file.write_text(json.dumps(records))
    async with running_emulator(records=file) as feed, open_store(home / "refdesk.sqlite3") as store:
        syncer = Syncer(
            store,
            AzureUpdatesSource(make_reader(feed.url)),
            COLLECTION,
            to_document,
            SystemClock(),
            converter_version=get_converter_version(),
        )
        embedder = LocalEmbedder()
        base = KnowledgeBase(store, Semantics(store, embedder))
        forgetful = KnowledgeBase(store, Semantics(store, embedder, questions=QuestionVectors(most=0)))
        context = Context(Principal("local", "benchmark", frozenset({"updates:read"})), base)
        await time_sync(syncer, context)
        if with_vectors:
            await time_embedding(Indexer(store, base.semantics or Semantics(store, embedder), SystemClock()), store)
        await time_searches(context)
        if with_vectors:
            meaning: dict[str, object] = {"filters": FILTERS, "semantic": True}
            await time_rounds("search, filters, meaning", meaning, replace(context, knowledge_base=forgetful))
            await time_rounds("the same, asked again", meaning, context)
        time_peer([(str(r.get("title") or ""), str(r.get("description") or "")) for r in records])


async def time_sync(syncer: Syncer, context: Context) -> None:
    """Time the first sync until its records are found, and syncs that find nothing new."""
    (start, cpu) = time.perf_counter(), get_cpu_seconds()
    report = await syncer.sync()
    found = await ask(context, "kubernetes")
    show("first sync, found by words", time.perf_counter() - start, "s", f"{get_cpu_seconds() - cpu:.1f} CPU s")
    print(f"{'':34}{report.added} added, {report.quarantined} set aside, {found} found")

    async def read() -> int:
        async for _ in syncer.source.read(None):
            pass
        return 0

    async def sync(syncer: Syncer) -> int:
        return (await syncer.sync(full=True)).written

    variants: dict[str, Callable[[], Awaitable[int]]] = {
        "sync, nothing new": lambda: sync(syncer),
        "of that, reading the feed": read,
        "the same, converting all": lambda: sync(replace(syncer, converter_version=None)),
    }
    costs = {name: await time_unchanged(name, each) for name, each in variants.items()}
    ratio = costs["sync, nothing new"] / costs["the same, converting all"]
    reading = costs["of that, reading the feed"] / costs["the same, converting all"]
    print(f"{'':34}{ratio:.2f} of converting all; reading the feed alone is {reading:.2f}")


async def time_unchanged(name: str, sync: Callable[[], Awaitable[int]]) -> float:
    """Time what finds nothing new, the best of `ROUNDS`; return CPU seconds."""
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        (start, cpu) = time.perf_counter(), get_cpu_seconds()
        written = await sync()
        times.append((get_cpu_seconds() - cpu, time.perf_counter() - start))
        assert written == 0
    cpu, seconds = min(times)
    show(name, cpu, "s", f"CPU seconds; {seconds:.2f} s by the clock")
    return cpu


async def time_embedding(indexer: Indexer, store: Store) -> None:
    """Time until every record has its vectors."""
    (start, cpu) = time.perf_counter(), get_cpu_seconds()
    count = await indexer.run_once()
    seconds, cpu = time.perf_counter() - start, get_cpu_seconds() - cpu
    show("all vectors", seconds, "s", f"{cpu:.1f} CPU s, {count / cpu:.0f} records a CPU second")
    assert await store.get_unembedded(COLLECTION, indexer.semantics.wanted.model.name, 1) == []


async def time_searches(context: Context) -> None:
    """Time searches by words, with filters and facets."""
    kinds: dict[str, dict[str, object]] = {
        "search": {},
        "search, filters": {"filters": FILTERS},
        "search, filters, facets": {"filters": FILTERS, "facets": ["tags", "products"]},
    }
    for name, more in kinds.items():
        await time_rounds(name, more, context)


async def time_rounds(name: str, more: dict[str, object], context: Context) -> None:
    """Time each question `ROUNDS` times, after a round that does not count."""
    times: list[float] = []
    for question in QUESTIONS:
        await ask(context, question, limit=10, **more)
    cpu = get_cpu_seconds()
    for question in QUESTIONS * ROUNDS:
        start = time.perf_counter()
        await ask(context, question, limit=10, **more)
        times.append((time.perf_counter() - start) * 1000)
    cpu = (get_cpu_seconds() - cpu) * 1000 / len(times)
    show(name, median(times), "ms", f"p95 {quantiles(times, n=20)[-1]:.1f} ms, {cpu:.1f} CPU ms each")


def time_peer(documents: Sequence[tuple[str, str]]) -> None:
    """Time the same words on a plain FTS5 table that gives back ten whole records."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE document USING fts5(title, body, tokenize = 'porter unicode61')")
        database.executemany("INSERT INTO document VALUES (?, ?)", documents)
        times = [time_once(lambda question=question: match(database, question)) for question in QUESTIONS * ROUNDS]
    show("a plain FTS5 table (peer)", median(times), "ms", "no filters, no counts, no Markdown")


def match(database: sqlite3.Connection, question: str) -> list[tuple[str, str]]:
    """Return the ten best records that hold any of the words."""
    words = " OR ".join(f'"{word}"' for word in question.split())
    return database.execute(
        "SELECT title, body FROM document WHERE document MATCH ? ORDER BY rank LIMIT 10", (words,)
    ).fetchall()


def time_once(work: Callable[[], object]) -> float:
    """Return how long it takes, in milliseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


async def ask(context: Context, question: str, **more: object) -> int:
    """Search as an agent does, and return how many match."""
    output = await search_updates(context, SearchInput.model_validate({"query": question, **more}))
    return output.total


def get_cpu_seconds() -> float:
    """Return the CPU seconds of this process so far, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def show(name: str, value: float, unit: str, more: str) -> None:
    """Print one line of the table."""
    print(f"{name:34}{value:8.2f} {unit:3}  ({more})", flush=True)


def load_records() -> list[dict[str, object]]:
    """Return the real records, or the sample world's where they are absent."""
    data = os.environ.get("REFDESK_TEST_DATA") or REPOSITORY.parent / "shared" / "data"
    archive = Path(data) / "azure-updates" / "archive.json"
    if archive.exists():
        return json.loads(archive.read_text())["items"]
    print("No real records: set REFDESK_TEST_DATA. This is the sample world.", file=sys.stderr)
    return [dict(record) for record in load_world()]


def main() -> None:
    """Measure on a new store in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-vectors", action="store_true", help="leave out what needs the model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:

        async def run() -> None:
            await measure(load_records(), Path(folder), with_vectors=not options.no_vectors)

        anyio.run(run)


if __name__ == "__main__":
    main()
