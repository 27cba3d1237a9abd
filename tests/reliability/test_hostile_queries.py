"""No query breaks a search: each is answered with what the contract promises, or refused for what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from refdesk import errors
from refdesk.core.visible import is_seen
from refdesk.model import Document, FindRequest, Found, Principal
from refdesk.protocols import Store
from refdesk.server import strict_json
from refdesk.server.calls import Caller
from refdesk.toolsets.azure_updates.records import to_document
from sample_world.azure_updates.world import load_world
from tests.reliability.delegates import DelegatingStore
from tests.reliability.hostile import CORNERS, LETTERS, SYNTAX, UNSENDABLE, draw_query
from tests.reliability.worlds import ALL_SCOPES, OWN, World, as_agent, open_world

LONGEST = {"search_knowledge": 2000, "search_azure_updates": 1000}
MOST_RESULTS = 5
VALID: dict[str, Callable[[dict[str, Any]], bool]] = {
    "search_knowledge": lambda result: 0 < result["score"] <= 1 and len(result["snippet"]) <= 242,
    "search_azure_updates": lambda result: result.get("relevance", 0.0) <= 0,
}
"""What each result keeps to; BM25 is negative in the second."""


async def fill(world: World) -> None:
    """Keep texts of the same kinds as the queries, so that these find something."""
    base = world.base.knowledge_base
    agent = as_agent(base, OWN, "zoe")
    for texts in (SYNTAX, LETTERS, CORNERS):
        await agent.store(f"Signs {' '.join(texts[:8])}"[:200], " ".join(texts)[:32_000])
    async with base.store.transaction() as transaction:
        await transaction.put_documents(list(read_updates()))
    await world.base.indexer.run_once()


def read_updates() -> list[Document]:
    found: list[Document] = []
    for record in load_world():
        try:
            found.append(to_document(record))  # pyright: ignore[reportArgumentType] - records are JSON
        except errors.SourceError:
            continue
    return found


@asynccontextmanager
async def open_filled(folder: Path, wrap: Callable[[Store], Store] = lambda store: store) -> AsyncGenerator[World]:
    async with open_world(folder, absent={}, wrap=wrap) as world:
        await fill(world)
        yield world


def draw_arguments(random: Random, name: str) -> dict[str, Any]:
    query = draw_query(random, LONGEST[name])
    arguments: dict[str, Any] = {"query": query, "limit": random.randint(1, MOST_RESULTS)}
    if name == "search_knowledge":
        return arguments | {"includeSuperseded": random.random() < 0.3, "minScore": random.choice((0, 0, 0.5))}
    is_semantic = bool(query.strip()) and random.random() < 0.3
    return arguments | {"semantic": is_semantic, "includeDescription": False, "facets": random.choice(([], ["tags"]))}


def must_be_refused(name: str, query: str) -> bool:
    is_sendable = not any("\ud800" <= sign <= "\udfff" or sign == "\x00" for sign in query)
    is_blank = name == "search_knowledge" and not is_seen(query)
    return not is_sendable or is_blank or len(query) > LONGEST[name]


async def judge(world: World, caller: Caller, name: str, arguments: dict[str, Any]) -> str:
    """Return what is wrong with the answer, or nothing."""
    operation, is_bad = world.operations[name], must_be_refused(name, arguments["query"])
    try:
        answer = (await caller.run(operation, arguments)).value
    except errors.InvalidInputError as error:
        strict_json.check(error.message)
        return "" if is_bad else f"refused: {error.message}"
    except errors.RefdeskError as error:
        return f"broke: {error.code} {error.message}"
    if is_bad:
        return "was not refused"
    operation.output.model_validate(answer)
    strict_json.dump(answer).encode()
    results: list[dict[str, Any]] = answer["results"]
    return "" if len(results) <= arguments["limit"] and all(map(VALID[name], results)) else f"is not valid: {answer}"


async def attack(world: World, queries: int, seed: int) -> Counter[str]:
    """Return what was wrong with how many answers, each with the first query that showed it."""
    random, wrong, examples = Random(seed), Counter[str](), dict[str, str]()
    caller = Caller(world.desk, Principal(OWN, "zoe", frozenset(ALL_SCOPES)), "test")
    for number in range(queries):
        name = random.choice(tuple(LONGEST))
        arguments = draw_arguments(random, name)
        if said := await judge(world, caller, name, arguments):
            key = f"{name} {said[:80]}"
            wrong[f"{key} | seed {seed}, query {number}: {examples.setdefault(key, repr(arguments)[:200])}"] += 1
    plain = {"query": "node", "limit": 1}
    after = [await judge(world, caller, name, plain) for name in LONGEST]
    assert after == ["", ""], "it no longer answers"
    return wrong


async def test_two_thousand_hostile_queries_break_nothing(tmp_path: Path) -> None:
    async with open_filled(tmp_path) as world:
        assert await attack(world, 2_000, seed=1) == {}


@pytest.mark.soak
async def test_a_hundred_thousand_hostile_queries_break_nothing(tmp_path: Path, first_seed: int) -> None:
    async with open_filled(tmp_path) as world:
        for seed in range(first_seed, first_seed + 10):
            assert await attack(world, 10_000, seed) == {}


class WithRawQueries(DelegatingStore):
    """Hands the caller's text to a full-text engine as it is."""

    async def find(self, request: FindRequest) -> Found:
        connection: Any = apsw.Connection(":memory:")
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(title)")
        connection.execute("SELECT * FROM texts WHERE texts MATCH ?", (request.title_contains or "all",)).fetchall()
        connection.close()
        return await super().find(request)


async def test_the_proof_catches_a_query_that_is_taken_for_syntax(tmp_path: Path) -> None:
    async with open_filled(tmp_path, WithRawQueries) as world:
        assert [key for key in await attack(world, 40, seed=2) if "search_knowledge broke" in key]


def test_the_attacks_hold_what_must_be_refused() -> None:
    random = Random(3)
    drawn = [draw_query(random, 100) for _ in range(2_000)]
    assert all(any(text in query for query in drawn) for text in UNSENDABLE)
    assert any(len(query) > 100 for query in drawn)
    assert any(not query.strip() for query in drawn)
