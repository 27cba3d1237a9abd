"""The rows that notes left in our tables, inserted once more into tables of the same columns and indexes, and no more.

What our store does beside is not in it: nothing is asked, counted, ordered or derived; see `benchmarks.postgres`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

if TYPE_CHECKING:
    from benchmarks.postgres_writes import StoreNote

TABLES = {"documents": "key", "entries": "document", "spans": "document", "records": "ctid"}
"""Each table in which a note has a row, and by what its rows are in the order of the notes."""

_SEE = (
    "SELECT set_config('refdesk.org', %s, false), set_config('refdesk.any', '{0}', false), "
    "set_config('refdesk.all', '{-1}', false)"
)
_MAKE = SQL("CREATE TABLE IF NOT EXISTS {} (LIKE {} INCLUDING ALL)")
_READ = SQL(
    "SELECT row::text FROM {} row WHERE row.org = {} AND to_jsonb(row) ->> 'kind' IS DISTINCT FROM 'quota' ORDER BY {}"
)
# A row is read once, behind the barrier, and not once for each of its columns.
_INSERT = SQL("INSERT INTO {0} SELECT (made.row).* FROM (SELECT %s::{0} AS row OFFSET 0) made")


async def make_row_insert(
    org: str, reading: AsyncConnection, writing: AsyncConnection, store_note: StoreNote, notes: int = 500
) -> StoreNote:
    """Store some notes of an org and return a call that inserts the rows of the next of them, in one transaction and
    one round trip; each time round as those of another org."""
    for number in range(notes):
        await store_note(org, "agent-0", number)
    await reading.execute(_SEE, [org])
    rows = dict[str, Sequence[str]]()
    for table, order in TABLES.items():
        await writing.execute(_MAKE.format(Identifier(f"plain_{table}"), Identifier(table)))
        cursor = await reading.execute(_READ.format(Identifier(table), org, Identifier(order)))
        rows[table] = [row for (row,) in await cursor.fetchall()]
        assert len(rows[table]) == notes, table
    statements = {table: _INSERT.format(Identifier(f"plain_{table}")) for table in TABLES}
    made = count()

    async def insert(_org: str, _agent: str, _number: int) -> bool:
        turn, place = divmod(next(made), notes)
        async with writing.pipeline(), writing.transaction():
            for table, statement in statements.items():
                row = rows[table][place]
                await writing.execute(statement, [row.replace(org, f"{org}-{turn}", 1)], prepare=True)
        return True

    return insert
