"""Counts of what is embedded, kept as it is written: nothing is looked at for them, and no error in them lasts."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.search.semantics import Semantics
from refdesk.model import EmbeddedCount, State
from refdesk.stores.postgres import open_store
from tests.core.fakes import NOW, ScriptedEmbedder
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.stores.samples import MODEL, NOTES, embed, make_document, passage, put, revise

pytestmark = pytest.mark.engines

EAST = (1, 0, 0, 0)


async def test_documents_and_vectors_may_be_out_of_reach_while_they_are_counted(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, document := make_document("a"), make_document("b"))
        await embed(store, document, passage(EAST))
        mark = (await store.list_collections())[NOTES]
        with get_server().connect(get_schema(tmp_path)) as connection, connection.transaction():
            connection.execute("LOCK TABLE documents, entries, vectors IN ACCESS EXCLUSIVE MODE")
            assert await store.count_embedded(MODEL.name) == [EmbeddedCount(NOTES, 2, 1, mark)]
            assert await store.list_models() == [MODEL.name]


async def test_what_was_embedded_before_it_was_counted_is_counted_once(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as store:
        await put(store, *(documents := [make_document(id) for id in "abc"]))
        for document in documents[:2]:
            await embed(store, document, passage(EAST), passage(EAST))
        await put(store, revise(documents[0], state=State.WITHDRAWN))
    with get_server().connect(get_schema(tmp_path)) as connection:
        connection.execute("ALTER TABLE embeddings DROP COLUMN embedded")
        connection.execute("DELETE FROM refdesk_migrations WHERE number = 10")
    async with open_store(url) as store:
        [counted] = await store.count_embedded(MODEL.name)
        assert (counted.documents, counted.embedded) == (2, 1)


async def test_what_servers_of_the_version_before_do_is_counted_by_the_next_look(tmp_path: Path) -> None:
    """They go on while the schema has changed: they add, withdraw and search, and count nothing."""
    async with open_store(get_store_url(tmp_path)) as store:
        embedder = ScriptedEmbedder()
        await put(store, make_document("a"), make_document("b"))
        await Indexer(store, Semantics(store, embedder), FixedClock(NOW)).run_once()
        with get_server().connect(get_schema(tmp_path)) as connection:
            write_as_before(connection)
        [counted] = await store.count_embedded(embedder.name)
        assert (counted.documents, counted.embedded) == (2, 0)
        await put(store, make_document("c"))
        await Indexer(store, Semantics(store, embedder), FixedClock(NOW)).run_once()
        await Indexer(store, Semantics(store, embedder), FixedClock(NOW)).run_once()
        [counted] = await store.count_embedded(embedder.name)
        assert (counted.documents, counted.embedded) == (3, 3)


def write_as_before(connection: psycopg.Connection) -> None:
    """Leave what statements of the version before leave, and search as it does, which knows no such column."""
    connection.execute("DELETE FROM embeddings")
    connection.execute(
        "INSERT INTO embeddings AS kept (org, toolset, model, passages) SELECT 'acme', 'notes', key, 2 FROM models "
        "ON CONFLICT (org, toolset, model) DO UPDATE SET passages = kept.passages + excluded.passages"
    )
    searched = fetch(
        connection,
        "SELECT key, dimensions, embeddings.passages, documents FROM models JOIN embeddings ON model = key "
        "JOIN collections ON collections.org = embeddings.org AND collections.toolset = embeddings.toolset",
    )
    assert len(searched) == 1
