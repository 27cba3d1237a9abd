"""The second wall: the database itself shows a transaction one org's rows, and searches are fast behind it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from refdesk.core.search.analysis import parse_query
from refdesk.model import (
    And,
    AuditEntry,
    Collection,
    FindRequest,
    HasAll,
    InState,
    Link,
    Metadata,
    MetadataKey,
    Or,
    Reference,
    State,
)
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store, writes
from tests.acceptance.processes import run
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.engines.postgres_plans import explain
from tests.stores.samples import NOTES, NOW, embed, make_document, on, passage, put, revise

pytestmark = pytest.mark.engines

OTHER = Collection("zenith", "notes")


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Store]:
    # Terms are counted with every other change, so that there are counted ones and others in a store of two notes.
    monkeypatch.setattr(writes, "MOST_UNCOUNTED", 2)
    async with open_store(get_store_url(tmp_path)) as opened:
        yield opened


@pytest.fixture
def connect(tmp_path: Path) -> psycopg.Connection:
    """A connection in the store's schema, as the role that opens the store."""
    return get_server().connect(get_schema(tmp_path), role="refdesk")


async def fill(store: Store) -> None:
    """Put something into every table, in two orgs."""
    for collection in (NOTES, OTHER):
        word = f"{collection.org}secret"
        document = make_document(
            "a",
            f"{word} body",
            title=f"{word} title",
            facets={"tags": (word,)},
            date_ranges={"s": on(1)},
            collection=collection,
        )
        for version in (document, first := revise(document, body="first"), last := revise(first, body=f"{word} words")):
            await put(store, version)
        await embed(store, last, passage([1, 0, 0, 0]))
        async with store.transaction() as transaction:
            here = Reference("notes", "a")
            await transaction.put_links([Link(collection.org, here, "affects", Reference("", word), NOW)])
            await transaction.put_metadata([Metadata(MetadataKey(collection.org, "job", word), {})])
            await transaction.put_audit([AuditEntry(collection.org, 1, NOW, {"action": "store"}, "", word)])


def list_protected(connection: psycopg.Connection) -> list[str]:
    rows = fetch(
        connection,
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND column_name = 'org' ORDER BY table_name",
    )
    return [str(name) for (name,) in rows]


def count(connection: psycopg.Connection, table: str, *, but: str = "") -> int:
    """Return how many rows can be seen, without those of the org `but`."""
    statement = sql.SQL("SELECT count(*) FROM {} WHERE org <> %s").format(sql.Identifier(table))
    row = connection.execute(statement, [but]).fetchone()
    assert row is not None
    return row[0]


async def test_every_table_with_an_org_is_behind_the_wall_for_its_owner_too(
    store: Store, connect: psycopg.Connection
) -> None:
    with connect as connection:
        protected = list_protected(connection)
        walled = fetch(
            connection,
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
            "AND relrowsecurity AND relforcerowsecurity",
        )
        assert len(protected) == 13
        assert sorted(str(name) for (name,) in walled) == protected


async def test_a_statement_that_names_no_org_sees_and_changes_nothing(
    store: Store, connect: psycopg.Connection
) -> None:
    await fill(store)
    with connect as connection:
        for table in list_protected(connection):
            assert count(connection, table) == 0, table
            deletion = sql.SQL("DELETE FROM {}").format(sql.Identifier(table))
            if table == "audit":
                with pytest.raises(errors.RaiseException, match="only ever added to"), connection.transaction():
                    connection.execute(deletion)
            else:
                assert connection.execute(deletion).rowcount == 0
        with get_server().connect(connection.info.options.split("=")[1].split(",")[0]) as administrator:
            for table in list_protected(administrator):
                assert count(administrator, table) >= 2, table


async def test_a_transaction_sees_the_org_that_it_named_until_it_ends(
    store: Store, connect: psycopg.Connection
) -> None:
    await fill(store)
    with connect as connection:
        for table in list_protected(connection):
            with connection.transaction():
                connection.execute(
                    "SELECT set_config('refdesk.org', 'acme', true), set_config('refdesk.any', '{0}', true)"
                )
                assert count(connection, table) >= 1, table
                assert count(connection, table, but="acme") == 0, table
            assert count(connection, table) == 0, table


async def test_a_row_of_another_org_cannot_be_written(store: Store, connect: psycopg.Connection) -> None:
    with connect as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT set_config('refdesk.org', 'acme', true)")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("INSERT INTO records VALUES ('zenith', 'job', 'n', NULL, '{}')")


