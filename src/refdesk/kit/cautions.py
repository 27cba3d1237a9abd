"""What to heed before relying on a document: announcements that change what it relies on, and documents that contradict
it.

For an announcement, it is how much relies on what it changes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from refdesk.core.counts import say_count
from refdesk.impact.cases import Disputed, get_disputes, make_disputed_key
from refdesk.impact.records import (
    REACH,
    Impact,
    list_reached,
    make_key,
    make_learned_key,
    make_mark_keys,
    read_impact,
    read_impacts,
    read_learned,
    summarise,
)
from refdesk.model import Collection, MetadataKey, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from refdesk.core.context import Context
    from refdesk.impact.kinds import ChangeKind
    from refdesk.model import Document, Principal
    from refdesk.protocols import Reader

_CHANGES: dict[ChangeKind, str] = {
    "retires": "retires what this relies on",
    "breaks": "breaks what this relies on",
    "deprecates": "deprecates what this relies on",
    "default": "changes the default of what this relies on",
    "limit": "changes a limit of what this relies on",
    "price": "changes the price of what this relies on",
    "renames": "renames what this relies on",
    "releases": "releases what this says is not there yet",
}


async def get_cautions(
    reader: Reader, org: str, toolset: str, ids: Sequence[str], known: Sequence[Document] = ()
) -> list[str | None]:
    """Return for each document of an org what to heed, in a sentence or two; `None` if there is nothing.

    `known` are documents of the toolset that were just read; other documents are read only if they are needed to
    describe a dispute.
    """
    if not ids:
        return []
    keys = [*make_mark_keys(org, toolset, ids), *(make_disputed_key(org, toolset, id) for id in ids)]
    records = await reader.get_many_metadata(keys)
    if not any(records):
        return [None] * len(ids)
    impacts = read_impacts(org, records[: -len(ids)])
    disputes = await get_disputes(reader, org, ids, records[-len(ids) :])
    current = await _find_current(reader, Collection(org, toolset), disputes, known)
    return [
        " ".join(filter(None, (_tell_impacts(mine), _tell_disputes(disputed, current)))) or None
        for mine, disputed in zip(impacts, disputes, strict=True)
    ]


async def get_effects(context: Context, ids: Sequence[str]) -> list[str | None]:
    """Return for each announcement how much of what the caller may read relies on what it changes; `None` if nothing
    does.

    The documents of a toolset count if the caller has the scope `TOOLSET:read`.
    """
    counts = Counter[str]()
    for base in context.bases.open.values() if ids else ():
        counts += await _count_effects(base.store, context.principal, ids)
    return [_tell_effects(counts[id]) if counts[id] else None for id in ids]


async def _count_effects(reader: Reader, principal: Principal, ids: Sequence[str]) -> Counter[str]:
    org = principal.org
    reached = await reader.get_many_metadata([MetadataKey(org, REACH, id) for id in ids])
    items = [(id, item) for id, record in zip(ids, reached, strict=True) for item in list_reached(record)]
    places = [(id, *item.partition("/")[::2]) for id, item in items]
    wanted = [make_key(org, *place) for place in places if f"{place[1]}:read" in principal.scopes]
    if not wanted:
        return Counter()
    *found, learned = await reader.get_many_metadata([*wanted, make_learned_key(org)])
    known = read_learned(learned)
    impacts = [read_impact(org, record.value) for record in found if record is not None]
    return Counter(impact.announcement for impact in impacts if known.is_told(impact))


def _tell_effects(count: int) -> str:
    return f"{say_count(count, 'thing here relies', 'things here rely')} on what this changes: list_impacts."


async def _find_current(
    reader: Reader, collection: Collection, disputes: Sequence[Disputed], known: Sequence[Document]
) -> frozenset[str]:
    """Return which of the documents that contradict the disputed ones, or say the same, are current."""
    wanted = {id for each in disputes for id in (*each.contradicts, *each.repeats)}
    ids = sorted(wanted.difference(each.id for each in known))
    found = await reader.get_documents(collection, ids) if ids else []
    return frozenset(each.id for each in (*known, *found) if each is not None and each.state is State.CURRENT)


def _tell_impacts(impacts: Sequence[Impact]) -> str:
    summary = summarise(impacts)
    if summary is None:
        return ""
    return f"{tell_change(summary.count, summary.worst, summary.due)}: list_impacts."


def tell_change(count: int, worst: ChangeKind, due: date | None) -> str:
    """Return a clause that says how this many announcements, or the worst of them, change what something relies on."""
    since = f" from {due.isoformat()} on" if due else ""
    who = "An announcement" if count == 1 else f"Of {count} announcements the worst"
    return f"{who} {_CHANGES[worst]}{since}"


def _tell_disputes(disputed: Disputed, current: frozenset[str]) -> str:
    others = [id for id in disputed.contradicts if id in current]
    same = [id for id in disputed.repeats if id in current]
    told = [f"Contradicted by {', '.join(others[:3])}: list_cases."] if others else []
    return " ".join([*told, *([f"Says the same as {', '.join(same[:3])}."] if same else [])])
