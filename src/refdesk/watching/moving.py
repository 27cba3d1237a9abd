"""Moving: what becomes of an org's watches in another store, where what is the same for all has a log of its own.

How far the org has heard of that log is a number in it, which means nothing in another: there the org hears from the
present end on. Its own log goes along, with all its numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.model import Metadata
from refdesk.watching.happenings import SHARED
from refdesk.watching.watches import PROGRESS, WATCH, count_change, read_watch, write_watch

if TYPE_CHECKING:
    from refdesk.protocols import Transaction


def settle(record: Metadata, end: int) -> Metadata:
    """Return a record of an org as it is to be where the log of what is the same for all ends with this number."""
    if record.key.kind == PROGRESS and record.key.name.endswith(SHARED):
        return Metadata(record.key, {"number": end}, record.due_at)
    if record.key.kind == WATCH:
        watch = read_watch(record)
        begins = {log: end if log.endswith(SHARED) else number for log, number in watch.begins.items()}
        return write_watch(replace(watch, begins=begins))
    return record


async def note_arrival(transaction: Transaction) -> None:
    """Let every process that follows the store read the watches anew."""
    await count_change(transaction)
