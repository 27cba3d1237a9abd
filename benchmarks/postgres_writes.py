"""How many notes a second are stored, by one writer and by many; see `benchmarks.postgres`."""

from __future__ import annotations

import multiprocessing
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Protocol

import anyio
from psycopg import AsyncConnection

from benchmarks.invented import invent
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


@dataclass(frozen=True, slots=True)
class Rates:
    """Notes a second: ours and the plain table's, from so many writers."""

    name: str
    ours: float
    plain: float


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
    "one writer": [("org-0", "agent-0")],
    "eight orgs": [(f"org-{number}", f"agent-{number}") for number in range(8)],
    "one org": [("crowd", f"agent-{number}") for number in range(64)],
}


async def measure_writes(url: str, seconds: float, rounds: int = 3) -> list[Rates]:
    """Return the rates of each number of writers, the best of some rounds in which all take turns."""
    texts = invent(2000).texts
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in WRITERS}
    async with open_store(url) as store, connected(url, 8) as connections:
        ours, plain = make_store_note(store, texts, 10**9), make_plain_insert(connections, texts)
        for writers in WRITERS.values():
            for org, agent in writers:
                await ours(org, agent, -1)  # not counted: it loads what the first note needs
        for turn in range(rounds):
            for name, writers in WRITERS.items():
                pair = [await measure_rate(each, writers, seconds / rounds, turn * 10**6) for each in (ours, plain)]
                rates[name].append((pair[0], pair[1]))
        await assert_quota_is_exact(store, texts)
    return [Rates(name, max(o for o, _ in each), max(p for _, p in each)) for name, each in rates.items()]


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


@asynccontextmanager
async def connected(url: str, count: int) -> AsyncGenerator[list[AsyncConnection]]:
    """Yield so many connections on which each statement is a transaction."""
    connections = [await AsyncConnection.connect(url, autocommit=True) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            await connection.close()
