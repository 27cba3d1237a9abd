"""Schema migrations: numbered SQL files, each applied once, in order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from refdesk.errors import ConfigurationError
from refdesk.stores.sqlite.checksums import compute_checksum
from refdesk.stores.sqlite.driver import Connection

APPLICATION_ID = 0x72656664
"""Marks a file as ours in SQLite's header: "refd"."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: `number` is its place, `name` the rest of its file's name, `script` its SQL."""

    number: int
    name: str
    script: str


def load_migrations() -> list[Migration]:
    """Return the steps this program knows, in order."""
    folder = resources.files("refdesk.stores").joinpath("schema", "sqlite")
    return sorted(
        (_parse(each.name, each.read_text("utf-8")) for each in folder.iterdir() if each.name.endswith(".sql")),
        key=lambda migration: migration.number,
    )


def get_missing(connection: Connection, migrations: list[Migration]) -> list[Migration]:
    """Return the steps the file has not seen, in order.

    Raises:
        ConfigurationError: The file was written by a newer refdesk, or by another program.
    """
    applied = _get_applied(connection)
    known = {migration.number: migration.name for migration in migrations}
    if any(known.get(number) != name for number, name in applied.items()):
        raise ConfigurationError(
            f"The store was written by a newer refdesk (schema {max(applied)}, this one knows {max(known)}). "
            "Upgrade refdesk, or name another file in REFDESK_STORE."
        )
    return [migration for migration in migrations if migration.number not in applied]


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


def _parse(file_name: str, script: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, script)


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
