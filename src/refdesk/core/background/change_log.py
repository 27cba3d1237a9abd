"""The change log of a toolset: every change that its syncs made, and when.

It is written in the transactions of the changes themselves, so it misses none. Each record holds the changes of one
transaction, under its month; a separate record says when the log begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from refdesk.core.background import sync_log
from refdesk.core.background.sync_log import Change, ChangeKind
from refdesk.model import SHARED_ORG, Metadata, MetadataKey, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refdesk.model import Document
    from refdesk.protocols import Reader, Transaction

CHANGES = "sync_changes"
BEGUN = "sync_changes_begun"

_MOST = 100_000
"""Most records read of one month; a month has a few hundred."""


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """What a sync did to one document, and when."""

    at: datetime
    change: Change


def name_change(old: Document | None, new: Document) -> ChangeKind:
    """Return what it does to a document to be replaced by another version."""
    if old is None:
        return "added"
    if new.state is State.WITHDRAWN:
        return "withdrawn"
    return "restored" if old.state is State.WITHDRAWN else "changed"


async def add_changes(transaction: Transaction, toolset: str, at: datetime, changes: Sequence[Change]) -> None:
    """Log the changes that this transaction makes."""
    if not changes:
        return
    begun = MetadataKey(SHARED_ORG, BEGUN, toolset)
    if await transaction.get_metadata(begun) is None:
        await transaction.put_metadata([Metadata(begun, {"at": at.isoformat()})])
    # A document changes at most once in a transaction, so the name is unique.
    first = changes[0]
    key = MetadataKey(SHARED_ORG, _name_kind(toolset, at), f"{at.isoformat()}:{first.id}:{first.version}")
    told = [[each.id, each.kind, each.version] for each in changes]
    await transaction.put_metadata([Metadata(key, {"at": at.isoformat(), "changes": told})])


async def read_changes(reader: Reader, toolset: str, since: datetime | None, until: datetime) -> Sequence[LoggedChange]:
    """Return the changes made from `since` (`None`: ever) up to `until`, both included, newest first, then by id.

    For the time before the log begins, they are those that the entries of recent runs name.
    """
    record = await reader.get_metadata(MetadataKey(SHARED_ORG, BEGUN, toolset))
    begun = None if record is None else datetime.fromisoformat(str(record.value["at"]))
    found = [
        LoggedChange(run.finished_at, change)
        for run in await sync_log.read_runs(reader, toolset)
        if begun is None or run.finished_at < begun
        for change in run.changes
    ]
    if begun is not None:
        for kind in _list_kinds(toolset, max(since or begun, begun), until):
            for each in await reader.list_metadata(kind, org=SHARED_ORG, limit=_MOST):
                found += _read(each)
    held = [each for each in found if (since is None or since <= each.at) and each.at <= until]
    return sort_changes(held)


def sort_changes(changes: Iterable[LoggedChange]) -> list[LoggedChange]:
    """Return changes newest first, then by id."""
    return sorted(changes, key=lambda each: (-each.at.timestamp(), each.change.id, -each.change.version))


def _name_kind(toolset: str, at: datetime) -> str:
    return f"{CHANGES}:{toolset}:{at:%Y-%m}"


def _list_kinds(toolset: str, since: datetime, until: datetime) -> Iterator[str]:
    first, last = since.year * 12 + since.month - 1, until.year * 12 + until.month - 1
    for number in range(first, last + 1):
        yield _name_kind(toolset, since.replace(year=number // 12, month=number % 12 + 1, day=1))


def _read(record: Metadata) -> list[LoggedChange]:
    at = datetime.fromisoformat(str(record.value["at"]))
    told = cast("Sequence[tuple[str, ChangeKind, int]]", record.value["changes"])
    return [LoggedChange(at, Change(*each)) for each in told]
