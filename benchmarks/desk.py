"""What one desk for all clients of a machine saves: their start, their memory, and what they cost each other.

    python -m benchmarks.desk [--rounds 5] [--notes 10000] [--many 100000] [--parts start memory store …] [--json]

`start`: from the start of a process to its answer to `tools/list`, of a forwarder whose desk runs, of one that starts
it first (both processes counted, once for the first time and once with what was kept from the last), and of a bare
server on the same SDK, in turns. `memory`: the proportional set sizes of the desk and of ten clients that have all
searched by meaning, against those with one client. `store`: the 95th percentile of eight clients that store at once,
against the median of one, in turns, and the CPU of the desk for each; every note is another one. `wakes`: the CPU of
the desk for a store with all that it does in the background for it, on many notes against few, in turns. `many`: the
desk's memory on many notes of one passage each, the most that it ever is while nobody searches any more; vectors are
random.

Exit status 1 when a limit is exceeded; the limits are the constants below.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import anyio
import numpy as np

from benchmarks.anatomy import make_notes
from benchmarks.peers.material import Writer
from benchmarks.peers.rival import Note
from refdesk.core.background.embedding import CALM_SECONDS, Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.forwarder.rendezvous import list_places
from refdesk.model import EmbeddedPassage
from refdesk.protocols import Store
from refdesk.server.local.memory_keeper import LOOK_SECONDS
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.models import StoreInput

MOST_CPU = 0.15
"""Of the bare server's CPU, until a forwarder whose desk runs has answered."""

MOST_WALL = 0.3
MOST_CPU_OF_ALL = 1.1
"""The same, where the desk has to be started, with the desk's."""

MOST_MEMORY = 1.3
"""Of the memory with one client, with ten."""

MOST_DELAY = 5.0
"""Of the median of one client that stores, the 95th percentile of eight."""

MOST_GROWTH = 1.5
"""Of the CPU of the desk for a store on few notes, that on many."""

MOST_BYTES = 300_000_000
"""The desk's memory on many notes, from a few seconds after its last answer on."""

SERVE = [str(Path(sys.executable).with_name("refdesk")), "serve", "--stdio"]
"""As hosts start it: `python -m` would import what finds and runs modules, too."""

BARE = [sys.executable, "-m", "benchmarks.bare_server"]
BATCH = 1000
STORES = 30
CLIENTS = 10
REST_SECONDS = 2 * LOOK_SECONDS
"""After so long a desk has given back what calls have left."""

WATCHED_SECONDS, SAMPLE_SECONDS = 30.0, 0.01
WRITERS = 8
FEW = 1000
WAKES, PAUSE_SECONDS = 10, 3 * CALM_SECONDS
"""So many stores in a turn, so far apart that each is embedded before the next."""

TICKS = os.sysconf("SC_CLK_TCK")
NOWHERE = "http://127.0.0.1:9/feed"

HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}

Figures = dict[str, float]
Start = tuple[float, float]
"""CPU and wall seconds."""


