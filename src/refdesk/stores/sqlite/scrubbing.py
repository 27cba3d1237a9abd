"""Removing every trace of what was erased: from the file's free pages, from its log, and from between the rows.

SQLite only marks what is deleted as free, and keeps old pages in the write-ahead log until they are overwritten. VACUUM
rewrites the whole file from its rows, and a truncating checkpoint moves the result into the file and empties the log.
`PRAGMA secure_delete` alone would miss what was freed before it was set, and copies that were left behind when a page
was split.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import apsw

from refdesk.errors import StoreError
from refdesk.stores.sqlite.erasures import write_found
from refdesk.stores.sqlite.writes import forget_traces, get_traces, note_traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from refdesk.stores.sqlite.connections import Writer
    from refdesk.stores.sqlite.driver import Connection
    from refdesk.stores.sqlite.transactions import Transactions

RETRY_SECONDS = 0.05

_HELD = (
    "What was erased is gone from the store, but traces of it are left in its file: another process held it too long. "
    "They are overwritten when the store is opened next."
)


async def scrub(transactions: Transactions, patience_seconds: float) -> None:
    """Return once no trace is left of anything that was removed or replaced before, noted or not.

    Raises:
        StoreError: Another process read or wrote for longer than the patience; a note remains until scrubbing is done.
    """
    async with transactions.open() as session:
        number = await session.run_here(note_traces)
    async with transactions.alone() as writer:
        await _scrub(writer, number, patience_seconds)


async def scrub_noted(transactions: Transactions, patience_seconds: float) -> None:
    """Scrub if there is a note, be it of an erasure or of a `scrub` that did not finish; errors as in `scrub`."""
    async with transactions.alone() as writer:
        number = await writer.call(get_traces)
        if number is not None:
            await _scrub(writer, number, patience_seconds)


async def _scrub(writer: Writer, number: int, patience_seconds: float) -> None:
    deadline = anyio.current_time() + patience_seconds
    for step in (_rewrite, _empty_log, write_found, partial(_forget, number), _empty_log):
        await _insist(writer, step, deadline)


async def _insist(writer: Writer, step: Callable[[Connection], bool], deadline: float) -> None:
    while not await writer.call(step):
        if anyio.current_time() >= deadline:
            raise StoreError(_HELD)
        await anyio.sleep(RETRY_SECONDS)


def _rewrite(connection: Connection) -> bool:
    # Its temporary copy is kept beside the file, not in a folder that others may read.
    ((path,),) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    connection.set_pragma("temp_store_directory", str(Path(path).parent))
    connection.set_pragma("secure_delete", 1)
    return _try(partial(connection.execute, "VACUUM"))


def _empty_log(connection: Connection) -> bool:
    try:
        ((is_busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (apsw.BusyError, apsw.LockedError):
        return False
    return not is_busy


def _forget(number: int, connection: Connection) -> bool:
    return _try(partial(forget_traces, connection, number))


def _try(act: Callable[[], object]) -> bool:
    try:
        act()
    except (apsw.BusyError, apsw.LockedError):
        return False
    return True
