"""The move of a store while it serves: triggers note what any process changes, and at the end refuse changes.

The triggers are created when a move begins and are gone after it, so a store that is not being moved pays nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from refdesk.core.keeping.moves import KIND, MOVED, STATE, Change
from refdesk.errors import RefdeskError
from refdesk.stores.sqlite import beside, writes
from refdesk.stores.sqlite.failures import translated
from refdesk.stores.sqlite.read_only import reading

if TYPE_CHECKING:
    from refdesk.core.keeping.moves import Move
    from refdesk.stores.sqlite.connections import Readers
    from refdesk.stores.sqlite.driver import Connection
    from refdesk.stores.sqlite.transactions import Session, Transactions

_TABLES = ("documents", "vectors", "links", "records", "audit")
_DOCUMENT = (
    "SELECT 'document', json_array(org, toolset, {0}.id) FROM collections WHERE collections.key = {0}.collection"
)
_VECTOR = (
    "SELECT 'document', json_array(org, toolset, documents.id) FROM documents "
    "JOIN collections ON collections.key = documents.collection WHERE documents.key = {0}.document"
)
_LINK = (
    "VALUES ('link', json_array({0}.org, {0}.source_toolset, {0}.source_id, {0}.kind, {0}.target_toolset, "
    "{0}.target_id))"
)
_RECORD = f"SELECT 'record', json_array({{0}}.org, {{0}}.kind, {{0}}.name) WHERE {{0}}.kind <> '{KIND}'"
_ACTS = "VALUES ('acts', json_array({0}.org))"
_NOTED = dict(zip(_TABLES, (_DOCUMENT, _VECTOR, _LINK, _RECORD, _ACTS), strict=True))
_NOTE = """BEGIN
    DELETE FROM move_changes WHERE (what, key) IN ({0});
    INSERT INTO move_changes (what, key) {0};
END"""
_OPERATIONS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}
_MAKE_TABLE = """
    CREATE TABLE IF NOT EXISTS move_changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, key TEXT NOT NULL, UNIQUE (what, key)
    ) STRICT
