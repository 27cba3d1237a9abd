"""How long storing a note takes, against one bare commit to the same disk in the same run.

    python -m benchmarks.writes [--notes 960] [--json]

A note is stored by the operation's own handler, durable when it returns. The bare commit is one row into one table of
an empty SQLite file with the same journal and sync. Writers and bare commits take turns, so that both meet the same
load. Exit status 1 when p95 is over `MOST_MILLISECONDS`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import anyio
import apsw

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.operations import Context
from refdesk.core.quotas import Quota
from refdesk.core.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import QUOTA_NAME, store_knowledge

MOST_MILLISECONDS = {1: 25.0, 32: 250.0}
"""By the number of writers."""

ROUNDS = 10
BODY = "The bank's gateway is down for maintenance on Sundays, so card payments fail until it is back. " * 10
SCOPES = frozenset({"knowledge:write"})


@asynccontextmanager
async def open_base(path: Path) -> AsyncGenerator[KnowledgeBase]:
    """Yield a knowledge base in a new file, with a quota to count against."""
    async with open_store(path) as store:
        quota = Quota(QUOTA_NAME, per_org=10**9, per_agent=10**9)
        yield KnowledgeBase(store, Semantics(store, HashingEmbedder()), quotas={quota.name: quota})


async def store_notes(base: KnowledgeBase, agent: str, count: int) -> list[float]:
    """Return how long each of an agent's notes took, in milliseconds, stored one after another."""
    context, times = Context(Principal("acme", agent, SCOPES), base), list[float]()
    for number in range(count):
        entry = {"title": f"Note {number} of {agent}", "body": BODY, "tags": ["payments", "night"]}
        validated = StoreInput.model_validate(entry)
        start = perf_counter()
        await store_knowledge(context, validated)
        times.append((perf_counter() - start) * 1000)
    return times


async def store_together(base: KnowledgeBase, writers: int, count: int) -> list[float]:
    """Return the times of so many writers' notes, `count` in all, all writers at once."""
    times: list[float] = []

    async def write(agent: str) -> None:
        times.extend(await store_notes(base, agent, max(1, count // writers)))

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


async def measure(folder: Path, writers: int, notes: int) -> dict[str, float]:
    """Return the figures for so many writers."""
    ours: list[float] = []
    bare: list[float] = []
    plain = BareFile(folder / f"bare-{writers}.sqlite3")
    async with open_base(folder / f"store-{writers}.sqlite3") as base:
        await store_notes(base, "first", 5)  # not counted: it loads what the first note needs
        for _ in range(ROUNDS):
            ours += await store_together(base, writers, notes // ROUNDS)
            bare += plain.commit(notes // ROUNDS)
    p95, bare_p95 = get_p95(ours), get_p95(bare)
    return {
        "writers": writers,
        "p50_ms": round(quantiles(ours, n=2)[0], 2),
        "p95_ms": round(p95, 2),
        "bare_commit_p95_ms": round(bare_p95, 2),
        "ratio": round(p95 / bare_p95, 2),
        "ratio_per_writer": round(p95 / bare_p95 / writers, 2),
    }


def main() -> None:
    """Measure, print, and fail when it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=960, help="how many are stored for each number of writers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = [anyio.run(measure, Path(folder), writers, options.notes) for writers in MOST_MILLISECONDS]
    for result in results:
        print(json.dumps(result) if options.json else "  ".join(f"{name} {value:g}" for name, value in result.items()))
    sys.exit(any(result["p95_ms"] > MOST_MILLISECONDS[int(result["writers"])] for result in results))


if __name__ == "__main__":
    main()
