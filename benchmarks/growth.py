"""Every engine by how much it keeps, how many orgs share it and how many clients ask, beside plain SQL in the same run.

    python -m benchmarks.growth [--long] [--anew] [--sizes 1000 10000] [--engines sqlite postgres citus neo4j]

A part is one engine with so many notes. For it the engine is started, its commits durable, and so is a PostgreSQL with
one plain table, asked as `benchmarks.postgres` asks it; the same invented notes and vectors go into both, and once more
into the engine, parted among `ORGS` orgs. Both sides take turns: one client's questions, each twice, of which the
better counts; then 1, 8 and 64 clients of one process ask for some seconds; then notes are stored by the operation's
own handler: by one writer, eight in eight orgs, and 64 in one org. Processor time is that of this process and the
servers together, per search and per note. What the machine allows at all is a round trip that asks nothing, and
writes of as many bytes as a note has that are synced one after another.

Each part is kept in `docs/benchmarks/engines.json` and on its page as soon as it has ended, and those that were kept at
this commit are not measured again, unless by `--anew`. A part that would not end in what is left of `MINUTES`, going by
the size before, is left out: the same command goes on with it another time. `--long` does all, up to a million notes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import anyio
import anyio.to_thread
import psycopg

from benchmarks import report
from benchmarks.growth_engines import Engine, started
from benchmarks.growth_page import ENGINES, EXPLANATION, MACHINE, PAGE, PLAIN, Figures, draw, name_part, put_into
from benchmarks.invented import Corpus, Question, invent
from benchmarks.postgres import ORG, PLACE, PLAIN_TABLE, load, load_plain, search, search_plainly
from benchmarks.postgres_writes import (
    WRITERS,
    StoreNote,
    connected,
    make_plain_insert,
    make_store_note,
    measure_rate,
)
from benchmarks.processors import get_processor_seconds
from benchmarks.results import FOLDER, describe_run, read_result, write_result
from refdesk.errors import RefdeskError
from refdesk.model import Collection
from refdesk.protocols import Store
from refdesk.stores.postgres.vectors import get_usual_effort
from tests.engines import postgres

SIZES = (1000, 10_000, 100_000)
LONG_SIZES = (*SIZES, 1_000_000)
ORGS = 16
CLIENTS = (1, 8, 64)
CONNECTIONS = 8
"""Of plain SQL: as many as a store of ours has."""

MINUTES = 16.0
SECONDS = 2.0
ROUNDS = 2
LEAST_ASKED, MOST_ASKING_SECONDS = 5, 8.0
"""Questions of a kind that are asked in any case, and for how long more of them are."""

SLACK = 1.3
"""A part of more notes takes so many times as long as the smaller one says."""

NOTE_BYTES = 4096
"""About what a note without its vector takes."""

Ask = Callable[[Question, int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Side:
    """What is measured: an engine, or plain SQL.

    Attributes:
        ask: Puts a question of a client to the one org.
        ask_many: Puts it to the org of that client, where notes are parted.
        store_note: Stores a note.
    """

    name: str
    ask: Ask
    store_note: StoreNote
    ask_many: Ask | None = None


@dataclass(slots=True)
class Part:
    """An engine with so many notes, and what was measured of it so far.

    Attributes:
        figures: By what was measured, and by side.
        filling: Seconds that went into filling both sides.
    """

    engine: Engine
    corpus: Corpus
    plain: postgres.PostgresServer
    figures: Figures = field(default_factory=dict[str, dict[str, float]])
    filling: float = 0.0

    @property
    def notes(self) -> int:
        """How many there are."""
        return len(self.corpus.texts)

    def note(self, what: str, side: str, value: float) -> None:
        """Keep a figure."""
        self.figures.setdefault(what, {})[side] = value


# Filling


@asynccontextmanager
async def opened(part: Part) -> AsyncGenerator[list[Side]]:
    """Yield both sides with the notes in them; how fast they took them, and in how much space, is among the figures."""
    began, engine, texts = perf_counter(), part.engine, part.corpus.texts
    names = [f"{ORG}-{number}" for number in range(ORGS)]
    async with engine.open_store(f"whole_{part.notes}") as whole, engine.open_store(f"parted_{part.notes}") as parted:
        part.note("notes filled in a second", engine.name, await load(whole, part.corpus))
        if engine.count_bytes is not None:
            part.note("bytes a note", engine.name, engine.count_bytes(f"whole_{part.notes}") / part.notes)
        await load(parted, part.corpus, names)
        url = await anyio.to_thread.run_sync(fill_plain, part)
        part.filling = perf_counter() - began
        async with connected(url, CONNECTIONS) as connections:
            for connection in connections:
                await connection.execute(f"SET hnsw.ef_search = {get_usual_effort(part.notes)}".encode())
            store_note = make_store_note(whole, texts, 10**9)
            yield [
                Side(engine.name, partial(_ask, whole, [ORG]), store_note, partial(_ask, parted, names)),
                Side(PLAIN, partial(_ask_plainly, connections), make_plain_insert(connections, texts)),
            ]


async def _ask(store: Store, orgs: Sequence[str], question: Question, client: int) -> object:
    return await search(store, question, place=Collection(orgs[client % len(orgs)], PLACE.toolset))


async def _ask_plainly(connections: Sequence[psycopg.AsyncConnection], question: Question, client: int) -> object:
    return await search_plainly(connections[client % len(connections)], question)


def fill_plain(part: Part) -> str:
    """Fill the plain table; return where it is."""
    schema = f"plain_{part.notes}"
    part.plain.create_schema(schema)
    url = part.plain.get_url(schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PLAIN_TABLE)
        began = perf_counter()
        load_plain(url, part.corpus)
        part.note("notes filled in a second", PLAIN, part.notes / (perf_counter() - began))
        (size,) = connection.execute("SELECT pg_total_relation_size('plain_notes')").fetchone() or (0,)
        part.note("bytes a note", PLAIN, size / part.notes)
    return url


# Measuring


async def measure_times(part: Part, sides: Sequence[Side]) -> None:
    """Measure the median of each kind of question, asked of both in turns."""
    for kind, questions in part.corpus.questions.items():
        times: dict[str, list[float]] = {side.name: [] for side in sides}
        began = perf_counter()
        for number, question in enumerate(questions):
            if number >= LEAST_ASKED and perf_counter() - began > MOST_ASKING_SECONDS:
                break
            spent: dict[str, list[float]] = {side.name: [] for side in sides}
            for _ in range(2):
                for side in sides:
                    start = perf_counter()
                    await side.ask(question, 0)
                    spent[side.name].append((perf_counter() - start) * 1000)
            for name, both in spent.items():
                times[name].append(min(both))
        for name, each in times.items():
            part.note(f"search {kind}, ms", name, median(each))


@dataclass(frozen=True, slots=True)
class Rate:
    """How many a second, and how many milliseconds of the processor each took."""

    a_second: float
    processor: float


async def measure_clients(part: Part, sides: Sequence[Side]) -> None:
    """Measure how many searches a second so many clients are answered, in one org and in many."""
    for clients in CLIENTS:
        for side in sides:
            rate = await _ask_for_a_while(side.ask, part.corpus.questions["natural"], clients)
            part.note(f"searches a second, {_count(clients, 'client')}", side.name, rate.a_second)
            if clients == CONNECTIONS:
                part.note("processor of a search, ms", side.name, rate.processor)
            if side.ask_many is not None:
                rate = await _ask_for_a_while(side.ask_many, part.corpus.questions["natural"], clients)
                part.note(f"searches a second, {_count(clients, 'client')}, {ORGS} orgs", side.name, rate.a_second)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


async def _ask_for_a_while(ask: Ask, questions: Sequence[Question], clients: int) -> Rate:
    """Return the better of some rounds."""
    rates = [await _measure_searches(ask, questions, clients) for _ in range(ROUNDS)]
    return Rate(max(each.a_second for each in rates), min(each.processor for each in rates))


async def _measure_searches(ask: Ask, questions: Sequence[Question], clients: int) -> Rate:
    answered, numbers, began, used = 0, count(), perf_counter(), get_processor_seconds()

    async def run(client: int) -> None:
        nonlocal answered
        while perf_counter() - began < SECONDS / ROUNDS:
            try:
                await ask(questions[next(numbers) % len(questions)], client)
            except RefdeskError:
                continue  # an engine that is asked too much says so
            answered += 1

    async with anyio.create_task_group() as group:
        for client in range(clients):
            group.start_soon(run, client)
    seconds, used = perf_counter() - began, get_processor_seconds() - used
    return Rate(answered / seconds, used * 1000 / max(answered, 1))


WRITING = {"one writer": "1 writer", "eight orgs": "8 in 8 orgs", "one org": "64 in one org"}


async def measure_writers(part: Part, sides: Sequence[Side]) -> None:
    """Measure how many notes a second are stored."""
    for number, (name, writers) in enumerate(WRITERS.items()):
        for side in sides:
            await side.store_note(*writers[0], -1 - number)  # not counted: it loads what the first note needs
            began, used = perf_counter(), get_processor_seconds()
            rate = await measure_rate(side.store_note, writers, SECONDS, number * 10**6)
            part.note(f"notes stored a second, {WRITING[name]}", side.name, rate)
            if name == "eight orgs":
                used, stored = get_processor_seconds() - used, rate * (perf_counter() - began)
                part.note("processor of a note, ms", side.name, used * 1000 / max(stored, 1))


def measure_machine(part: Part) -> None:
    """Measure what nothing can be faster than: a round trip to the server, and a synced write to the disk."""
    with psycopg.connect(part.plain.get_url(), autocommit=True) as connection:
        trips = list[float]()
        for _ in range(200):
            start = perf_counter()
            connection.execute("SELECT 1")
            trips.append((perf_counter() - start) * 1000)
    for kind in part.corpus.questions:
        part.note(f"search {kind}, ms", MACHINE, median(trips))
    part.note(f"notes stored a second, {WRITING['one writer']}", MACHINE, _measure_syncs())


def _measure_syncs() -> float:
    with tempfile.TemporaryFile() as file:
        written, began = 0, perf_counter()
        while perf_counter() - began < SECONDS / ROUNDS:
            file.write(os.urandom(NOTE_BYTES))
            file.flush()
            os.fdatasync(file.fileno())
            written += 1
        return written / (perf_counter() - began)


async def measure(part: Part) -> None:
    """Measure everything."""
    async with opened(part) as sides:
        await measure_times(part, sides)
        await measure_clients(part, sides)
        await measure_writers(part, sides)
    await anyio.to_thread.run_sync(measure_machine, part)


def run_part(name: str, notes: int) -> dict[str, Any]:
    """Start an engine, measure it with so many notes, and return what is kept."""
    began, corpus = perf_counter(), invent(notes)
    with started(name) as engine, _started_plain(engine) as plain:
        part = Part(engine, corpus, plain)
        anyio.run(measure, part)
    return {
        **describe_run(),
        "engine": name,
        "notes": notes,
        "orgs": ORGS,
        "seconds": round(perf_counter() - began),
        "filling": round(part.filling),
        "figures": {
            what: {side: round(value, 3) for side, value in each.items()} for what, each in part.figures.items()
        },
    }


@contextmanager
def _started_plain(engine: Engine) -> Generator[postgres.PostgresServer]:
    if engine.server is not None:
        yield engine.server
    else:
        with postgres.running(fsync=True) as server:
            yield server


# The whole


def read_parts() -> dict[str, dict[str, Any]]:
    """Return the parts that are kept."""
    return (read_result(PAGE) or {}).get("growth", {})


def keep(name: str, part: Mapping[str, Any]) -> None:
    """Put a part beside the others, and write all that is made of them."""
    parts = {**read_parts(), name: part}
    ordered = sorted(parts, key=lambda each: (parts[each]["notes"], list(ENGINES).index(parts[each]["engine"])))
    result = {**(read_result(PAGE) or {}), "growth": {each: parts[each] for each in ordered}}
    write_result(PAGE, result)
    (FOLDER / f"{PAGE}.md").write_text(report.render(PAGE, result), encoding="utf-8")
    for picture, text in draw(result["growth"]).items():
        (FOLDER / picture).write_text(text, encoding="utf-8")
    EXPLANATION.write_text(put_into(EXPLANATION.read_text(encoding="utf-8"), result["growth"]), encoding="utf-8")


def guess_seconds(parts: Mapping[str, Mapping[str, Any]], engine: str, notes: int) -> float:
    """Return how long a part takes, going by the largest smaller one of the engine; 0 where there is none."""
    known = [part for part in parts.values() if part["engine"] == engine and part["notes"] < notes]
    if not known:
        return 0.0
    last = max(known, key=lambda part: part["notes"])
    return SLACK * (last["filling"] * notes / last["notes"] + last["seconds"] - last["filling"])


def main() -> None:
    """Measure part by part, and keep each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="all sizes, however long it takes")
    parser.add_argument("--anew", action="store_true", help="those parts, too, that were measured at this commit")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    options = parser.parse_args()
    sizes: Sequence[int] = options.sizes or (LONG_SIZES if options.long else SIZES)
    commit, began = describe_run()["commit"], perf_counter()
    for notes in sorted(sizes):
        for engine in options.engines:
            parts, name = read_parts(), name_part(engine, notes)
            if not options.anew and parts.get(name, {}).get("commit") == commit:
                print(f"{name}: kept, measured at this commit", flush=True)
                continue
            expected, left = guess_seconds(parts, engine, notes), MINUTES * 60 - (perf_counter() - began)
            if expected > left and not options.long:
                print(f"{name}: left out, it would take {expected:.0f} s of {max(left, 0):.0f} s", flush=True)
                continue
            print(f"{name}: …", flush=True)
            part = run_part(engine, notes)
            keep(name, part)
            print(f"{name}: {part['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
