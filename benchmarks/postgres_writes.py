"""How many notes a second are stored, by one writer and by many; see `benchmarks.postgres`."""

from __future__ import annotations

import multiprocessing
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Protocol

import anyio
from psycopg import AsyncConnection

from benchmarks.invented import invent
from benchmarks.postgres_rows import make_row_insert
from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing.quotas import Quota, read_usage
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.errors import QuotaExceededError
from refdesk.model import Principal
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import store_knowledge

SCOPES = frozenset({"knowledge:write"})

_PLAIN_INSERT = "INSERT INTO plain_notes (org, id, title, body, tags, created_at) VALUES (%s, %s, %s, %s, %s, now())"


class Gate(Protocol):
    """Where processes wait for one another."""

    def wait(self) -> int:
        """Return when all have come."""
        ...


ONE, SAME_ROWS = "one writer", "same rows"


@dataclass(frozen=True, slots=True)
class Rates:
    """Notes a second: ours and those of plain inserts, from so many writers."""

    name: str
    ours: float
    plain: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of processor time a note of one writer takes: the client's, and the server's where it runs here."""

    client: float
    server: float | None


StoreNote = Callable[[str, str, int], Awaitable[bool]]


def make_store_note(store: Store, texts: Sequence[tuple[str, str]], most: int) -> StoreNote:
    """Return a call that stores a note of an org and agent and says whether its quota allowed it."""
    quota = Quota(QUOTA_NAME, per_org=most, per_agent=most)
    base = KnowledgeBase(store, Semantics(store, HashingEmbedder()), quotas={quota.name: quota})

    async def store_note(org: str, agent: str, number: int) -> bool:
        title, body = texts[number % len(texts)]
        context = Context(Principal(org, agent, SCOPES), base)
        note = {"title": f"{title} {org} {agent} {number}", "body": body, "tags": ["payments", "night"]}
        try:
            await store_knowledge(context, StoreInput.model_validate(note))
        except QuotaExceededError:
            return False
        return True

    return store_note


def make_plain_insert(
    connections: Sequence[AsyncConnection], texts: Sequence[tuple[str, str]], prefix: str = "p"
) -> StoreNote:
    """Return a call that inserts a note into the plain table; each writer has a connection of its own."""
    made = iter(range(10**9))

    async def insert(org: str, agent: str, number: int) -> bool:
        title, body = texts[number % len(texts)]
        connection = connections[int(agent.split("-")[1]) % len(connections)]
        values = (org, f"{prefix}{next(made)}", f"{title} {org} {agent} {number}", body, ["payments", "night"])
        await connection.execute(_PLAIN_INSERT, values)
        return True

    return insert


async def measure_rate(store_note: StoreNote, writers: Sequence[tuple[str, str]], seconds: float, first: int) -> float:
    """Return how many notes a second so many writers store, each (org, agent) one note after another."""
    stored, start = 0, perf_counter()

    async def write(org: str, agent: str) -> None:
        nonlocal stored
        number = first
        while perf_counter() - start < seconds:
            if await store_note(org, agent, number):
                stored += 1
            number += 1

    async with anyio.create_task_group() as group:
        for writer in writers:
            group.start_soon(write, *writer)
    return stored / (perf_counter() - start)


WRITERS = {
    ONE: [("org-0", "agent-0")],
    "eight orgs": [(f"org-{number}", f"agent-{number}") for number in range(8)],
    "one org": [("crowd", f"agent-{number}") for number in range(64)],
}


async def measure_writes(url: str, seconds: float, rounds: int = 3) -> list[Rates]:
    """Return the rates of each number of writers, the best of some rounds in which all take turns.

    After the first, that of one writer stands once more, beside inserts of the rows that its notes leave.
    """
    texts = invent(2000).texts
    rates: dict[str, list[tuple[float, float]]] = {ONE: [], SAME_ROWS: [], **{name: [] for name in WRITERS}}
    async with open_store(url) as store, connected(url, 10) as (reading, writing, *connections):
        ours, plain = make_store_note(store, texts, 10**9), make_plain_insert(connections, texts)
        insert_rows = await make_row_insert("rows", reading, writing, ours)
        for writers in WRITERS.values():
            for org, agent in writers:
                await ours(org, agent, -1)  # not counted: it loads what the first note needs
        for turn in range(rounds):
            for name, writers in WRITERS.items():
                sides = (ours, plain, insert_rows) if name == ONE else (ours, plain)
                mine, *others = [await measure_rate(each, writers, seconds / rounds, turn * 10**6) for each in sides]
                for which, other in zip((name, SAME_ROWS), others, strict=False):
                    rates[which].append((mine, other))
        await assert_quota_is_exact(store, texts)
    return [Rates(name, max(o for o, _ in each), max(p for _, p in each)) for name, each in rates.items()]


_GET_PROCESSES = "SELECT pid FROM pg_stat_activity WHERE application_name = 'refdesk' OR pid = ANY(%s)"
_HERE = ("127.0.0.1", "::1", "localhost")
PIECES, PIECE = 20, 25


async def measure_costs(url: str) -> list[Cost]:
    """Return what a note costs us, what inserts of its rows cost, and a plain insert: the medians over pieces, in which
    all take turns.

    What others do on the same processors stretches it far less than it does the time that passes.
    """
    texts, numbers = invent(2000).texts, iter(range(10**9))
    async with open_store(url) as store, connected(url, 4) as (connection, reading, writing, looking):
        ours, plain = make_store_note(store, texts, 10**9), make_plain_insert([connection], texts, "c")
        sides = (ours, await make_row_insert("costly", reading, writing, ours), plain)
        costs: tuple[list[tuple[float, float]], ...] = ([], [], [])
        is_here = looking.info.host in _HERE
        for piece in range(PIECES + 1):
            for store_note, some in zip(sides, costs, strict=True):
                others = [each.info.backend_pid for each in (connection, writing)]
                cursor = await looking.execute(_GET_PROCESSES, (others,))
                processes = [pid for (pid,) in await cursor.fetchall()] if is_here else []
                client, server = process_time(), _count_seconds(processes)
                for _ in range(PIECE):
                    await store_note("costs", "agent-0", next(numbers))
                # In the first piece it connects, and loads what a note needs.
                some += [(process_time() - client, _count_seconds(processes) - server)] if piece else []
    medians = ([median(times) * 1000 / PIECE for times in zip(*some, strict=True)] for some in costs)
    return [Cost(client, server if is_here else None) for client, server in medians]


def _count_seconds(processes: Sequence[int]) -> float:
    """Return how long processes of this machine have run."""
    return sum(int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) for process in processes) / 1e9


async def measure_in_process(url: str, number: int, seconds: float, gate: Gate, *, is_plain: bool) -> float:
    """Return how many notes a second one writer stores that begins together with those of the other processes."""
    texts, writer = invent(2000).texts, (f"process-{number}", f"agent-{number}")
    async with open_store(url) as store, connected(url, 1) as connections:
        ours, plain = make_store_note(store, texts, 10**9), make_plain_insert(connections, texts, f"{number}-")
        await ours(*writer, -1)
        gate.wait()
        return await measure_rate(plain if is_plain else ours, [writer], seconds, 0)


def _run_in_process(url: str, number: int, seconds: float, is_plain: bool) -> float:
    return anyio.run(partial(measure_in_process, url, number, seconds, _gate[0], is_plain=is_plain))


_gate: list[Gate] = []


def _take_gate(gate: Gate) -> None:
    _gate.append(gate)


def measure_in_processes(url: str, seconds: float, count: int = 8) -> Rates:
    """Return the rates of so many processes together, each with a writer in an org of its own."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(count)
    with context.Pool(count, _take_gate, (gate,)) as pool:
        ours, plain = (
            sum(pool.starmap(_run_in_process, [(url, number, seconds, is_plain) for number in range(count)], 1))
            for is_plain in (False, True)
        )
    return Rates("processes", ours, plain)


