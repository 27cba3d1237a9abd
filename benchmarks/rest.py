"""What a search costs over REST and over MCP, beside what the index takes to find the same, in one run.

    python -m benchmarks.rest [--notes 0 100000] [--rounds 5] [--json]

A server in a process of its own answers one question after another on connections that are kept; between two of its
answers this process puts the same request to the index of the same file, through the door that the server uses, so
that both meet the same load. Each question is asked once before it counts: its vector is known by then, so embedding
has no part in it. 0 notes means the manuals of `../shared/data`, where they are present; others are invented.

Exit status 1 when a search over REST takes more than `MOST_COST` times what the index takes, by the medians.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import anyio
import numpy as np

from benchmarks.anatomy import make_notes
from benchmarks.quality import get_data_folder, read_collection
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search import passages
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import MODEL, HashingEmbedder, embed
from refdesk.model import Document, EmbeddedPassage, FindRequest, Found, Vector
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import models, search
from refdesk.toolsets.knowledge.models import SearchInput, StoreInput

MOST_COST = 3.0
"""What the index takes, so many times."""

ORG, AGENT = "local", "http"
STORE = "refdesk.sqlite3"
BATCH = 1000
QUESTIONS = 60
SERVE = ("serve", "--no-auth", "--toolset", "knowledge", "--port", "0")
SERVE_ALL = ("serve", "--no-auth", "--port", "0")
MCP_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Ask = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Notes, and questions about them."""

    name: str
    notes: Sequence[StoreInput]
    questions: Sequence[str]


@dataclass(slots=True)
class Times:
    """How long each answer took by the clock, and what all of them took of a processor, in milliseconds."""

    wall: list[float] = field(default_factory=list[float])
    cpu: float = 0.0

    @property
    def p50(self) -> float:
        """By the clock."""
        return median(self.wall)

    def to_json(self) -> dict[str, float]:
        """Return the median, the 95th percentile and the CPU of one answer."""
        return {
            "p50": round(self.p50, 3),
            "p95": round(quantiles(self.wall, n=20)[-1], 3),
            "cpu": round(self.cpu / len(self.wall), 3),
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """What the faces and the index took, in milliseconds."""

    corpus: str
    notes: int
    index: Times
    faces: dict[str, Times]

    def get_cost(self, face: str) -> float:
        """Return how many times what the index takes a face takes, by the medians."""
        return self.faces[face].p50 / self.index.p50

    def to_json(self) -> dict[str, Any]:
        """Return them with the ratios."""
        faces = {name: {**times.to_json(), "cost": round(self.get_cost(name), 2)} for name, times in self.faces.items()}
        return {"corpus": self.corpus, "notes": self.notes, "index": self.index.to_json(), **faces}

    def to_lines(self) -> list[str]:
        """Return them for people."""
        lines = [f"{self.notes} notes ({self.corpus})"]
        for name, times in {"index": self.index, **self.faces}.items():
            cost = "" if name == "index" else f"  {times.p50 / self.index.p50:5.2f} x the index"
            figures = times.to_json()
            p50, p95, cpu = figures["p50"], figures["p95"], figures["cpu"]
            lines.append(f"  {name:6} p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  CPU {cpu:5.2f} ms{cost}")
        return lines


def read_corpus(count: int) -> Corpus:
    """Return so many invented notes; the manuals for 0, if they are there."""
    folder = get_data_folder() / "emanual"
    if count == 0 and folder.exists():
        read = read_collection(folder)
        notes = [
            StoreInput.model_validate({"title": title[:200], "body": body or title}) for title, body in read.documents
        ]
        return Corpus("manuals", notes, read.queries[:QUESTIONS])
    notes = make_notes(count or 712)
    return Corpus("invented", notes, [" ".join(note.body.split()[:6]) for note in notes[:QUESTIONS]])


async def fill(store: Store, notes: Iterable[StoreInput]) -> None:
    """Keep the notes with their vectors, as many at once as a bulk load does."""
    semantics = Semantics(store, HashingEmbedder())
    base = KnowledgeBase(store, semantics)
    iterator = iter(notes)
    async with store.loading():
        while batch := list(islice(iterator, BATCH)):
            documents = [
                models.to_document(note, id=base.identifiers.new(), org=ORG, author=AGENT, now=base.clock.now())
                for note in batch
            ]
            async with store.transaction() as transaction:
                await transaction.put_documents(documents)
                await transaction.put_all_vectors([(each, [(MODEL, embed_passages(each))]) for each in documents])
    # Nothing is left to embed; the model becomes the one in use.
    await Indexer(store, semantics, SystemClock()).run_once()


def embed_passages(document: Document) -> list[EmbeddedPassage]:
    """Return a document's passages, each with the sum of its words' vectors: about what hashing it gives, in a fraction
    of the time. Vectors drawn at random would lie near nothing, and an index of them has no clusters to look in."""
    spans = passages.split(document.title, document.body)
    texts = [passages.embedding_text(document.title, document.body, span) for span in spans]
    sums = [np.sum([embed_word(word) for word in text.split()] or [embed_word("")], axis=0) for text in texts]
    return [EmbeddedPassage(*span, each / np.linalg.norm(each)) for span, each in zip(spans, sums, strict=True)]


@cache
def embed_word(word: str) -> Vector:
    """Return the vector of a word."""
    return embed(word)


@dataclass(slots=True)
class Recorder:
    """A store that remembers what it was asked to find."""

    store: Store
    requests: list[FindRequest] = field(default_factory=list[FindRequest])

    async def find(self, request: FindRequest) -> Found:
        """Find it, and remember what it was."""
        self.requests.append(request)
        return await self.store.find(request)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)


