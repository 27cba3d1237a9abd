"""How little a note costs: the statements that storing and finding take in the embedded engine, as SQLite runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.model import Principal
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import SearchInput, StoreInput
from refdesk.toolsets.knowledge.operations import search_knowledge, store_knowledge

MOST = {"BEGIN": 1, "WITH": 1, "UPDATE": 2, "INSERT": 5, "COMMIT": 1}
"""By their first word. `WITH` reads both counts and who said the same before; what is inserted are the note,
its collection, both counts and its wording; what is updated are the change sequence and the count of commits."""


FOUND = 10
MOST_OF_SEARCH = {"BEGIN": 3, "SELECT": 2 + FOUND, "WITH": 1, "COMMIT": 3}
"""How far the index is, which collection it is, each note that is shown; `WITH` reads what there is to heed of all."""


async def test_a_new_note_takes_one_read_and_writes_each_row_once(tmp_path: Path) -> None:
    connections: list[Any] = []
    hooks: list[Any] = apsw.connection_hooks
    hooks.append(connections.append)
    async with open_store(tmp_path / "store.sqlite3") as store:
        hooks.remove(connections.append)
        context = _make_context(store)
        await store_knowledge(context, _make("First"))
        with _counting(connections) as seen:
            await store_knowledge(context, _make("Second"))
    assert seen == MOST


async def test_a_search_reads_what_it_shows_and_once_what_is_to_be_heeded_of_it(tmp_path: Path) -> None:
    connections: list[Any] = []
    hooks: list[Any] = apsw.connection_hooks
    hooks.append(connections.append)
    try:
        async with open_store(tmp_path / "store.sqlite3") as store:
            context = _make_context(store)
            for number in range(FOUND):
                await store_knowledge(context, _make(f"Note {number}"))
            asked = SearchInput.model_validate({"query": "what is said once", "limit": FOUND})
            await search_knowledge(context, asked)
            with _counting(connections) as seen:
                found = await search_knowledge(context, asked)
    finally:
        hooks.remove(connections.append)
    assert len(found.results) == FOUND
    assert seen == MOST_OF_SEARCH


@contextmanager
def _counting(connections: Sequence[Any]) -> Generator[Counter[str]]:
    """Count the statements of the connections by their first words."""
    seen = Counter[str]()

    def note(event: dict[str, str]) -> None:
        seen[event["sql"].split()[0]] += 1

    for connection in connections:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, note)
    yield seen
    for connection in connections:
        connection.trace_v2(0, None)


def _make_context(store: Store) -> Context:
    return Context(Principal("acme", "ann", frozenset({"knowledge:read", "knowledge:write"})), KnowledgeBase(store))


def _make(title: str) -> StoreInput:
    return StoreInput.model_validate({"title": title, "body": f"{title}: what is said is said once."})
