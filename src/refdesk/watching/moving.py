"""Moving: adapts an org's watches to another store, where the shared org has a log of its own.

How far the org has heard of the shared org's log is a number in that log, which means nothing in another store: there
the org hears from the present end on. Its own log moves with it and keeps its numbers.
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
    """Return a record of an org as it should be in a store where the shared org's log ends with this number."""
    if record.key.kind == PROGRESS and record.key.name.endswith(SHARED):
        return Metadata(record.key, {"number": end}, record.due_at)
    if record.key.kind == WATCH:
        watch = read_watch(record)
        begins = {log: end if log.endswith(SHARED) else number for log, number in watch.begins.items()}
        return write_watch(replace(watch, begins=begins))
    return record


async def note_arrival(transaction: Transaction) -> None:
    """Make every process that follows the store read the watches again."""
    await count_change(transaction)