class Client:
    """A client of a server over stdio."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**copy_environment(), "REFDESK_HOME": str(home), "REFDESK_AZURE_UPDATES_URL": NOWHERE},
        )
        self._ids = 0

    def open(self) -> None:
        """Shake hands."""
        self.ask("initialize", HANDSHAKE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        self._ids += 1
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            said = json.loads(self.process.stdout.readline())
            if said.get("id") == self._ids:
                return said["result"]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the structured answer of a tool."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    def close(self) -> float:
        """End it; return its CPU seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def copy_environment() -> dict[str, str]:
    """Return this process's variables, but let Python keep what it compiles, as it is kept where it is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def find_desk(home: Path) -> int:
    """Return the process of the desk of a data folder."""
    [pid] = [found.pid for _, found in list_places(str(home))]
    return pid


def end_desk(home: Path) -> None:
    """End the desk of a data folder, if one runs, and return when it is gone."""
    for place, found in list_places(str(home)):
        os.kill(found.pid, signal.SIGKILL)
        lock = place.get_life_lock()
        lock.take(10.0)
        lock.release()
        os.unlink(place.path(".json"))


def read_cpu(pid: int) -> float:
    """Return the CPU seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def read_memory(pid: int) -> int:
    """Return a process's proportional set size in bytes."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def time_start(command: Sequence[str], home: Path) -> Start:
    """Return the CPU and the wall seconds of a process that lists its tools; the CPU is that until its end."""
    client = Client(command, home)
    client.open()
    assert client.ask("tools/list", {})["tools"]
    wall = time.perf_counter() - client.began
    return client.close(), wall


def time_first_start(home: Path, *, keeps_snapshot: bool) -> Start:
    """Return the same of a forwarder whose desk does not run, with the CPU of the desk until it serves."""
    end_desk(home)
    for kept in home.glob("desk/*.snapshot"):
        if not keeps_snapshot:
            kept.unlink()
    client = Client(SERVE, home)
    client.open()
    client.ask("tools/list", {})
    wall = time.perf_counter() - client.began
    client.ask("ping", {})  # only the desk answers this
    cpu = read_cpu(find_desk(home))
    return client.close() + cpu, wall


def measure_start(rounds: int) -> Figures:
    """Measure starts, in turns."""
    with tempfile.TemporaryDirectory() as folder, keeping_desk(Path(folder)) as home:
        time_start(BARE, home)
        time_first_start(home, keeps_snapshot=False)  # these compile, and do not count
        bare, warm, cold, kept = list[Start](), list[Start](), list[Start](), list[Start]()
        for _ in range(rounds):
            bare.append(time_start(BARE, home))
            cold.append(time_first_start(home, keeps_snapshot=False))
            kept.append(time_first_start(home, keeps_snapshot=True))
            warm.append(time_start(SERVE, home))
    cpu, wall = (median(each[place] for each in bare) for place in (0, 1))
    return {
        "bare server, CPU s": cpu,
        "bare server, wall s": wall,
        "desk runs, CPU": median(each[0] for each in warm) / cpu,
        "desk runs, wall": median(each[1] for each in warm) / wall,
        "no desk yet, CPU of all": median(each[0] for each in cold) / cpu,
        "no desk yet, wall": median(each[1] for each in cold) / wall,
        "no desk, kept answers, CPU of all": median(each[0] for each in kept) / cpu,
        "no desk, kept answers, wall": median(each[1] for each in kept) / wall,
    }


def measure_memory(count: int) -> Figures:
    """Measure the memory with one client and with ten that have searched."""
    with ExitStack() as stack:
        home = stack.enter_context(keeping_desk(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        anyio.run(fill, home, count)
        clients: list[Client] = []
        totals: list[int] = []
        for number in range(CLIENTS):
            clients.append(search_by_meaning(home, f"zygote xylem {number}"))
            totals.append(read_memory(find_desk(home)) + sum(read_memory(each.process.pid) for each in clients))
        desk = read_memory(find_desk(home))
        for client in clients:
            client.close()
    return {
        "one client, MB": totals[0] / 1e6,
        "ten clients, MB": totals[-1] / 1e6,
        "desk with ten, MB": desk / 1e6,
        "ten to one": totals[-1] / totals[0],
    }


def search_by_meaning(home: Path, query: str) -> Client:
    """Return a new client that has searched by meaning."""
    client = Client(SERVE, home)
    client.open()
    for _ in range(600):
        found = client.ask("tools/call", {"name": "search_knowledge", "arguments": {"query": query}})
        # No word of the question is in a note, so there are results once the model is loaded and the index is made.
        if not found.get("isError") and found["structuredContent"]["results"]:
            return client
        time.sleep(0.1)
    raise TimeoutError("nothing was found by meaning")


def measure_many(count: int) -> Figures:
    """Measure the desk's memory on many notes."""
    with tempfile.TemporaryDirectory() as folder, keeping_desk(Path(folder)) as home:
        anyio.run(fill, home, count)
        client = search_by_meaning(home, "zygote xylem")
        for number in range(20):
            client.call("search_knowledge", {"query": f"payment gateway {number}"})
        busy = read_memory(find_desk(home))
        time.sleep(REST_SECONDS)
        at_rest = watch_memory(find_desk(home), WATCHED_SECONDS)
        client.close()
    return {
        "desk while it answers, MB": busy / 1e6,
        "desk, median MB": median(at_rest) / 1e6,
        "desk, MB": max(at_rest) / 1e6,
    }


def watch_memory(pid: int, seconds: float) -> list[int]:
    """Return what `read_memory` says of a process, again and again for so long."""
    until, found = time.perf_counter() + seconds, list[int]()
    while time.perf_counter() < until:
        found.append(read_memory(pid))
        time.sleep(SAMPLE_SECONDS)
    return found


