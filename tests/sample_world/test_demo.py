"""The tour shows what a person would find right, and ends with a console that shows the same world."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.context import Context
from refdesk.core.identifiers import SequentialIdentifiers
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.local import LocalEmbedder
from refdesk.model import JsonObject, Principal
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.azure_updates.models import SearchInput
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.search import search_updates
from sample_world.azure_updates.world import load_world
from sample_world.demo import QUESTIONS
from tests.conftest import REPOSITORY

PRICE = "908050"
RIGHT = {"virtual machines that repair themselves": "911086", "keep secrets out of code": "912263"}
BESIDE = 40
"""Announcements beside the right ones: embedding all takes seconds, and the whole tour has them."""


async def test_the_questions_of_the_tour_bring_what_a_person_would_find_right() -> None:
    assert tuple(RIGHT) == QUESTIONS
    records = {str(record["id"]): record for record in load_world()}
    chosen = dict.fromkeys([*RIGHT.values(), PRICE, *list(records)[:BESIDE]])
    clock = SystemClock()
    store = MemoryStore(clock)
    async with LocalEmbedder() as embedder:
        await embedder.load()
        base = KnowledgeBase(store, Semantics(store, embedder), clock, SequentialIdentifiers())
        async with store.transaction() as transaction:
            await transaction.put_documents([to_document(cast("JsonObject", records[id])) for id in chosen])
        assert base.semantics is not None
        await Indexer(store, base.semantics, clock).run_once()
        context = Context(Principal("local", "ann", frozenset({"updates:read"})), base)
        for question, id in RIGHT.items():
            found = await search_updates(context, SearchInput(query=question, limit=3))
            assert found.results[0].id == id
            assert PRICE not in [each.id for each in found.results]


def take_the_tour(**variables: str) -> str:
    """Return what the tour shows; it has to end by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "sample_world.demo"],
        cwd=Path(REPOSITORY),
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"http://127\.0\.0\.1:\d+/\?q=charged\+twice\s*$", done.stdout)
    return done.stdout


@pytest.mark.timeout(600)
def test_every_command_of_the_tour_does_what_the_tour_says() -> None:
    shown = take_the_tour(REFDESK_EMBEDDER="hashing")
    for said in (
        "7 added, 36 changed, 3 withdrawn",
        "Twenty conversations became",
        "was late: No answer within 1000 ms",
    ):
        assert said in " ".join(shown.split())


@pytest.mark.soak
def test_the_tour_finds_by_meaning_what_a_person_would_find_right() -> None:
    shown = take_the_tour()
    for question, id in RIGHT.items():
        first = shown.partition(question.rpartition(" ")[2] + "'")[2].splitlines()[1:3]
        assert id in " ".join(first)
    assert "still loading" not in shown
