"""A search over a network takes one round trip: what it shows comes along with what it finds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.retrieval import SearchRequest
from refdesk.model import Collection, Document
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.connections import Connections, Statement
from refdesk.stores.postgres.pool import Connection, Row
from refdesk.stores.postgres.statements import LONGEST_SHOWN
from refdesk.toolsets.knowledge import search
from refdesk.toolsets.knowledge.models import SearchInput
from tests.engines import citus, postgres
from tests.stores.samples import make_document, put

pytestmark = pytest.mark.engines
NOTES = Collection("acme", "knowledge")


@asynccontextmanager
async def opened(engine: str, folder: Path) -> AsyncGenerator[Store]:
    url = citus.get_emptied_store_url(folder) if engine == "citus" else postgres.get_store_url(folder)
    async with open_store(url) as store:
        yield store


def make_notes() -> list[Document]:
    return [make_document(f"n{number:02}", f"apple {'pear ' * number}", collection=NOTES) for number in range(30)]


@pytest.mark.parametrize("engine", ["postgres", "citus"])
async def test_what_is_shown_comes_along(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[int] = []
    send = Connections.send

    async def count(
        self: Connections, connection: Connection, *statements: Statement, seconds: float | None = None
    ) -> list[list[Row]]:
        trips.append(1)
        return await send(self, connection, *statements, seconds=seconds)

    async with opened(engine, tmp_path) as store:
        await put(store, *make_notes())
        base = KnowledgeBase(store)
        monkeypatch.setattr(Connections, "send", count)
        found = await base.search(SearchRequest(NOTES, "apple", limit=10))
        assert (len(found.hits), len(trips)) == (10, 1)
        trips.clear()
        matches = await search.find(base, NOTES, SearchInput.model_validate({"query": "apple pear", "limit": 5}))
        assert (len(matches.best), len(trips)) == (5, 1)
        trips.clear()
        further = await base.search(SearchRequest(NOTES, "apple", limit=10, offset=10))
        assert not {hit.document.id for hit in further.hits} & {hit.document.id for hit in found.hits}
        assert len(further.hits) == 10


async def test_a_long_document_is_read_when_it_is_shown(tmp_path: Path) -> None:
    long = make_document("long", "apple " * LONGEST_SHOWN, collection=NOTES)
    async with opened("postgres", tmp_path) as store:
        await put(store, *make_notes(), long)
        found = await KnowledgeBase(store).search(SearchRequest(NOTES, "apple", limit=31))
        assert len(found.hits) == 31
        first = await KnowledgeBase(store).search(SearchRequest(NOTES, "apple", limit=1))
        assert [hit.document for hit in first.hits] == [long]


async def test_a_node_that_has_prepared_nothing_is_told_all(tmp_path: Path) -> None:
    url = citus.get_emptied_store_url(tmp_path)
    async with open_store(url) as store, open_store(f"{url}{quote(' -ccitus.max_cached_conns_per_worker=0')}") as other:
        await put(store, *make_notes())
        for _ in range(3):
            answers = [await KnowledgeBase(each).search(SearchRequest(NOTES, "apple")) for each in (store, other)]
            assert answers[0] == answers[1]
            assert len(answers[0].hits) == 10
