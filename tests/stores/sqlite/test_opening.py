"""What is made, set and refused when a file is opened."""

from __future__ import annotations

import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from refdesk.errors import ConfigurationError, RefdeskError, StoreError
from refdesk.model import Collection
from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.migrations import load_migrations, migrate
from tests.stores.samples import asking, find_ids, make_document, put


@pytest.fixture
def connections() -> Generator[list[Any]]:
    """The driver's connections that are opened during the test, behind the store's back."""
    opened: list[Any] = []
    hooks = cast("list[Any]", apsw.connection_hooks)
    hooks.append(opened.append)
    yield opened
    hooks.remove(opened.append)


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run_sql(path: Path, statements: str) -> list[tuple[Any, ...]]:
    path.touch()
    connection = Connection(path, 0)
    rows = connection.execute(statements)
    connection.close()
    return rows


async def fail_to_open(path: Path) -> RefdeskError:
    with pytest.raises(RefdeskError) as caught:
        async with open_store(path, patience_seconds=0.2):
            pass
    assert str(path) not in caught.value.message
    assert path.name not in caught.value.message
    return caught.value


async def test_commits_reach_the_disk_before_they_are_acknowledged(tmp_path: Path, connections: list[Any]) -> None:
    async with open_store(tmp_path / "a.sqlite3") as store:
        await put(store, make_document("a", "apple"))
        await find_ids(store, asking("apple"))
        (writer, *readers) = connections
        assert writer.pragma("journal_mode") == "wal"
        assert writer.pragma("synchronous") == 2
        assert writer.pragma("foreign_keys") == 1
        assert readers
        for connection in connections:
            assert connection.pragma("mmap_size") in (0, None)
        for reader in readers:
            assert reader.pragma("query_only") == 1


async def test_every_connection_is_closed_in_the_end(tmp_path: Path, connections: list[Any]) -> None:
    async with open_store(tmp_path / "a.sqlite3") as store:
        await put(store, make_document("a", "apple"))
        await find_ids(store, asking("apple"))
    for connection in connections:
        with pytest.raises(apsw.ConnectionClosedError):
            connection.pragma("user_version")
    assert list_names(tmp_path) == ["a.sqlite3", "a.sqlite3-erased", "a.sqlite3-seal"]


async def test_a_new_file_and_its_folder_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "a.sqlite3"
    async with open_store(path):
        for made in path.parent.iterdir():
            assert stat.S_IMODE(made.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_what_was_stored_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    async with open_store(path) as store:
        await put(store, make_document("a", "apple"))
    async with open_store(path) as store:
        assert await find_ids(store, asking("apple")) == ["a"]


async def test_migrations_are_numbered_without_gaps_and_recorded_once(tmp_path: Path) -> None:
    migrations = load_migrations()
    assert [each.number for each in migrations] == list(range(1, len(migrations) + 1))
    for _ in range(2):
        async with open_store(tmp_path / "a.sqlite3"):
            pass
    recorded = run_sql(tmp_path / "a.sqlite3", "SELECT number, name FROM migrations")
    assert recorded == [(each.number, each.name) for each in migrations]


async def test_a_file_of_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    async with open_store(path):
        pass
    run_sql(path, "INSERT INTO migrations VALUES (9999, 'future', 0)")
    error = await fail_to_open(path)
    assert isinstance(error, ConfigurationError)
    assert "9999" in error.message
    assert "Upgrade refdesk" in error.message
    assert run_sql(path, "SELECT max(number) FROM migrations") == [(9999,)]


async def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    run_sql(path, "CREATE TABLE theirs (x)")
    error = await fail_to_open(path)
    assert isinstance(error, ConfigurationError)
    assert "another program" in error.message
    assert run_sql(path, "SELECT name FROM sqlite_schema") == [("theirs",)]


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    path.write_text("Dear diary, " * 1000)
    error = await fail_to_open(path)
    assert isinstance(error, StoreError)
    assert "not a SQLite database" in error.message
    assert path.read_text().startswith("Dear diary")


@pytest.mark.parametrize("name", ["place", "file/below"])
async def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "file").touch()
    assert isinstance(await fail_to_open(tmp_path / name), StoreError)


async def test_a_file_in_use_by_a_program_that_locks_it_whole_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    path.touch()
    greedy = Connection(path, 0)
    greedy.execute("BEGIN EXCLUSIVE")
    error = await fail_to_open(path)
    assert "Another process" in error.message
    greedy.close()
    async with open_store(path) as store:
        await store.check()


async def test_the_engine_names_its_version(sqlite: Store) -> None:
    assert sqlite.engine == f"SQLite {apsw.sqlite_lib_version()}"


_FIRST_SCHEMA = """
    BEGIN;
    INSERT INTO collections VALUES (1, 'acme', 'notes', 4);
    INSERT INTO documents VALUES
        (1, 1, 'a', 4, 'superseded', 0, 0, 3, 'd', 't', 4, 0, 0, 0, 'ann', 'A', '{}', '{}', x'', 'two', '{"n":4}');
    INSERT INTO revisions VALUES
        (1, 1, 'current', 0, 0, 0, 'ann', 'A', '{}', '{}', 'one', '{"n":1}'),
        (1, 2, 'current', 0, 0, 1, 'ann', 'A', '{}', '{}', 'one', '{"n":2}'),
        (1, 3, 'current', 0, 0, 2, 'ann', 'A', '{}', '{}', 'two', '{"n":3}');
    COMMIT;
"""


async def test_the_versions_that_an_earlier_refdesk_kept_are_all_there_and_each_body_once(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    path.touch()
    connection = Connection(path, 0)
    migrate(connection, load_migrations()[:1], 0)
    connection.execute(_FIRST_SCHEMA)
    connection.close()
    async with open_store(path) as store:
        revisions = await store.get_revisions(Collection("acme", "notes"), "a")
    kept = [(each.document.version, each.document.body, each.document.data) for each in revisions]
    assert kept == [(n, body, {"n": n}) for n, body in enumerate(["one", "one", "two", "two"], 1)]
    bodies = run_sql(path, "SELECT body FROM revisions ORDER BY version")
    assert bodies == [(None,), ("one",), (None,)]
