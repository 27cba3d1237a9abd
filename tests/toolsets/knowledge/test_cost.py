"""How little a note costs: the statements that storing one takes in the embedded engine, as SQLite runs them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from refdesk.core.context import Context
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.model import Principal
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.models import StoreInput
from refdesk.toolsets.knowledge.operations import store_knowledge

MOST = {"BEGIN": 1, "SAVEPOINT": 1, "SELECT": 1, "UPDATE": 2, "INSERT": 5, "RELEASE": 1, "COMMIT": 1}
"""By their first word. The one `SELECT` reads both counts and who said the same before; what is inserted are the note,
its collection, both counts and its wording; what is updated are the change sequence and the count of commits."""


async def test_a_new_note_takes_one_read_and_writes_each_row_once(tmp_path: Path) -> None:
    connections: list[Any] = []
    hooks: list[Any] = apsw.connection_hooks
    hooks.append(connections.append)
    async with open_store(tmp_path / "store.sqlite3") as store:
        hooks.remove(connections.append)
        context = Context(Principal("acme", "ann", frozenset({"knowledge:write"})), KnowledgeBase(store))
        await store_knowledge(context, _make("First"))
        seen = Counter[str]()

        def note(event: dict[str, str]) -> None:
            seen[event["sql"].split()[0]] += 1

        for connection in connections:
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, note)
        await store_knowledge(context, _make("Second"))
        for connection in connections:
            connection.trace_v2(0, None)
    assert seen == MOST


def _make(title: str) -> StoreInput:
    return StoreInput.model_validate({"title": title, "body": f"{title}: what is said is said once."})