async def record(store: Store, question: str) -> FindRequest:
    """Return what a search for a question asks of the index."""
    recorder: Any = Recorder(store)
    base = KnowledgeBase(recorder, Semantics(store, HashingEmbedder()))
    await search.search(base, models.get_collection(ORG), SearchInput.model_validate({"query": question}))
    return recorder.requests[0]


class Server:
    """A server in a process of its own, and connections to it that are kept.

    Args:
        folder: Its data folder.
        python: The interpreter, in whose environment the package is.
        settings: What else its environment has; with any, all toolsets are served.
    """

    def __init__(self, folder: Path, python: str = sys.executable, settings: Mapping[str, str] | None = None) -> None:
        own = {"REFDESK_HOME": str(folder), "REFDESK_EMBEDDER": "hashing", "REFDESK_STORE": "", **(settings or {})}
        serve = SERVE if settings is None else SERVE_ALL
        command, environment = [python, "-m", "refdesk", *serve], {**os.environ, **own}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        url = next(entry["url"] for entry in map(json.loads, self.process.stderr) if "url" in entry)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.address: str = url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self.address, timeout=60)
        self._session: dict[str, str] = {}

    def post(self, path: str, value: object, headers: dict[str, str] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a value; it must be a good one."""
        headers = headers or {"content-type": "application/json"}
        self._connection.request("POST", path, json.dumps(value).encode(), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status in (200, 202), body
        if session := answer.headers.get("mcp-session-id"):
            self._session = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        return json.loads(body) if body else None

    def search(self, question: str) -> Any:  # noqa: ANN401 - JSON
        """Ask over REST."""
        return self.post("/knowledge/search", {"query": question})

    def open_session(self) -> None:
        """Begin a session of the protocol."""
        info = {"name": "benchmark", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.post("/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, MCP_HEADERS)
        self.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, MCP_HEADERS | self._session)

    def search_by_tool(self, question: str) -> Any:  # noqa: ANN401 - JSON
        """Ask over MCP."""
        params = {"name": "search_knowledge", "arguments": {"query": question}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self.post("/mcp", message, MCP_HEADERS | self._session)

    def get_cpu_seconds(self) -> float:
        """Return what its threads have taken of a processor so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def hang_up(self) -> None:
        """Let the next question open a connection anew: servers end those that nothing came on for long."""
        self._connection.close()

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self.process.terminate()
        self.process.wait()


@contextmanager
def running_server(
    folder: Path, python: str = sys.executable, settings: Mapping[str, str] | None = None
) -> Generator[Server]:
    """Give a server that is ended afterwards."""
    server = Server(folder, python, settings)
    try:
        yield server
    finally:
        server.close()


def time_one(times: Times, server: Server, ask: Ask, question: str) -> None:
    """Ask once, and note how long it took here and how much of a processor there."""
    before = server.get_cpu_seconds()
    start = perf_counter()
    ask(question)
    times.wall.append((perf_counter() - start) * 1000)
    times.cpu += (server.get_cpu_seconds() - before) * 1000


async def time_index(times: Times, store: Store, request: FindRequest) -> None:
    """Ask the index once."""
    (start, cpu) = perf_counter(), process_time()
    await store.find(request)
    times.wall.append((perf_counter() - start) * 1000)
    times.cpu += (process_time() - cpu) * 1000


async def compare(server: Server, store: Store, corpus: Corpus, rounds: int) -> Figures:
    """Ask everything in turns, after a round that does not count."""
    server.open_session()
    faces: dict[str, Ask] = {"REST": server.search, "MCP": server.search_by_tool}
    requests = {question: await record(store, question) for question in corpus.questions}
    server.hang_up()
    for question in corpus.questions:
        assert server.search(question)["results"]
        server.search_by_tool(question)
    index, times = Times(), {name: Times() for name in faces}
    for question in [*corpus.questions] * rounds:
        for name, ask in faces.items():
            time_one(times[name], server, ask, question)
        await time_index(index, store, requests[question])
    return Figures(corpus.name, len(corpus.notes), index, times)


@asynccontextmanager
async def filled_store(folder: Path, corpus: Corpus) -> AsyncGenerator[Store]:
    """Give a store in a folder that holds the notes."""
    async with open_store(folder / STORE) as store:
        await fill(store, corpus.notes)
        yield store


async def measure(count: int, rounds: int) -> Figures:
    """Return the figures for so many notes."""
    corpus = read_corpus(count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with filled_store(folder, corpus) as store:
            with running_server(folder) as server:
                return await compare(server, store, corpus, rounds)


def main() -> None:
    """Measure, print, and fail when it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    costs: list[float] = []
    for count in options.notes:
        figures = anyio.run(measure, count, options.rounds)
        costs.append(figures.get_cost("REST"))
        print(json.dumps(figures.to_json()) if options.json else "\n".join(figures.to_lines()), flush=True)
    sys.exit(max(costs) > MOST_COST)


if __name__ == "__main__":
    main()
