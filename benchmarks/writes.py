"""How long storing a note takes, against one bare commit to the same disk in the same run.

    python -m benchmarks.writes [--notes 960] [--json]

A note is stored by the operation's own handler, and over REST by a server in a process of its own; it is durable when
the answer is there. The bare commit is one row into one table of an empty SQLite file with the same journal and sync.
Writers and bare commits take turns, so that both meet the same load. Exit status 1 when a p95 is over
`MOST_MILLISECONDS`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any, TypeAlias

import anyio
import apsw
import httpx2
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing.quotas import Quota
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import QUOTA_NAME, store_knowledge

Note: TypeAlias = dict[str, object]
StoreNote: TypeAlias = Callable[[str, Note], Awaitable[None]]

MOST_MILLISECONDS = {1: 25.0, 32: 250.0}
"""By the number of writers."""

ROUNDS = 10
BODY = "The bank's gateway is down for maintenance on Sundays, so card payments fail until it is back. " * 10
SCOPES = frozenset({"knowledge:write"})
SERVE = ("serve", "--no-auth", "--toolset", "knowledge", "--port", "0")


@dataclass(frozen=True, slots=True)
class Figures:
    """Times in milliseconds, ours and those of a bare commit."""

    over: str
    writers: int
    p50: float
    p95: float
    bare_p95: float

    def to_json(self) -> dict[str, object]:
        """Return them with the ratio."""
        return {**asdict(self), "ratio": self.p95 / self.bare_p95}

    def to_line(self) -> str:
        """Return them for people."""
        return (
            f"{self.over:8} {self.writers:2} writers: p50 {self.p50:7.2f} ms, p95 {self.p95:7.2f} ms, "
            f"{self.p95 / self.bare_p95:6.1f} bare commits (p95 {self.bare_p95:.2f} ms)"
        )


@asynccontextmanager
async def open_handler(folder: Path) -> AsyncGenerator[StoreNote]:
    """Yield the handler on a knowledge base in a new file, with a quota to count against."""
    async with open_store(folder / "refdesk.sqlite3") as store:
        quota = Quota(QUOTA_NAME, per_org=10**9, per_agent=10**9)
        base = KnowledgeBase(store, Semantics(store, HashingEmbedder()), quotas={quota.name: quota})

        async def store_note(agent: str, note: Note) -> None:
            context = Context(Principal("acme", agent, SCOPES), base)
            await store_knowledge(context, StoreInput.model_validate(note))

        yield store_note


@asynccontextmanager
async def open_server(folder: Path) -> AsyncGenerator[StoreNote]:
    """Yield a call to a server in a process of its own; each agent keeps its connection."""
    command = [sys.executable, "-m", "refdesk", *SERVE]
    environment = {**os.environ, "REFDESK_HOME": str(folder), "REFDESK_EMBEDDER": "hashing", "REFDESK_STORE": ""}
    async with await anyio.open_process(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            url = await _read_url(process)
            async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=False, timeout=60) as client:

                async def store_note(_: str, note: Note) -> None:
                    (await client.post("/knowledge", json=note)).raise_for_status()

                yield store_note
        finally:
            process.terminate()


async def _read_url(process: Process) -> str:
    assert process.stderr is not None
    line = await BufferedByteReceiveStream(process.stderr).receive_until(b"\n", 16_384)
    return json.loads(line)["url"]


async def store_notes(store_note: StoreNote, agent: str, count: int) -> list[float]:
    """Return how long each of an agent's notes took, in milliseconds, stored one after another."""
    times: list[float] = []
    for number in range(count):
        note: Note = {"title": f"Note {number} of {agent}", "body": BODY, "tags": ["payments", "night"]}
        start = perf_counter()
        await store_note(agent, note)
        times.append((perf_counter() - start) * 1000)
    return times


async def store_together(store_note: StoreNote, writers: int, count: int) -> list[float]:
    """Return the times of so many writers' notes, `count` in all, all writers at once."""
    times: list[float] = []

    async def write(agent: str) -> None:
        times.extend(await store_notes(store_note, agent, max(1, count // writers)))

    async with anyio.create_task_group() as group:
        for number in range(writers):
            group.start_soon(write, f"agent {number}")
    return times


class BareFile:
    """The least that a durable write costs: one row into one table, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self._connection: Any = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "FULL")
        self._connection.execute("CREATE TABLE notes (body TEXT)")

    def commit(self, count: int) -> list[float]:
        """Return how long each of so many commits took, in milliseconds."""
        times: list[float] = []
        for _ in range(count):
            start = perf_counter()
            self._connection.execute("INSERT INTO notes VALUES (?)", (BODY,))
            times.append((perf_counter() - start) * 1000)
        return times


def get_p95(times: Sequence[float]) -> float:
    """Return the time that 95 of 100 stay below."""
    return quantiles(times, n=20)[-1]


async def measure(over: str, writers: int, notes: int) -> Figures:
    """Return the figures for so many writers over one of `DOORS`."""
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        plain = BareFile(Path(name) / "bare.sqlite3")
        async with DOORS[over](Path(name)) as store_note:
            await store_notes(store_note, "first", 5)  # not counted: it loads what the first note needs
            for _ in range(ROUNDS):
                ours += await store_together(store_note, writers, notes // ROUNDS)
                bare += plain.commit(notes // ROUNDS)
    return Figures(over, writers, quantiles(ours, n=2)[0], get_p95(ours), get_p95(bare))


DOORS: dict[str, Callable[[Path], AbstractAsyncContextManager[StoreNote]]] = {
    "handler": open_handler,
    "REST": open_server,
}


def main() -> None:
    """Measure, print, and fail when it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=960, help="how many are stored for each number of writers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = [anyio.run(measure, over, writers, options.notes) for over in DOORS for writers in MOST_MILLISECONDS]
    for each in figures:
        print(json.dumps(each.to_json()) if options.json else each.to_line())
    sys.exit(any(each.p95 > MOST_MILLISECONDS[each.writers] for each in figures))


if __name__ == "__main__":
    main()
