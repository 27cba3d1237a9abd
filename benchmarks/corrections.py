"""What correcting one note over and over costs: `python -m benchmarks.corrections [--corrections N] [URL …]`.

A note of about 4,000 bytes is corrected a thousand times, each time by another note with a wording of its own that
supersedes the one before. Printed for SQLite, and for each store at a URL (empty, PostgreSQL or Neo4j), without vectors
and with them:

- the bytes of the file, its log and the index files beside it (on PostgreSQL: of the tables and their indexes), over
  the bytes of the text: 1,000 corrections must stay below 3;
- the time of a supersession at the end of the chain, over that of one in a chain of two, taking turns in one store; and
  the processor's time of the last 50 over that of the first 50. Both must stay below 1.5.

Vectors are as wide as the packaged model's and cut as it cuts; they come from no model, for their size is what counts.
Neo4j keeps all stores of a server in the same files and does not say what one takes.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import numpy as np

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.factories.stores import choose_store
from refdesk.model import EmbeddingModel, Principal, Vector
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import StoreInput, SupersedeInput
from refdesk.toolsets.knowledge.operations import store_knowledge, supersede_knowledge

CORRECTIONS = 1000
COMPARED = 50
WARM_UP = 5
BODY_BYTES = 4000
SEED = 7
PRINCIPAL = Principal("acme", "ann", frozenset())


class Drawn:
    """An embedder as wide as the packaged one, whose vectors are drawn from all directions alike."""

    model = EmbeddingModel("drawn-384", 384)
    is_ready, is_remote = True, False

    def __init__(self) -> None:
        self._chance = np.random.default_rng(SEED)

    def knows(self, language: str | None) -> bool:
        """Any language."""
        return True

    def reads(self, text: str) -> bool:
        """Return that it reads everything."""
        return True

    async def load(self) -> None:
        """Return at once."""

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return a direction for each."""
        drawn = self._chance.standard_normal((len(texts), self.model.dimensions)).astype(np.float32)
        return list(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))

    async def embed_query(self, text: str) -> Vector:
        """Return a direction."""
        return (await self.embed_passages([text]))[0]


@dataclass(slots=True)
class Measured:
    """What was measured.

    Attributes:
        text: Bytes of all titles and bodies.
        size: Bytes that the store takes; `None` where nobody knows.
        processor: Seconds of the processor for each supersession of the chain.
        late, fresh: Seconds of supersessions at the end of the chain, and of ones in chains of two.
    """

    text: int = 0
    size: int | None = None
    processor: list[float] = field(default_factory=list[float])
    late: list[float] = field(default_factory=list[float])
    fresh: list[float] = field(default_factory=list[float])

    def show(self, name: str) -> str:
        """Return a row of the table."""
        size = f"{self.size / self.text:5.2f}" if self.size is not None else "    –"
        turns = np.median(self.late) / np.median(self.fresh)
        processor = np.median(self.processor[-COMPARED:]) / np.median(self.processor[WARM_UP : WARM_UP + COMPARED])
        times = f"last {turns:4.2f} × one in a chain of two, {processor:4.2f} × the first in the processor"
        return f"{name:28} {size} × the text   {times} ({np.median(self.late) * 1000:.2f} ms)"


class Writer:
    """Writes notes out of the plain sentences of this repository's own pages, each time another choice of them."""

    def __init__(self) -> None:
        pages = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))
        prose = " ".join(page.read_text("utf-8") for page in pages)
        self._sentences = [
            each for each in re.split(r"(?<=[.:])\s+", prose) if re.fullmatch(r"[\w\s,.:;'()-]{40,400}", each)
        ]
        self._chance = random.Random(SEED)

    def write(self) -> str:
        """Return the body of a note."""
        body = ""
        while len(body) < BODY_BYTES:
            body += self._chance.choice(self._sentences) + " "
        return body[:BODY_BYTES]


async def correct(store: Store, corrections: int, has_vectors: bool, measured: Measured) -> str:
    """Correct a note so many times, and return the id of the last one."""
    semantics = Semantics(store, Drawn()) if has_vectors else None
    context, writer = Context(PRINCIPAL, KnowledgeBase(store, semantics)), Writer()
    indexer = Indexer(store, semantics, SystemClock()) if semantics is not None else None
    last = await write(context, writer, measured)
    for number in range(corrections):
        new = await write(context, writer, measured)
        began = time.process_time()
        await supersede(context, last, new)
        measured.processor.append(time.process_time() - began)
        last = new
        if indexer is not None and number % COMPARED == 0:
            await indexer.run_once()
    if indexer is not None:
        await indexer.run_once()
    return last


async def take_turns(store: Store, last: str, measured: Measured) -> None:
    """Correct the note some more, in turns with notes that are corrected once."""
    context, writer, beside = Context(PRINCIPAL, KnowledgeBase(store)), Writer(), Measured()
    for _ in range(COMPARED):
        old, other, new = [await write(context, writer, beside) for _ in range(3)]
        measured.late.append(await supersede(context, last, new))
        measured.fresh.append(await supersede(context, old, other))
        last = new


async def write(context: Context, writer: Writer, measured: Measured) -> str:
    """Store a note and return its id."""
    note = StoreInput.model_validate({"title": "How refunds work", "body": writer.write()})
    measured.text += len(note.title.encode()) + len(note.body.encode())
    return (await store_knowledge(context, note)).id


async def supersede(context: Context, old: str, new: str) -> float:
    """Let one note supersede another, and return how long it took, in seconds."""
    pair = SupersedeInput.model_validate({"oldId": old, "newId": new})
    began = time.perf_counter()
    await supersede_knowledge(context, pair)
    return time.perf_counter() - began


def measure_files(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure_tables(url: str) -> int:
    """Return the bytes of a PostgreSQL schema's tables with their indexes."""
    import psycopg  # an extra, needed for this alone

    with psycopg.connect(url) as connection:
        [(size,)] = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
        ).fetchall()
    return int(size)


async def measure_sqlite(corrections: int, has_vectors: bool) -> Measured:
    """Measure a file of its own."""
    measured = Measured()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_store(folder / "store.sqlite3") as store:
            last = await correct(store, corrections, has_vectors, measured)
        measured.size = measure_files(folder)
        async with open_store(folder / "store.sqlite3") as store:
            await take_turns(store, last, measured)
    return measured


async def measure_server(url: str, corrections: int, has_vectors: bool) -> Measured:
    """Measure an empty store on a server."""
    measured = Measured()
    async with choose_store(url, "the address")() as store:
        if await store.list_documents(None, 1):
            raise SystemExit("The store is not empty: give one that holds nothing yet.")
        last = await correct(store, corrections, has_vectors, measured)
        await store.scrub()
        measured.size = measure_tables(url) if url.startswith("postgres") else None
        await take_turns(store, last, measured)
    return measured


async def run(corrections: int, urls: list[str]) -> None:
    """Measure each and print."""
    for has_vectors in (False, True):
        name = f"sqlite, {'with' if has_vectors else 'without'} vectors"
        print((await measure_sqlite(corrections, has_vectors)).show(name), flush=True)
    for url in urls:
        name = f"{url.partition(':')[0]}, with vectors"
        print((await measure_server(url, corrections, has_vectors=True)).show(name), flush=True)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corrections", type=int, default=CORRECTIONS)
    parser.add_argument("urls", nargs="*", metavar="URL")
    given = parser.parse_args()
    anyio.run(run, given.corrections, given.urls)


if __name__ == "__main__":
    main()