async def assert_quota_is_exact(store: Store, texts: Sequence[tuple[str, str]], most: int = 100) -> None:
    """64 agents together store exactly as many notes as their org may keep."""
    store_note, stored = make_store_note(store, texts, most), 0

    async def write(agent: str) -> None:
        nonlocal stored
        for number in range(4):
            if await store_note("limited", agent, number):
                stored += 1

    async with anyio.create_task_group() as group:
        for number in range(64):
            group.start_soon(write, f"agent-{number}")
    usage = await read_usage(store, Quota(QUOTA_NAME), "limited", "agent-0")
    assert (stored, usage.org) == (most, most), (stored, usage)


def compare_rates(rates: Sequence[Rates]) -> dict[str, float]:
    """Return how many times what one writer's rate is compared with that is, and of more writers how many times ours of
    one writer, who comes first."""
    one = rates[0]
    return {each.name: each.ours / (each.plain if each.name in {ONE, SAME_ROWS} else one.ours) for each in rates}


def spell_rates(rates: Sequence[Rates]) -> list[str]:
    """Return a line for each."""
    one, lines = rates[0], list[str]()
    beside = {ONE: "of plain inserts", SAME_ROWS: "of inserts of the rows that a note leaves"}
    for each, ratio in zip(rates, compare_rates(rates).values(), strict=True):
        what = beside.get(each.name, f"of one writer (plain inserts: {each.plain / one.plain:.2f})")
        lines.append(f"{each.name:12} {each.ours:7.0f} notes/s, plain {each.plain:7.0f}; {ratio:5.2f} {what}")
    return lines


@asynccontextmanager
async def connected(url: str, count: int) -> AsyncGenerator[list[AsyncConnection]]:
    """Yield so many connections on which each statement is a transaction."""
    connections = [await AsyncConnection.connect(url, autocommit=True) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            await connection.close()
