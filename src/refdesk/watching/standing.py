"""Standing: what happens to the subjects of watches without a write to them: they expire, an announcement makes them
wrong, or another entry contradicts them.

No audit log records that, so what is known now is compared with what was known before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from refdesk.impact import cases, records
from refdesk.model import Metadata, MetadataKey
from refdesk.watching.news import Event
from refdesk.watching.watches import EXPIRY, SEEN

if TYPE_CHECKING:
    from refdesk.model import Document, JsonValue
    from refdesk.protocols import Store, Transaction
    from refdesk.watching.watches import Watch

MOST_DUE = 1_000


@dataclass(frozen=True, slots=True)
class Bearing:
    """What bears on a document: ids of announcements that change what it relies on, and of entries contradicting it."""

    impacts: frozenset[str] = frozenset()
    contradicts: frozenset[str] = frozenset()


NOTHING = Bearing()


async def read_bearings(store: Store, org: str, watches: Sequence[Watch]) -> list[Bearing]:
    """Return what bears on the subject of each watch; all subjects are in one toolset."""
    ids, toolset = [watch.subject for watch in watches], watches[0].toolsets[0]
    keys = [*records.make_mark_keys(org, toolset, ids), *(cases.make_disputed_key(org, toolset, id) for id in ids)]
    kept = await store.get_many_metadata(keys)
    impacts = records.read_impacts(org, kept[: -len(ids)])
    disputes = await cases.get_disputes(store, org, ids, kept[-len(ids) :])
    return [
        Bearing(frozenset(each.announcement for each in found), frozenset(dispute.contradicts))
        for found, dispute in zip(impacts, disputes, strict=True)
    ]


def make_seen_key(watch: Watch) -> MetadataKey:
    """Return the key of the record of what bore on the subject of a watch at the last look."""
    return MetadataKey(watch.org, SEEN, watch.id)


def write_seen(watch: Watch, bearing: Bearing) -> Metadata:
    """Return the record of what bears on the subject of a watch."""
    value: dict[str, JsonValue] = {
        "agent": watch.agent,
        "id": watch.subject,
        "impacts": sorted(bearing.impacts),
        "contradicts": sorted(bearing.contradicts),
    }
    return Metadata(make_seen_key(watch), value)


def read_seen(record: Metadata | None) -> Bearing:
    """Return what bore on the subject of a watch at the last look."""
    if record is None:
        return NOTHING
    lists = (frozenset(cast("Sequence[str]", record.value[name])) for name in ("impacts", "contradicts"))
    return Bearing(*lists)


def list_events(watch: Watch, before: Bearing, now: Bearing, at: datetime) -> list[Event]:
    """Return events for whatever bears on the subject of a watch now but did not before."""
    toolset = watch.toolsets[0]
    impacts = [Event("impacted", toolset, watch.subject, at, 0, id) for id in sorted(now.impacts - before.impacts)]
    disputes = sorted(now.contradicts - before.contradicts)
    return impacts + [Event("contradicted", toolset, watch.subject, at, 0, id) for id in disputes]


async def take_expired(
    transaction: Transaction, org: str, watches: Mapping[str, Watch], due: Sequence[Metadata]
) -> list[tuple[Watch, Event]]:
    """Return events for what expired, and remove the records that said when, except those changed meanwhile."""
    known = await transaction.get_many_metadata([record.key for record in due])
    taken = [record for record, now in zip(due, known, strict=True) if now == record]
    await transaction.remove_metadata([record.key for record in taken])
    told: list[tuple[Watch, Event]] = []
    for record in taken:
        watch = watches.get(record.key.name)
        if watch is not None and watch.org == org and record.due_at is not None:
            told.append((watch, Event("expired", watch.toolsets[0], watch.subject, record.due_at)))
    return told


async def list_due(store: Store, now: datetime) -> list[Metadata]:
    """Return the expiry records that are due."""
    return await store.list_metadata(EXPIRY, due_until=now, limit=MOST_DUE)


def get_expiry(document: Document, name: str) -> datetime | None:
    """Return when a document expires, given the name of the date range; `None` if never."""
    spans = document.date_ranges.get(name)
    return spans[0].start if spans else None