"""
_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'move_changes'"
_HAS_RECORDS = "SELECT 1 FROM sqlite_schema WHERE name = 'records'"
_FIND = "SELECT value ->> 'target', value ->> 'stage' FROM records WHERE org = ? AND kind = ? AND name = ?"


def find_new_place(connection: Connection) -> str | None:
    """Return the URL of the store that the one in a file was moved to; `None` if it is still the authoritative one."""
    if not connection.get_row(_HAS_RECORDS):
        return None
    target, stage = connection.get_row(_FIND, (STATE.org, STATE.kind, STATE.name)) or ("", "")
    return str(target) if stage == "switched" else None


def read_new_place(path: Path) -> str | None:
    """Return the same for a file, even while others use it; what the mark beside it says if it cannot be read. Blocks.

    `None` also if there is no file.
    """
    if not path.is_file():
        return None
    try:
        with translated(), reading(path) as connection:
            return find_new_place(connection)
    except RefdeskError:
        return read_mark(path)


def read_mark(path: Path) -> str | None:
    """Return the URL in the mark beside a file; `None` if there is none that can be read."""
    try:
        return str(json.loads(Path(f"{path}{beside.MOVED}").read_bytes())["target"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def settle_mark(connection: Connection) -> None:
    """Make the mark beside a file say where its store was moved to, and remove it where that is nowhere.

    A store that was moved out of a file must not come to life again when the file is damaged.
    """
    place, path = find_new_place(connection), beside.find_path(connection)
    if place is None:
        remove_mark(path)
    elif read_mark(path) != place:
        with suppress(OSError):  # whoever opens the file next tries again
            beside.write_beside(path, beside.MOVED, json.dumps({"target": place}).encode())


def remove_mark(path: Path) -> None:
    """Remove the mark beside a file, if any."""
    with suppress(OSError):
        Path(f"{path}{beside.MOVED}").unlink(missing_ok=True)


def forget_move(connection: Connection) -> None:
    """Remove all signs of a move from a copy of a store, within a transaction: the move is that of the store itself."""
    for table in _TABLES:
        for operation in _OPERATIONS:
            connection.execute(f"DROP TRIGGER IF EXISTS moved_{table}_{operation.lower()}")
    if connection.get_row(_HAS_RECORDS):
        _cancel(connection)


class SqliteMoves:
    """See `Moves`."""

    def __init__(self, transactions: Transactions, readers: Readers) -> None:
        self._transactions = transactions
        self._readers = readers

    async def begin(self, move: Move) -> None:
        """See `Moves.begin`."""
        async with self._transactions.open() as session:
            await session.run(_begin, move)

    async def read_changes(self, limit: int) -> list[Change]:
        """See `Moves.read_changes`."""
        return await self._readers.run(_read_changes, limit)

    async def forget(self, changes: Sequence[Change]) -> None:
        """See `Moves.forget`."""
        async with self._transactions.open() as session:
            await session.run(_forget, changes)

    async def cancel(self) -> None:
        """See `Moves.cancel`."""
        async with self._transactions.open() as session:
            await session.run(_cancel)

    @asynccontextmanager
    async def stand_still(self) -> AsyncGenerator[SqliteStandstill, None]:
        """See `Moves.stand_still`."""
        async with self._transactions.open() as session:
            # The first statement takes the write lock, of which there is only one.
            await session.run(_read_changes, 1)
            yield SqliteStandstill(session)
        await self._readers.run(settle_mark)


@dataclass(frozen=True, slots=True)
class SqliteStandstill:
    """See `Standstill`."""

    session: Session

    async def switch(self, move: Move) -> None:
        """See `Standstill.switch`."""
        await self.session.run(_switch, move)


def _begin(connection: Connection, move: Move) -> None:
    # The statement that fires a trigger would decide how conflicts in it are resolved, so none may arise.
    connection.execute(_MAKE_TABLE)
    for table, noted in _NOTED.items():
        for operation, row in _OPERATIONS.items():
            of = " OF written" if (table, operation) == ("documents", "UPDATE") else ""
            noting = _NOTE.format(noted.format(row))
            name = f"move_{table}_{operation.lower()}"
            connection.execute(f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {operation}{of} ON {table} {noting}")
    writes.put_metadata(connection, [move.to_record()])


def _read_changes(connection: Connection, limit: int) -> list[Change]:
    if not connection.get_row(_HAS_TABLE):
        return []
    rows = connection.execute("SELECT what, key, number FROM move_changes ORDER BY number LIMIT ?", (limit,))
    return [Change(what, tuple(json.loads(key)), number) for what, key, number in rows]


def _forget(connection: Connection, changes: Sequence[Change]) -> None:
    connection.execute_many("DELETE FROM move_changes WHERE number = ?", [(change.number,) for change in changes])


def _cancel(connection: Connection) -> None:
    _end(connection)
    writes.remove_metadata(connection, [STATE])


def _switch(connection: Connection, move: Move) -> None:
    _end(connection)
    writes.put_metadata(connection, [move.to_record()])
    for table in _TABLES:
        for operation in _OPERATIONS:
            of = " OF written" if (table, operation) == ("documents", "UPDATE") else ""
            connection.execute(
                f"CREATE TRIGGER moved_{table}_{operation.lower()} BEFORE {operation}{of} ON {table} BEGIN "
                f"SELECT raise(ABORT, '{MOVED}'); END"
            )


def _end(connection: Connection) -> None:
    for table in _TABLES:
        for operation in _OPERATIONS:
            connection.execute(f"DROP TRIGGER IF EXISTS move_{table}_{operation.lower()}")
    connection.execute("DROP TABLE IF EXISTS move_changes")
