"""What refdesk costs beside an earlier revision of itself, through doors that both have, in turns in one run.

    python -m benchmarks.before --before REV [--rounds 5] [--json]

The earlier one gets a work tree and an environment of its own below `.benchmarks/before` (`make setup`), which later
runs find again. Both serve the same notes over REST, the manuals of `../shared/data` where they are present, without a
model; both sync the same feed again, by the command, and the command on a feed of one record is taken off; both embed
the same texts on one thread. CPU is that of the process that does the work. A ratio below 1 says that refdesk
became quicker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import Any

import anyio

from benchmarks import startup
from benchmarks.rest import Corpus, Server, read_corpus, running_server
from benchmarks.updates import load_records
from benchmarks.writes import BODY
from sample_world.azure_updates.process import running_emulator

REPOSITORY = Path(__file__).resolve().parent.parent
TREES = REPOSITORY / ".benchmarks" / "before"
PASSAGES = 24
STORES = 40
SYNC = ["-m", "refdesk", "sync", "azure-updates", "--full"]
SERVE = ["-m", "refdesk", "serve", "--stdio"]
EMBED = """
import sys, time, anyio, json
from refdesk.embedders.local import LocalEmbedder
async def main():
    async with LocalEmbedder(parallel_passages=1) as embedder:
        texts = json.load(sys.stdin)
        await embedder.embed_passages(texts[:2])
        start = time.process_time()
        await embedder.embed_passages(texts)
        print(time.process_time() - start)
anyio.run(main)
"""


@dataclass(frozen=True, slots=True)
class Sides:
    """What was measured of both, in one unit, each value beside the other's of the same turn."""

    name: str
    unit: str
    now: list[float] = field(default_factory=list[float])
    before: list[float] = field(default_factory=list[float])

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return median(self.now) / median(self.before)

    def to_json(self) -> dict[str, Any]:
        """Return the medians and 95th percentiles."""
        return {
            "what": self.name,
            "unit": self.unit,
            "now": round(median(self.now), 3),
            "before": round(median(self.before), 3),
            "now_p95": round(_get_p95(self.now), 3),
            "before_p95": round(_get_p95(self.before), 3),
            "ratio": round(self.ratio, 3),
        }

    def to_line(self) -> str:
        """Return them for people."""
        figures = self.to_json()
        now, before, p95 = figures["now"], figures["before"], f"p95 {figures['now_p95']} and {figures['before_p95']}"
        return f"{self.name:30}{now:9.3f} {self.unit:6}, before {before:9.3f}: {self.ratio:5.2f} x  ({p95})"


def _get_p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def make_tree(revision: str) -> str:
    """Return the interpreter of an earlier revision, whose work tree is made where there is none."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=12", revision], cwd=REPOSITORY, capture_output=True, check=True
    )
    tree = TREES / found.stdout.decode().strip()
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], cwd=REPOSITORY, check=True)
    subprocess.run(["make", "setup"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return str(tree / ".venv" / "bin" / "python")


def compare_servers(pythons: Mapping[str, str], corpus: Corpus, rounds: int) -> Iterator[Sides]:
    """Yield what searches and stores over REST take."""
    with ExitStack() as stack:
        servers = {
            side: stack.enter_context(running_server(Path(stack.enter_context(tempfile.TemporaryDirectory())), python))
            for side, python in pythons.items()
        }
        for note in corpus.notes:
            for server in servers.values():
                server.post("/knowledge", {"title": note.title, "body": note.body})
        note = {"title": "Card payments fail", "body": BODY, "tags": ["payments", "night"]}
        yield from take_turns("a store", servers, lambda server, _: server.post("/knowledge", note), range(STORES))
        settle(servers, corpus)
        yield from take_turns(
            "a search", servers, lambda server, text: server.search(text), [*corpus.questions] * rounds
        )


def settle(servers: Mapping[str, Server], corpus: Corpus) -> None:
    """Return when everything that is asked for is found by its vector: nothing is done in the background any more."""
    for question in corpus.questions:
        while [server for server in servers.values() if _waits(server.search(question))]:
            sleep(0.05)


def _waits(answer: Mapping[str, Any]) -> bool:
    return any(each["embeddingStatus"] != "ready" for each in answer["results"])


def take_turns(
    name: str, servers: Mapping[str, Server], ask: Callable[[Server, Any], object], questions: Sequence[Any]
) -> list[Sides]:
    """Return the time and the CPU of each answer, asked of both in turns."""
    wall, cpu = Sides(f"{name} over REST", "ms"), Sides(f"{name}, CPU", "ms")
    for question in questions:
        for side, server in servers.items():
            before, start = server.get_cpu_seconds(), perf_counter()
            ask(server, question)
            getattr(wall, side).append((perf_counter() - start) * 1000)
            getattr(cpu, side).append((server.get_cpu_seconds() - before) * 1000)
    return [wall, cpu]


async def compare_syncs(pythons: Mapping[str, str], rounds: int) -> Sides:
    """Return the CPU of a sync that finds nothing new, without what the command itself takes."""
    sides, records = Sides("a sync without changes, CPU", "s"), load_records()
    with tempfile.TemporaryDirectory() as name:
        worlds = {count: Path(name) / f"{count}.json" for count in (1, len(records))}
        for count, file in worlds.items():
            file.write_text(json.dumps(records[:count]))
        async with (
            running_emulator(records=worlds[1]) as small,
            running_emulator(records=worlds[len(records)]) as large,
        ):
            for number in range(rounds + 1):
                for side, python in pythons.items():
                    spent = [
                        measure([python, *SYNC], Path(name) / side / feed, url)
                        for feed, url in (("small", small.url), ("large", large.url))
                    ]
                    if number:
                        getattr(sides, side).append(spent[1] - spent[0])
    return sides


def measure(command: Sequence[str], home: Path, url: str) -> float:
    """Return the CPU seconds of a command."""
    environment = {**os.environ, "REFDESK_HOME": str(home), "REFDESK_STORE": "", "REFDESK_AZURE_UPDATES_URL": url}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def compare_embedding(pythons: Mapping[str, str], corpus: Corpus, rounds: int) -> Sides:
    """Return the CPU of a passage."""
    sides = Sides("a passage embedded, CPU", "ms")
    texts = [" ".join([note.title, note.body] * 4)[:1200] for note in corpus.notes[:PASSAGES]]
    for _ in range(rounds):
        for side, python in pythons.items():
            done = subprocess.run(
                [python, "-c", EMBED], input=json.dumps(texts).encode(), capture_output=True, check=True
            )
            getattr(sides, side).append(float(done.stdout) * 1000 / len(texts))
    return sides


def compare_starts(pythons: Mapping[str, str], rounds: int) -> Sides:
    """Return the CPU of a process that lists its tools."""
    sides = Sides("start to tools/list, CPU", "s")
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds + 1):
            for side, python in pythons.items():
                options = ["--isolated"] if side == "now" else []
                spent = startup.measure([*SERVE, *options], Path(name) / side, python=python)
                if number:
                    getattr(sides, side).append(spent)
    return sides


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, metavar="REV", help="the earlier revision")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pythons, corpus = {"now": sys.executable, "before": make_tree(options.before)}, read_corpus(0)

    def compare() -> Iterator[Sides]:
        yield compare_starts(pythons, options.rounds)
        yield from compare_servers(pythons, corpus, options.rounds)
        yield anyio.run(compare_syncs, pythons, options.rounds)
        yield compare_embedding(pythons, corpus, options.rounds)

    for sides in compare():
        print(json.dumps(sides.to_json()) if options.json else sides.to_line(), flush=True)


if __name__ == "__main__":
    main()
