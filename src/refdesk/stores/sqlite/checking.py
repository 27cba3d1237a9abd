"""Whether the file is sound: a short look at each opening, a longer one after a crash, all of it when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import StoreError
from refdesk.stores.sqlite.lineage import Before, Seal, judge, read_marks

if TYPE_CHECKING:
    from refdesk.stores.sqlite.driver import Connection

LARGEST_QUICK = 64 * 1024 * 1024
"""Bytes of a file that is looked through before it serves after a crash; that takes a tenth of a second at most."""

DAMAGED = "The store's file is damaged. Stop every process that uses it, keep the file, and restore it from a backup."


def examine(connection: Connection, before: Before | None, seal: Seal) -> None:
    """Return when the file goes on from what was acknowledged; after a crash, when its pages hold together.

    Args:
        before: What stood there before it was opened, or `None` while others use it, who looked then.
        seal: The record beside it.

    Raises:
        StoreError: Something is missing or damaged; the file and its log are left as they are.
    """
    if before is not None:
        was_cut_off = judge(before, read_marks(connection), seal.read())
        if was_cut_off and _measure(connection) <= LARGEST_QUICK:
            require_sound(connection)
    connection.set_checkpoint_on_close(is_on=True)


def require_sound(connection: Connection) -> None:
    """Return when the pages of the file hold together.

    Raises:
        StoreError: They do not.
    """
    if connection.execute("PRAGMA quick_check(1)") != [("ok",)]:
        raise StoreError(DAMAGED)


def _measure(connection: Connection) -> int:
    return int(connection.get_pragma("page_count") or 0) * int(connection.get_pragma("page_size") or 0)
