"""Whether the file is sound: examined when it is opened after a crash or after others touched it, and on request.

SQLite's own check says whether pages and indexes are consistent, the checksums whether rows are as they were written,
and the change sequence whether an index that is caught up by it would miss a document.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from refdesk.core.keeping.rows import decode_audit
from refdesk.core.writing.audit import is_unchanged
from refdesk.errors import StoreError
from refdesk.model import Collection
from refdesk.stores.sqlite.checksums import compute_checksum, is_as_written
from refdesk.stores.sqlite.driver import open_reading, open_snapshot
from refdesk.stores.sqlite.failures import Damage, DamageError, translated
from refdesk.stores.sqlite.lineage import Before, Seal, judge, read_marks
from refdesk.stores.sqlite.read_only import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refdesk.core.keeping.rows import Columns
    from refdesk.stores.sqlite.driver import Connection, Row

LARGEST_AT_ONCE = 256 * 1024 * 1024
"""Size in bytes up to which a file is examined before it serves, which takes some three seconds per gigabyte; a larger
one is examined while it serves."""

MOST_FAULTS = 20

DAMAGED = (
    "The store's file is damaged. Nothing was changed. Keep the file, and put back a backup (refdesk restore); refdesk "
    "doctor --deep says what is damaged."
)

_BODY = 9
"""Index of the body in the row of a version."""

_DOCUMENTS = """
    SELECT org, toolset, id, recorded_at, version, state, created_at, modified_at, author, title, facets, spans, body,
        data, checksum
    FROM documents JOIN collections ON collections.key = documents.collection
"""
# Newest first: a version without a body has the body of the next newer one.
_REVISIONS = """
    SELECT org, toolset, id, key, present, revisions.*
    FROM (
        SELECT document, recorded_at, version, state, created_at, modified_at, author, title, facets, spans, body, data,
            checksum
        FROM revisions
    ) AS revisions
    JOIN (
        SELECT org, toolset, id, documents.key, body AS present
        FROM documents JOIN collections ON collections.key = documents.collection
    ) ON key = document
    ORDER BY document, version DESC
"""
_RECORDS = "SELECT org, kind, name, due_at, value, checksum FROM records"
_LINKS = "SELECT org, source_toolset, source_id, kind, target_toolset, target_id, created_at, checksum FROM links"
_AUDIT = "SELECT org, number, at, act, previous, digest FROM audit"
# Catching up an index reads what is above the number it has seen, up to the number of the collection.
_AHEAD = """
    SELECT org, toolset FROM collections WHERE changed < max(
        (SELECT coalesce(max(written), 0) FROM documents WHERE collection = collections.key),
        (SELECT coalesce(max(embedded), 0) FROM documents WHERE collection = collections.key AND embedded > 0)
    )
"""


def examine(connection: Connection, before: Before | None, seal: Seal, largest: int) -> bool:
    """Examine the file if there is reason to; return whether everything that there is reason to examine was examined.

    Args:
        connection: Open on the file, already in WAL mode.
        before: What was there before it was opened, or `None` if others have it open, who examined it when they opened
            it.
        seal: The record beside it.
        largest: Size in bytes up to which a file is examined now.

    Raises:
        StoreError: Something is missing or damaged; the file and its log are left as they are.
    """
    is_done = True
    if before is not None:
        was_cut_off = judge(before, read_marks(connection), seal.read())
        if was_cut_off or not before.is_untouched:
            is_done = _measure(connection) <= largest
            if is_done:
                require_sound(connection)
    connection.set_checkpoint_on_close(is_on=True)
    return is_done


class LateExamination:
    """Examines, while it serves, a file that is too large to wait for."""

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path = path
        self._damage = damage
        self._connection: Connection | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; any damage that is found makes the store unhealthy."""
        self._thread.start()

    def stop(self) -> None:
        """Abort it if it is not done: the file is examined when it is opened next."""
        self._is_stopped = True
        if self._connection is not None:
            self._connection.interrupt()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        with suppress(StoreError), translated(self._damage.note), open_reading(self._path) as self._connection:
            if not self._is_stopped:
                require_sound(self._connection)
                self._damage.is_examined = True


def require_sound(connection: Connection) -> None:
    """Return if the file is sound.

    Raises:
        DamageError: It is not.
    """
    if list_faults(connection, 1):
        raise DamageError(DAMAGED)


def list_faults(connection: Connection, most: int = MOST_FAULTS) -> list[str]:
    """Return what is wrong with the file, `most` faults at most, in words for whoever runs the server."""
    found: list[str] = []
    try:
        with translated():
            found.extend(islice(_find_faults(connection, most), most))
    except DamageError as error:
        # If a page cannot be read at all, the rest is not examined.
        found.append(f"it cannot be read to its end: {error.__cause__}")
    return found


def list_faults_of_file(path: Path) -> list[str]:
    """Return what is wrong with a file, whether or not it is in use or could be opened as a store; changes nothing."""
    try:
        with translated():
            has_log = Path(f"{path}-wal").exists()
            opened = reading(path) if has_log else open_snapshot(path)
            with opened as connection:
                return list_faults(connection)
    except DamageError as error:
        return [f"it cannot be opened: {error.__cause__}"]


def _find_faults(connection: Connection, most: int) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA integrity_check({most})"):
        if line != "ok":
            yield f"pages: {' '.join(str(line).split())}"
    for table, row, parent, _ in islice(connection.stream("PRAGMA foreign_key_check"), most):
        yield f"row {row} of {table} belongs to a row of {parent} that is not there"
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if "collections" not in tables:
        return
    for org, toolset in connection.execute(_AHEAD):
        yield f"the change sequence is behind the documents of {toolset} of {org}"
    if connection.get_row("SELECT 1 FROM pragma_table_info('documents') WHERE name = 'checksum'") is not None:
        yield from _check_rows(connection)
    if "audit" in tables:
        yield from _check_audit(connection)


def _check_rows(connection: Connection) -> Iterator[str]:
    for org, toolset, id, *row in connection.stream(_DOCUMENTS):
        if not _is_version(org, toolset, id, row):
            yield f"{toolset} {id} of {org} is not as it was written"
    key, body = None, None
    for org, toolset, id, document, present, _, *row in connection.stream(_REVISIONS):
        key, body = document, present if document != key else body
        row[_BODY] = body = body if row[_BODY] is None else row[_BODY]
        if not _is_version(org, toolset, id, row):
            yield f"version {row[1]} of {toolset} {id} of {org} is not as it was written"
    for row in connection.stream(_RECORDS):
        if row[-1] != compute_checksum(*row[:-1]):
            yield f"a record of {row[0]} is not as it was written: {row[1]} {row[2]}"
    for row in connection.stream(_LINKS):
        if row[-1] != compute_checksum(*row[:-1]):
            yield f"a link of {row[0]} is not as it was written: {row[2]} {row[3]} {row[5]}"


def _is_version(org: str, toolset: str, id: str, row: Columns) -> bool:
    return is_as_written(Collection(org, toolset), id, row)


def _check_audit(connection: Connection) -> Iterator[str]:
    for row in connection.stream(_AUDIT):
        if not _is_unchanged(row):
            yield f"entry {row[1]} of the audit log of {row[0]} is not as it was written"


def _is_unchanged(row: Row) -> bool:
    try:
        return is_unchanged(decode_audit(row))
    except (ValueError, OverflowError):
        return False


def _measure(connection: Connection) -> int:
    return int(connection.get_pragma("page_count") or 0) * int(connection.get_pragma("page_size") or 0)
