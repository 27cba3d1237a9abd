"""What a write asks for is found by its key, though the tables were empty when its statements were planned first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.stores.samples import NOTES, make_document, put

pytestmark = pytest.mark.engines

DOCUMENTS = 300
"""More than `MOST_UNCOUNTED`."""

MODEL = EmbeddingModel("invented", 2)


async def test_a_write_reads_no_other_documents_of_its_org(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as store:
        assert isinstance(store, PostgresStore)
        await write_and_embed(store, "first")
        await put(store, *(make_document(f"d{number}", f"w{number}") for number in range(DOCUMENTS)))
        before = await count_read(store, get_schema(tmp_path))
        await write_and_embed(store, "last")
        assert await count_read(store, get_schema(tmp_path)) - before < DOCUMENTS / 10


async def write_and_embed(store: PostgresStore, id: str) -> None:
    """Store a note as the operation does, then its vector; statements stay prepared on the one connection."""
    document = make_document(id, "some words")
    async with store.transaction() as transaction:
        await transaction.expect([document], [])
        await transaction.put_documents([document])
    passage = EmbeddedPassage(0, 4, np.array([1.0, 0.0], np.float32))
    async with store.transaction() as transaction:
        assert await transaction.put_vectors(
            Collection("acme", NOTES.toolset), id, MODEL, document.text_digest, [passage]
        )


async def count_read(store: PostgresStore, schema: str) -> int:
    """Return how many rows of documents have been read so far, by the store's connection too."""
    async with store.connections.pool.lend() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT 1")
    with get_server().connect(schema) as connection:
        statement = (
            "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'documents' AND schemaname = %s"
        )
        ((read,),) = fetch(connection, statement, (schema,))
    return int(str(read))
