"""Schema migrations of a file."""

from __future__ import annotations

from refdesk.errors import ConfigurationError
from refdesk.kit.migrations import Migration, find_missing, load_steps
from refdesk.stores.sqlite.checksums import compute_checksum
from refdesk.stores.sqlite.driver import Connection

APPLICATION_ID = 0x72656664
"""Marks a file as ours in SQLite's header: "refd"."""


def load_migrations() -> list[Migration]:
    """Return the steps that this program knows, in order."""
    return load_steps("sqlite")


def get_missing(connection: Connection, migrations: list[Migration]) -> list[Migration]:
    """Return the steps the file has not seen, in order.

    Raises:
        ConfigurationError: The file was written by a newer refdesk, or by another program.
    """
    return find_missing(migrations, _get_applied(connection), "file")


def migrate(connection: Connection, migrations: list[Migration], now: int) -> None:
    """Bring the file's schema up to date.

    Args:
        connection: In a transaction that keeps other writers out, so that each step is taken by one process only.
        migrations: Every step there is, in order.
        now: Microseconds since 1970, recorded with each step.

    Raises:
        ConfigurationError: See `get_missing`.
    """
    connection.define("checksum", compute_checksum)
    for migration in get_missing(connection, migrations):
        _apply(connection, migration, now)


def _get_applied(connection: Connection) -> dict[int, str]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return {}
    if connection.get_pragma("application_id") != APPLICATION_ID or "migrations" not in tables:
        raise ConfigurationError(
            "The store's file is a database of another program. Name another file in REFDESK_STORE."
        )
    return {row[0]: row[1] for row in connection.execute("SELECT number, name FROM migrations")}


def _apply(connection: Connection, migration: Migration, now: int) -> None:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    connection.set_pragma("application_id", APPLICATION_ID)
    connection.execute(migration.script)
    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (migration.number, migration.name, now))
