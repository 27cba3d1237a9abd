"""A store of an earlier layout: nothing is lost, and it is searched as one that was made anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from refdesk.core.keeping.encoding import encode_instant
from refdesk.core.keeping.rows import encode_document
from refdesk.model import Document, FindRequest, HasAll
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.connections import Connections
from refdesk.stores.postgres.migrations import load_migrations, migrate
from refdesk.stores.postgres.transactions import Turns, open_session
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.stores.samples import NOTES, NOW, asking, embed, make_document, near, passage, put, revise

pytestmark = pytest.mark.engines

VECTOR = "[1,0,0,0]"


async def make_old(url: str, steps: int) -> None:
    """Make the tables as so many steps left them."""
    connections = Connections(url, 10.0)
    async with open_session(connections, Turns(), is_alone=True) as session:
        await migrate(session, load_migrations()[:steps], 0)
    await connections.pool.close()


def insert(connection: psycopg.Connection, table: str, columns: Mapping[str, object]) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(map(sql.Placeholder, columns)),
    )
    connection.execute(statement, columns)


def write_old(connection: psycopg.Connection, key: int, document: Document) -> None:
    columns = {**encode_document(document), "org": document.collection.org, "toolset": document.collection.toolset}
    columns |= {"id": document.id, "key": key, "written": key + 40, "recorded_at": encode_instant(NOW)}
    if (1,) in fetch(
        connection, "SELECT 1 FROM pg_attribute WHERE attrelid = 'documents'::regclass AND attname = 'words'"
    ):
        columns |= {"words": ""}
    insert(connection, "documents", columns)
    connection.execute(
        "INSERT INTO collections (org, toolset) VALUES (%(org)s, %(toolset)s) ON CONFLICT DO NOTHING", columns
    )


@pytest.mark.parametrize("steps", [3, 4, 7])
async def test_a_store_of_a_layout_before_is_migrated_whole(tmp_path: Path, steps: int) -> None:
    url, other = get_store_url(tmp_path), get_store_url(tmp_path / "other")
    documents = [make_document(f"d{n}", f"apple number {n}", title="Pear", facets={"tags": ("x",)}) for n in range(9)]
    await make_old(url, steps)
    with get_server().connect(get_schema(tmp_path)) as connection:
        for key, document in enumerate(documents, 5):
            write_old(connection, key, document)
        connection.execute(
            "INSERT INTO orgs VALUES ('acme', 53)" if steps > 3 else "ALTER TABLE models ALTER passages SET DEFAULT 1"
        )
        connection.execute("INSERT INTO models (name, dimensions) VALUES ('small', 4)")
        connection.execute("INSERT INTO embeddings VALUES ('acme', 'notes', 1, 1)")
        connection.execute("INSERT INTO vectors VALUES ('acme', 5, 1, 0, 0, 1, %s::halfvec)", [VECTOR])
    async with open_store(url) as migrated, open_store(other) as anew:
        await put(anew, *documents)
        assert await embed(anew, documents[0], passage([1, 0, 0, 0], 0, 1))
        changed = revise(documents[3], body="plum")
        for store in (migrated, anew):
            await put(store, changed, make_document("new", "apple and plum"))
        for request in (
            asking('"apple number" 3', facets=("tags",), title_contains="pea"),
            asking("plum number", vector=near([1, 0, 0, 0], "small"), as_written="plum"),
            FindRequest(NOTES, where=HasAll("tags", ("x",))),
        ):
            assert await migrated.find(request) == await anew.find(request)
        assert await migrated.get_documents(NOTES, ["d0", "d3"]) == [documents[0], changed]
        revisions = await migrated.get_revisions(NOTES, "d3")
        assert [revision.document for revision in revisions] == [documents[3], changed]


async def test_versions_of_a_layout_before_have_the_texts_that_they_had(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    first = make_document("a", "plum\n\nß \\x00 \"'", title="Pêche")
    second = revise(first, body="apple " * 900)
    third = revise(second, author="somebody else")
    await make_old(url, 7)
    with get_server().connect(get_schema(tmp_path)) as connection:
        write_old(connection, 1, third)
        connection.execute("INSERT INTO orgs VALUES ('acme', 41)")
        for document in (first, second):
            columns: dict[str, object] = {**encode_document(document), "org": "acme", "document": 1}
            columns["recorded_at"] = encode_instant(NOW)
            columns |= {"body": None} if document is second else {}
            insert(connection, "revisions", {name: columns[name] for name in columns if "digest" not in name})
    async with open_store(url) as store:
        assert [each.document for each in await store.get_revisions(NOTES, "a")] == [first, second, third]
        assert await store.get_digests(NOTES) == {"a": third.digest}
        assert await embed(store, third, passage([1, 0, 0, 0], 0, 1))
        fourth = revise(third, title="Plum")
        await put(store, fourth)
        assert [each.document for each in await store.get_revisions(NOTES, "a")] == [first, second, third, fourth]
