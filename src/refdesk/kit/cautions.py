"""What to heed of an entry or a skill before one relies on it: what changes under it, and what says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.impact.cases import Disputed, get_disputes, make_disputed_key
from refdesk.impact.records import Impact, make_mark_keys, read_impacts, summarise
from refdesk.model import Collection, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import Document
    from refdesk.protocols import Reader

_CHANGES = {
    "retires": "retires",
    "breaks": "breaks",
    "deprecates": "deprecates",
    "default": "changes the default of",
    "limit": "changes a limit of",
    "price": "changes the price of",
    "renames": "renames",
}


async def get_cautions(
    reader: Reader, org: str, toolset: str, ids: Sequence[str], known: Sequence[Document] = ()
) -> list[str | None]:
    """Return for each document of an org what to heed, in a sentence or two; `None` for nothing.

    `known` are documents of the toolset as they were just read: others are read only where one of these is disputed.
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


async def _find_current(
    reader: Reader, collection: Collection, disputes: Sequence[Disputed], known: Sequence[Document]
) -> frozenset[str]:
    """Return which of the documents hold now that contradict others or are repeated."""
    wanted = {id for each in disputes for id in (*each.contradicts, *each.repeats)}
    ids = sorted(wanted.difference(each.id for each in known))
    found = await reader.get_documents(collection, ids) if ids else []
    return frozenset(each.id for each in (*known, *found) if each is not None and each.state is State.CURRENT)


def _tell_impacts(impacts: Sequence[Impact]) -> str:
    summary = summarise(impacts)
    if summary is None:
        return ""
    since = f" from {summary.due.isoformat()} on" if summary.due else ""
    what = f"{_CHANGES[summary.worst]} what this relies on{since}"
    who = "An announcement" if summary.count == 1 else f"Of {summary.count} announcements the worst"
    return f"{who} {what}: list_impacts."


def _tell_disputes(disputed: Disputed, current: frozenset[str]) -> str:
    others = [id for id in disputed.contradicts if id in current]
    same = [id for id in disputed.repeats if id in current]
    told = [f"Contradicted by {', '.join(others[:3])}: list_cases."] if others else []
    return " ".join([*told, *([f"Says the same as {', '.join(same[:3])}."] if same else [])])
