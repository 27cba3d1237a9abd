"""How long storing a note takes, against one bare commit to the same disk in the same run.

    python -m benchmarks.writes [--notes 960] [--json]

A note is stored by the operation's own handler, and over REST by a server in a process of its own; it is durable when
the answer is there. The bare commit writes the same rows into the same tables of another file, with the same journal
and sync, and does nothing else. Writers and bare commits take turns, so that both meet the same load.

Exit status 1 when a p95 is over `MOST_MILLISECONDS`, when one writer's note takes more than `MOST_COST` bare commits by
the medians, or when 32 writers reach less than `LEAST_SHARE` of the rate of bare commits.
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
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, TypeAlias
from uuid import UUID

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
from refdesk.toolsets.knowledge import duplicates
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import store_knowledge

Note: TypeAlias = dict[str, object]
StoreNote: TypeAlias = Callable[[str, Note], Awaitable[None]]

MOST_MILLISECONDS = {1: 25.0, 32: 250.0}
"""By the number of writers."""

MOST_COST = 4.0
"""Bare commits that a note by one writer may take."""

LEAST_SHARE = 0.5
"""What part of the rate of bare commits 32 writers must reach."""

STORE = "refdesk.sqlite3"
ROUNDS = 10
BODY = "The bank's gateway is down for maintenance on Sundays, so card payments fail until it is back. " * 10
SCOPES = frozenset({"knowledge:write"})
SERVE = ("serve", "--no-auth", "--toolset", "knowledge", "--port", "0")


@dataclass(frozen=True, slots=True)
class Figures:
    """Times in milliseconds, ours and those of a bare commit; rates a second."""

    over: str
    writers: int
    p50: float
    p95: float
    bare_p50: float
    bare_p95: float
    rate: float
    bare_rate: float
    cpu: float

    @property
    def cost(self) -> float:
        """How many bare commits one note takes, by the medians."""
        return self.p50 / self.bare_p50

    @property
    def share(self) -> float:
        """What part of the rate of bare commits, one after another, all writers together reach."""
        return self.rate / self.bare_rate

    def to_json(self) -> dict[str, object]:
        """Return them with both ratios."""
        return {**asdict(self), "cost": self.cost, "share": self.share}

    def to_line(self) -> str:
        """Return them for people."""
        return (
            f"{self.over:8}{self.writers:3} writers: p50 {self.p50:6.2f} ms, p95 {self.p95:6.2f} ms, "
            f"{self.cost:5.1f} bare commits (p50 {self.bare_p50:.2f} ms); {self.rate:5.0f} a second, "
            f"{self.share:4.2f} of bare commits ({self.bare_rate:.0f}); {self.cpu:.2f} ms of CPU here"
        )


@asynccontextmanager
async def open_handler(folder: Path) -> AsyncGenerator[StoreNote]:
    """Yield the handler on a knowledge base in a new file, with a quota to count against."""
    async with open_store(folder / STORE) as store:
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
    """The least that a durable write of a note costs: the same rows into the same tables, in a file of its own.

    Nothing is prepared or looked up: the rows are those that storing a note left in a store (the note, its wording and
    both counts), under other ids.
    """

    def __init__(self, path: Path, model: Path) -> None:
        self._connection: Any = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "FULL")
        self._connection.pragma("foreign_keys", 1)
        self._copy_schema(model)
        self._count = 0

    def _copy_schema(self, model: Path) -> None:
        self._connection.execute("ATTACH ? AS model", (str(model),))
        tables = self._connection.execute("SELECT sql FROM model.sqlite_master WHERE sql IS NOT NULL").fetchall()
        for (statement,) in tables:
            self._connection.execute(statement)
        self._connection.execute("INSERT INTO collections SELECT * FROM model.collections")
        self._connection.execute("INSERT INTO counters SELECT * FROM model.counters")
        self._connection.execute("INSERT INTO records SELECT * FROM model.records")
        self._quotas = self._connection.execute("SELECT org, name FROM records WHERE kind = 'quota'").fetchall()
        [self._wording] = self._connection.execute(
            "SELECT org, kind, due_at, value, checksum FROM records WHERE kind = ? LIMIT 1", (duplicates.KIND,)
        )
        cursor = self._connection.execute("SELECT * FROM model.documents")
        names = [name for name, _ in cursor.get_description()]
        self._row = dict(zip(names, cursor.fetchall()[0], strict=True))
        self._insert = " ".join(["INSERT INTO documents VALUES (", ", ".join(f":{name}" for name in names), ")"])
        self._connection.execute("DETACH model")

    def commit(self, count: int) -> list[float]:
        """Return how long each of so many commits took, in milliseconds."""
        times: list[float] = []
        for _ in range(count):
            start = perf_counter()
            self._commit_one()
            times.append((perf_counter() - start) * 1000)
        return times

    def _commit_one(self) -> None:
        self._count += 1
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute("UPDATE counters SET value = value + 1 WHERE name = 'change'")
        execute("UPDATE collections SET changed = ?", (self._count,))
        execute(self._insert, {**self._row, "key": None, "id": str(UUID(int=self._count)), "written": self._count})
        for org, name in self._quotas[:2]:  # counted up: an update to what is there already writes nothing
            count = f'{{"used":{self._count}}}'
            execute("UPDATE records SET value = ? WHERE org = ? AND kind = 'quota' AND name = ?", (count, org, name))
        wording = duplicates.identify("", str(self._count))
        execute(
            "INSERT INTO records (org, kind, due_at, value, checksum, name) VALUES (?, ?, ?, ?, ?, ?)",
            (*self._wording, wording),
        )
        execute("COMMIT")


def get_p95(times: Sequence[float]) -> float:
    """Return the time that 95 of 100 stay below."""
    return quantiles(times, n=20)[-1]


async def measure(over: str, writers: int, notes: int) -> Figures:
    """Return the figures for so many writers over one of `DOORS`."""
    ours: list[float] = []
    bare: list[float] = []
    seconds = cpu = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with DOORS[over](folder) as store_note:
            await store_notes(store_note, "first", 5)  # not counted: it loads what the first note needs
            plain = BareFile(folder / "bare.sqlite3", folder / STORE)
            for _ in range(ROUNDS):
                start, start_cpu = perf_counter(), process_time()
                ours += await store_together(store_note, writers, notes // ROUNDS)
                seconds, cpu = seconds + perf_counter() - start, cpu + process_time() - start_cpu
                bare += plain.commit(notes // ROUNDS)
    p50, bare_p50 = median(ours), median(bare)
    rate, bare_rate = len(ours) / seconds, len(bare) / sum(bare) * 1000
    return Figures(over, writers, p50, get_p95(ours), bare_p50, get_p95(bare), rate, bare_rate, cpu * 1000 / len(ours))


DOORS: dict[str, Callable[[Path], AbstractAsyncContextManager[StoreNote]]] = {
    "handler": open_handler,
    "REST": open_server,
}


def is_fast(figures: Figures) -> bool:
    """Return whether the figures are within the limits; the ratios are those of the handler, beside HTTP's own cost."""
    if figures.over == "handler" and (
        figures.cost > MOST_COST if figures.writers == 1 else figures.share < LEAST_SHARE
    ):
        return False
    return figures.p95 <= MOST_MILLISECONDS[figures.writers]


def main() -> None:
    """Measure, print, and fail when it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=960, help="how many are stored for each number of writers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = [anyio.run(measure, over, writers, options.notes) for over in DOORS for writers in MOST_MILLISECONDS]
    for each in figures:
        print(json.dumps(each.to_json()) if options.json else each.to_line())
    sys.exit(not all(is_fast(each) for each in figures))


if __name__ == "__main__":
    main()
