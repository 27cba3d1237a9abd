"""Reads all stored changes, and again whenever any process has written some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from refdesk.impact.change_rows import read_row
from refdesk.impact.known_changes import KnownChanges
from refdesk.impact.records import CHANGE
from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.protocols import Store, Transaction

STATE = "impact_state"
MOST_READ = 100_000
_COUNT_KEY = MetadataKey(SHARED_ORG, STATE, "changes")


@dataclass(slots=True)
class ChangeReader:
    """The changes kept in some stores."""

    stores: Sequence[Store]
    _known: KnownChanges | None = None
    _counts: list[Metadata | None] = field(default_factory=list["Metadata | None"])

    async def get(self) -> KnownChanges:
        """Return all changes."""
        counts = [await store.get_metadata(_COUNT_KEY) for store in self.stores]
        if self._known is None or self._counts != counts:
            known = KnownChanges()
            for store in self.stores:
                for record in await store.list_metadata(CHANGE, org=SHARED_ORG, limit=MOST_READ):
                    known.put(read_row(record.value))
            self._known, self._counts = known, counts
        return self._known


async def count_write(transaction: Transaction) -> None:
    """Let every process see that changes were written."""
    record = await transaction.get_metadata(_COUNT_KEY)
    count = cast("int", record.value["count"]) if record is not None else 0
    await transaction.put_metadata([Metadata(_COUNT_KEY, {"count": count + 1})])
