"""What refdesk costs beside an earlier revision of itself, through doors that both have, in turns in one run.

    python -m benchmarks.before --before REV [--rounds 5] [--everything] [--json]

The earlier one gets a work tree and an environment of its own below `.benchmarks/before` (`make setup`), which later
runs find again. Both serve the same notes over REST, the manuals of `../shared/data` where they are present, without
a model; both sync the same feed again, by the command, and the command on a feed of one record is taken off; both
embed the same texts on one thread; both are asked what all toolsets have, by `search_everything`. CPU is that of the
process that does the work. A ratio below 1 says that refdesk became quicker.
"""

from __future__ import annotations

import argparse
import html
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
from sample_world.salesforce.process import running_emulator as running_org

REPOSITORY = Path(__file__).resolve().parent.parent
TREES = REPOSITORY / ".benchmarks" / "before"
PASSAGES = 24
STORES = 40
NOTES, RECORDS, ARTICLES, SKILLS = 200, 200, 200, 8
SUMMARY = 500
"""Characters of an article's summary."""

QUESTIONS_OF_A_ROUND = 10
IDLE_SECONDS = 0.03
"""Of CPU in a second, below which nothing is done in the background."""
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


async def compare_everything(pythons: Mapping[str, str], corpus: Corpus, rounds: int) -> list[Sides]:
    """Return what a question to all toolsets takes, with the packaged model: notes, records, articles and skills."""
    with ExitStack() as stack:
        folders = {side: Path(stack.enter_context(tempfile.TemporaryDirectory())) for side in pythons}
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "records.json").write_text(json.dumps(load_records()[:RECORDS]))
        (place / "articles.json").write_text(json.dumps(_make_articles(corpus)))
        async with (
            running_emulator(records=place / "records.json") as feed,
            running_org(articles=place / "articles.json") as org,
        ):
            settings = {
                "REFDESK_EMBEDDER": "local",
                "REFDESK_AZURE_UPDATES_URL": feed.url,
                "REFDESK_SALESFORCE_INSTANCE_URL": org.url,
                "REFDESK_SALESFORCE_ACCESS_TOKEN": org.access_token,
            }
            for side, python in pythons.items():
                measure([python, *SYNC], folders[side], feed.url)
            servers = {
                side: stack.enter_context(running_server(folders[side], python, settings))
                for side, python in pythons.items()
            }
            for server in servers.values():
                _fill(server, corpus)
            for server in servers.values():
                server.hang_up()
            questions = corpus.questions[: rounds * QUESTIONS_OF_A_ROUND]
            return take_turns("search_everything", servers, _ask_everything, questions)


def _make_articles(corpus: Corpus) -> list[dict[str, object]]:
    """Return articles about what the notes are about."""
    return [
        {
            "number": number,
            "versions": [
                {
                    "title": note.title[:120],
                    "summary": note.body[:SUMMARY],
                    "url_name": f"article-{number}",
                    "created": "2025-01-01T00:00:00Z",
                    "published": "2025-01-01T00:00:00Z",
                    "sections": {"Resolution__c": f"<p>{html.escape(note.body)}</p>"},
                }
            ],
        }
        for number, note in enumerate(corpus.notes[-ARTICLES:], start=1)
    ]


def _fill(server: Server, corpus: Corpus) -> None:
    """Return when notes and skills are kept and nothing is embedded any more."""
    for note in corpus.notes[:NOTES]:
        server.post("/knowledge", {"title": note.title, "body": note.body})
    for note in corpus.notes[:SKILLS]:
        text = f"Customer: {note.title}, how does it work?\nAgent: {note.body}\nCustomer: Thank you, that solved it."
        server.post("/create", {"conversation": text})
    before = -1.0
    while (spent := server.get_cpu_seconds()) - before > IDLE_SECONDS:
        before = spent
        sleep(1)


def _ask_everything(server: Server, question: str) -> None:
    answer = server.post("/everything/search", {"query": question, "deadlineMs": 10000})
    assert all(each["status"] in ("answered", "not_served") for each in answer["coverage"]), answer["coverage"]


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
    parser.add_argument("--everything", action="store_true", help="a question to all toolsets alone")
    options = parser.parse_args()
    pythons, corpus = {"now": sys.executable, "before": make_tree(options.before)}, read_corpus(0)

    def compare() -> Iterator[Sides]:
        yield compare_starts(pythons, options.rounds)
        yield from compare_servers(pythons, corpus, options.rounds)
        yield anyio.run(compare_syncs, pythons, options.rounds)
        yield compare_embedding(pythons, corpus, options.rounds)
        yield from anyio.run(compare_everything, pythons, corpus, options.rounds)

    def choose() -> Iterator[Sides]:
        yield from anyio.run(compare_everything, pythons, corpus, options.rounds) if options.everything else compare()

    for sides in choose():
        print(json.dumps(sides.to_json()) if options.json else sides.to_line(), flush=True)


if __name__ == "__main__":
    main()