def measure_stores(rounds: int) -> Figures:
    """Measure stores of one client and of eight at once, in turns."""
    alone, together, cpu = list[float](), list[float](), 0.0
    with ExitStack() as stack:
        home = stack.enter_context(keeping_desk(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        clients, writer = [Client(SERVE, home) for _ in range(WRITERS)], Writer()
        for client in clients:
            client.open()
            time_stores(client, writer.write(3))
        for _ in range(rounds):
            alone += time_stores(clients[0], writer.write(STORES))
            works = [partial(time_stores, each, writer.write(STORES)) for each in clients]
            before = read_cpu(find_desk(home))
            together += time_at_once(works)
            cpu += read_cpu(find_desk(home)) - before
        for client in clients:
            client.close()
    return {
        "one client, p50 ms": median(alone),
        "eight clients, p50 ms": median(together),
        "eight clients, p95 ms": quantiles(together, n=20)[-1],
        "eight clients, desk CPU ms a store": cpu / len(together) * 1000,
        "p95 of eight to p50 of one": quantiles(together, n=20)[-1] / median(alone),
    }


def time_stores(client: Client, notes: Sequence[Note]) -> list[float]:
    """Return how many milliseconds each of some notes took to store, one after the other."""
    taken: list[float] = []
    for note in notes:
        began = time.perf_counter()
        client.call("store_knowledge", {"title": note.title, "body": note.body})
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def measure_wakes(rounds: int, count: int) -> Figures:
    """Measure what a store costs the desk in all, on few notes and on many, in turns."""
    cpu, writer = {FEW: list[float](), count: list[float]()}, Writer()
    with ExitStack() as stack:
        clients: dict[int, tuple[Client, int]] = {}
        for number in cpu:
            home = stack.enter_context(keeping_desk(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
            anyio.run(fill, home, number)
            clients[number] = search_by_meaning(home, "zygote xylem"), find_desk(home)
            wake(*clients[number], writer)  # the first look is at everything
        for _ in range(rounds):
            for number, taken in cpu.items():
                taken.append(wake(*clients[number], writer) / WAKES * 1000)
        for client, _ in clients.values():
            client.close()
    few, many = (median(taken) for taken in cpu.values())
    return {
        "few notes, desk CPU ms a store": few,
        "many notes, desk CPU ms a store": many,
        "a store on many notes to few": many / few,
    }


def wake(client: Client, desk: int, writer: Writer) -> float:
    """Return the CPU seconds of a desk for some stores, one long after the other."""
    before = read_cpu(desk)
    for _ in range(WAKES):
        time_stores(client, writer.write(1))
        time.sleep(PAUSE_SECONDS)
    return read_cpu(desk) - before


def time_at_once(works: Sequence[Callable[[], list[float]]]) -> list[float]:
    """Return what all of these return, run at once."""
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(work) for work in works]
        return [taken for each in running for taken in each.result()]


@contextmanager
def keeping_desk(home: Path) -> Generator[Path]:
    """Yield a data folder; its desk is ended afterwards."""
    try:
        yield home
    finally:
        end_desk(home)


async def fill(home: Path, count: int) -> None:
    """Keep so many notes with random vectors of the local model."""
    notes, random = iter(make_notes(count)), np.random.default_rng(1)
    async with open_store(home / "refdesk.sqlite3") as store:
        semantics = Semantics(store, LocalEmbedder())
        base = KnowledgeBase(store, semantics)
        while batch := list(islice(notes, BATCH)):
            await _write(store, base, batch, random)
        await Indexer(store, semantics, SystemClock()).run_once()


async def _write(store: Store, base: KnowledgeBase, notes: Iterable[StoreInput], random: np.random.Generator) -> None:
    documents = [
        models.to_document(note, id=base.identifiers.new(), org="local", author="bench", now=base.clock.now())
        for note in notes
    ]
    model = LocalEmbedder().model
    vectors = random.standard_normal((len(documents), model.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        await transaction.put_all_vectors(
            [
                (document, [(model, [EmbeddedPassage(0, len(document.body), vector)])])
                for document, vector in zip(documents, vectors, strict=True)
            ]
        )


LIMITS = {
    "desk runs, CPU": MOST_CPU,
    "desk runs, wall": MOST_WALL,
    "no desk yet, CPU of all": MOST_CPU_OF_ALL,
    "no desk, kept answers, CPU of all": MOST_CPU_OF_ALL,
    "ten to one": MOST_MEMORY,
    "p95 of eight to p50 of one": MOST_DELAY,
    "a store on many notes to few": MOST_GROWTH,
    "desk, MB": MOST_BYTES / 1e6,
}


def main() -> None:
    """Measure, print, and fail when it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--parts", nargs="+", default=["start", "memory", "store", "wakes", "many"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    parts: dict[str, Callable[[], Figures]] = {
        "start": lambda: measure_start(options.rounds),
        "memory": lambda: measure_memory(options.notes),
        "store": lambda: measure_stores(options.rounds),
        "wakes": lambda: measure_wakes(options.rounds, options.many),
        "many": lambda: measure_many(options.many),
    }
    figures = {name: round(value, 3) for part in options.parts for name, value in parts[part]().items()}
    over = {name for name, most in LIMITS.items() if figures.get(name, 0.0) > most}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:36}{value:>9}{f'   limit {LIMITS[name]:g}' if name in LIMITS else ''}")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
