"""Checksums that show whether a row is still as it was written.

SQLite checks that its pages are consistent, not what is in them: a flipped bit within a text is served as it is. So
each row carries the CRC-32 of what is shown of it and of where it belongs (org, toolset and id), and that is computed
anew whenever the row is read to be shown. A CRC detects every single burst of up to 32 bits and misses other damage
once in four billion times; it does not protect against anyone who writes both the row and its checksum.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from refdesk.stores.sqlite.failures import DamageError

if TYPE_CHECKING:
    from refdesk.core.keeping.rows import Columns
    from refdesk.model import Collection
    from refdesk.stores.sqlite.driver import Value

_SEPARATOR, _NOTHING = "\x00", "\x01"
"""No stored text holds a NUL, so no two different rows are joined to the same text."""

DAMAGED_ROW = (
    "The store's file is damaged: a row in it is not as it was written. Stop every process that uses it and put back a "
    "backup (refdesk restore); refdesk doctor --deep says what is damaged."
)


def compute_checksum(*values: Value) -> int:
    """Return the checksum of a row's values, in their order."""
    text = _SEPARATOR.join([_NOTHING if value is None else str(value) for value in values])
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def add_value(checksum: int, value: Value) -> int:
    """Return the checksum of a row's values followed by one more."""
    return zlib.crc32(f"{_SEPARATOR}{_NOTHING if value is None else value}".encode(), checksum)


def is_as_written(collection: Collection, id: str, row: Columns) -> bool:
    """Return whether a version is as it was written; `row` is what `decode_revision` reads, then the checksum."""
    recorded_at, *columns, checksum = row
    return checksum == compute_checksum(collection.org, collection.toolset, id, *columns, recorded_at)


def require_version(collection: Collection, id: str, row: Columns) -> Columns:
    """Return the part of a version's row, body included, that `decode_revision` reads; see `is_as_written`.

    Raises:
        DamageError: It is not as it was written.
    """
    if not is_as_written(collection, id, row):
        raise DamageError(DAMAGED_ROW)
    return row[:-1]


def require_row(row: Columns) -> Columns:
    """Return a link or a record without its checksum, which comes last.

    Raises:
        DamageError: It is not as it was written.
    """
    if row[-1] != compute_checksum(*row[:-1]):
        raise DamageError(DAMAGED_ROW)
    return row[:-1]
