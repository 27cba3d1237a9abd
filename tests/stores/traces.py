"""Looking for a word in all that an engine keeps, past everything of ours: bytes of files, rows of tables, nodes."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from anyio.to_thread import run_sync
from psycopg import sql

from refdesk.protocols import Store
from refdesk.stores.sqlite.driver import Connection


def make_canary() -> str:
    """Return a word that is nowhere else: letters alone, and as its own stem."""
    return "xylo" + "".join(chr(ord("a") + int(digit, 16)) for digit in uuid4().hex[:12]) + "q"


async def find_traces(store: Store, folder: Path, canary: str) -> list[str]:
    """Return where the word is in the store that stands for a folder."""
    engine = store.engine.split()[0].lower()
    if "memory" in engine:
        return await find_in_lists(store, canary)
    if "citus" in engine:
        return await run_sync(find_in_citus, folder, canary)
    look = find_in_postgres if "postgres" in engine else find_in_neo4j if "neo4j" in engine else find_in_files
    return await run_sync(look, folder, canary)


async def find_in_lists(store: Store, canary: str) -> list[str]:
    found: list[object] = []
    for collection, id in await store.list_documents(None, 10_000):
        found += [*await store.get_histories(collection, [id]), *await store.get_vectors(collection, [id])]
    found += [*await store.list_links(None, 10_000), *await store.list_all_metadata(None, 10_000)]
    for org in await store.list_audited_orgs():
        found += await store.get_audit(org)
    return [str(each) for each in found if canary in str(each)]


def find_in_files(folder: Path, canary: str) -> list[str]:
    found = [path.name for path in folder.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]
    for file in folder.glob("*.sqlite3"):
        # By the library that the store uses: two of them in one process undo each other's locks.
        connection = Connection(file, 5000)
        for (table,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")):
            rows = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own table's name
            found += [str(table)] if any(canary in str(value) for row in rows for value in row) else []
        connection.close()
    return found


def find_in_postgres(folder: Path, canary: str) -> list[str]:
    from tests.engines.postgres import get_schema, get_server

    found: list[str] = []
    schema, hexadecimal = get_schema(folder), canary.encode().hex()
    with get_server().connect(schema) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        for (table,) in tables:
            rows = connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table)))
            found += [table] if any(canary in row or hexadecimal in row for (row,) in rows) else []
    return found


def find_in_citus(folder: Path, canary: str) -> list[str]:
    from tests.engines.citus import get_cluster, get_emptied_schema

    hexadecimal = canary.encode().hex()
    rows = get_cluster().list_rows(get_emptied_schema(folder))
    return [table for table, row in rows if canary in row or hexadecimal in row]


def find_in_neo4j(folder: Path, canary: str) -> list[str]:
    from tests.engines.neo4j import get_server

    del folder  # the word is in no other namespace
    nodes = get_server().query("MATCH (n) RETURN labels(n), properties(n)")
    links = get_server().query("MATCH ()-[r]->() RETURN type(r), properties(r)")
    return [str(labels) for labels, properties in (*nodes, *links) if canary in str(properties)]
