"""Reads the audit logs of a desk together: each of its stores has one for each org."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from refdesk.core.writing import audit
from refdesk.errors import InvalidInputError

if TYPE_CHECKING:
    from refdesk.core.writing.audit import Verdict
    from refdesk.model import AuditEntry
    from refdesk.protocols import Store

MAIN = "main"
"""The name of the store that holds all toolsets except those kept apart, whose stores have the toolset's name."""

PAGE = 1000
MOST_READ = 50_000
"""Most entries that are looked at for one answer; the answer says where to continue."""

Stores: TypeAlias = "Mapping[str, Store]"
"""By name, `MAIN` first."""


@dataclass(frozen=True, slots=True)
class Act:
    """An entry, and the store whose log it is in."""

    store: str
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which acts are wanted; what is `None` does not matter.

    Attributes:
        record: The id of a document, a key or an entry that was asked for.
        refused: Whether only refusals are wanted.
    """

    agent: str | None = None
    action: str | None = None
    record: str | None = None
    refused: bool = False

    def matches(self, entry: AuditEntry) -> bool:
        """Return whether an entry is wanted."""
        act: Any = entry.act
        if self.agent not in (None, act.get("agent")) or self.action not in (None, act["action"]):
            return False
        if self.refused and act["outcome"] == audit.DONE:
            return False
        named = [act.get("records"), act.get("details")]
        return self.record is None or json.dumps(self.record) in json.dumps(named)


@dataclass(frozen=True, slots=True)
class Page:
    """Acts, newest first, and the cursor at which the rest begins; `None` if there is no more."""

    acts: list[Act]
    cursor: str | None


async def list_newest(stores: Stores, org: str | None, wanted: Wanted, limit: int, cursor: str | None = None) -> Page:
    """Return the newest acts of an org, or of all orgs, that are wanted.

    Args:
        stores: Whose logs.
        org: Whose; `None` for all.
        wanted: Which ones.
        limit: At most this many.
        cursor: Of the page before.

    Raises:
        InvalidInputError: The cursor is malformed.
    """
    places = [
        (name, each)
        for name, store in stores.items()
        for each in (await store.list_audited_orgs() if org is None else [org])
    ]
    ends = _read_cursor(cursor)
    streams = {place: _read_back(stores[place[0]], place[1], ends.get("/".join(place))) for place in places}
    heads = {place: await anext(stream, None) for place, stream in streams.items()}
    acts: list[Act] = []
    for _ in range(MOST_READ):
        waiting = {place: entry for place, entry in heads.items() if entry is not None}
        if not waiting or len(acts) == limit:
            break
        place, entry = max(waiting.items(), key=lambda pair: (pair[1].at, pair[1].number))
        acts += [Act(place[0], entry)] if wanted.matches(entry) else []
        heads[place] = await anext(streams[place], None)
    left = {"/".join(place): entry.number if entry is not None else 0 for place, entry in heads.items()}
    return Page(acts, " ".join(f"{place}:{number}" for place, number in left.items()) if any(left.values()) else None)


async def list_all(stores: Stores, org: str | None) -> AsyncIterator[Act]:
    """Yield every act of an org, or of all orgs, log by log."""
    for name, store in stores.items():
        for each in await store.list_audited_orgs() if org is None else [org]:
            after = 0
            while entries := await store.get_audit(each, after, PAGE):
                for entry in entries:
                    yield Act(name, entry)
                after = entries[-1].number


async def verify(stores: Stores, org: str | None, expected: str | None = None) -> list[tuple[str, Verdict]]:
    """Check the log of an org, or of all orgs, in each store; return by store what was found.

    Args:
        stores: Whose logs.
        org: Whose; `None` for all.
        expected: An end noted earlier, as `write_anchor` writes it.

    Raises:
        InvalidInputError: The expected end is malformed, or of a store that is not here.
    """
    place, slash, anchor = (expected or "").rpartition("/")
    if slash and place not in stores:
        raise InvalidInputError(f"The end to expect is of the store {place}, which is not here: leave its name out.")
    found: list[tuple[str, Verdict]] = []
    for name, store in stores.items():
        is_meant = expected is not None and name == (place or MAIN)
        orgs = await store.list_audited_orgs() if org is None else [org]
        found += [(name, await audit.verify(store, each, anchor if is_meant else None)) for each in orgs]
    return found


def write_anchor(store: str, verdict: Verdict) -> str:
    """Return the end of a log as text, to be noted elsewhere."""
    return verdict.anchor if store == MAIN else f"{store}/{verdict.anchor}"


def write_act(act: Act) -> dict[str, Any]:
    """Return an act as it is shown and exported: all that its digest covers."""
    entry = act.entry
    place = {} if act.store == MAIN else {"store": act.store}
    chain = {"org": entry.org, "number": entry.number, "at": entry.at.isoformat()}
    return {**place, **chain, "act": entry.act, "previous": entry.previous, "digest": entry.digest}


async def _read_back(store: Store, org: str, last: int | None) -> AsyncIterator[AuditEntry]:
    """Yield an org's entries from the number `last` down, or from the end."""
    if last is None:
        end = await store.get_last_audit(org)
        last = end.number if end is not None else 0
    while last > 0:
        after = max(0, last - PAGE)
        for entry in reversed(await store.get_audit(org, after, last - after)):
            yield entry
        last = after


def _read_cursor(cursor: str | None) -> dict[str, int]:
    places: Sequence[str] = cursor.split() if cursor else []
    pairs = [place.rpartition(":") for place in places]
    if any(not (place and number.isascii() and number.isdigit()) for place, _, number in pairs):
        raise InvalidInputError("The cursor is none: send what `nextCursor` of the page before says.")
    return {place: int(number) for place, _, number in pairs}