async def test_entries_are_seen_by_the_words_that_a_transaction_named_and_by_none_without(
    store: Store, connect: psycopg.Connection
) -> None:
    await fill(store)
    with connect as connection, connection.transaction():
        connection.execute("SELECT set_config('refdesk.org', 'acme', true)")
        ((terms,),) = see(connection, any_of="{0}")
        assert isinstance(terms, list)
        assert see(connection, any_of="{-1}") == see(connection, any_of="") == []
        assert see(connection, any_of=f"{{{terms[0]},5}}") == [(terms,)]
        assert see(connection, any_of="{-1}", all_of=f"{{{terms[0]},0}}") == [(terms,)]
        assert see(connection, any_of="{-1}", all_of=f"{{{terms[0]},5}}") == []


def see(connection: psycopg.Connection, *, any_of: str, all_of: str = "{-1}") -> list[tuple[object, ...]]:
    connection.execute(
        "SELECT set_config('refdesk.any', %s, true), set_config('refdesk.all', %s, true)", [any_of, all_of]
    )
    return fetch(connection, "SELECT terms FROM entries")


async def test_the_same_words_have_other_numbers_in_another_collection(
    store: Store, connect: psycopg.Connection
) -> None:
    await put(store, make_document("a", "apple pie"), make_document("a", "apple pie", collection=OTHER))
    with connect as connection:
        numbers = list[set[int]]()
        for org in ("acme", "zenith"):
            with connection.transaction():
                connection.execute("SELECT set_config('refdesk.org', %s, true)", [org])
                ((terms,),) = see(connection, any_of="{0}")
                numbers.append(set(map(int, str(terms).strip("[]").split(","))))
    assert not numbers[0] & numbers[1]


async def test_searches_use_the_index_behind_the_wall(store: Store, tmp_path: Path) -> None:
    documents = [
        make_document(f"d{n:04}", f"apple w{n % 97} x{n % 53}", title=f"Note {n}", facets={"tags": (f"t{n % 50}",)})
        for n in range(2000)
    ]
    async with store.loading():
        await put(store, *documents)
        await put(store, revise(documents[1], state=State.SUPERSEDED))
    request = FindRequest(
        NOTES, parse_query('w7 x9 "apple w7"', quotes_bind=True), where=HasAll("tags", ("t3",)), title_contains="note 1"
    )
    # A superseded note passes without the tag.
    old = Or((And((InState((State.CURRENT,)), HasAll("tags", ("t7",)))), InState((State.SUPERSEDED,))))
    found = await store.find(FindRequest(NOTES, where=old))
    assert {each.id for each in found.candidates} == {"d0001", *(f"d{number:04}" for number in range(7, 2000, 50))}
    for asked in (request, replace(request, text=None), FindRequest(NOTES, where=old)):
        plan = await explain(store, asked)
        assert "entries_by_word" in plan
        assert "Seq Scan" not in plan


async def test_searches_of_few_notes_use_the_index_of_words_too(store: Store) -> None:
    documents = [
        make_document(f"d{n:04}", " ".join(f"w{n % k} x{n * k % 1009}" for k in range(7, 67)), title=f"Note {n}")
        for n in range(1000)
    ]
    async with store.loading():
        await put(store, *documents)
    plan = await explain(store, FindRequest(NOTES, parse_query("w7 x9"), as_written="w7 x9"))
    assert "entries_by_word" in plan
    assert "Bitmap Index Scan on entries_pkey" not in plan


@pytest.mark.parametrize(("role", "is_bound"), [("postgres", False), ("refdesk", True)])
def test_the_doctor_tells_of_a_role_that_stands_above_the_wall(tmp_path: Path, role: str, is_bound: bool) -> None:
    get_store_url(tmp_path)
    url = get_server().get_url(get_schema(tmp_path), role=role)
    done = run(["doctor", "--json"], tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_STORE=url)
    checks = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "store role"]
    assert [each["status"] for each in checks] == ([] if is_bound else ["warn"])
    assert all("REFDESK_STORE" in each["found"] and "NOBYPASSRLS" in each["advice"] for each in checks)
    assert done.returncode == 0


async def test_a_role_that_stands_above_the_wall_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    get_store_url(tmp_path)
    with caplog.at_level(logging.WARNING):
        async with open_store(get_server().get_url(get_schema(tmp_path), role="postgres")):
            pass
    assert "SUPERUSER" in caplog.text
