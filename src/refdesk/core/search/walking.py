"""Continues a list of documents, newest first, after the last one shown, so that concurrent writes shift nothing.

Where a change would move a document, the list is walked as it stood when the walk began: a document that was changed
since keeps the place that its version of that time had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from refdesk.model import And, FindRequest, HasId, Overlaps, SortKey, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from refdesk.model import Collection, Document, Filter, Revision
    from refdesk.protocols import Store

_ALL = 10**9
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Walk:
    """A list of the documents that pass `where`, newest first, ties by id.

    Attributes:
        ranges: The name of the date range that holds the instant by which the list is ordered.
        is_by_creation: Whether that instant is of creation; else it is of the last change.
        moved: Documents whose instant has changed since the walk began, and the instant they had then.
    """

    collection: Collection
    where: Filter | None
    ranges: str
    is_by_creation: bool
    moved: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


async def find_moved(
    store: Store, collection: Collection, changed: Iterable[str], was_there: Callable[[Revision], bool]
) -> dict[str, datetime]:
    """Return by id the instant that ordered each document when the walk began.

    Args:
        store: Where the documents are.
        collection: The collection that is walked.
        changed: The ids of the documents that were changed since the walk began.
        was_there: Whether a version existed when the walk began. Documents without such a version are left out.
    """
    ids = list(dict.fromkeys(changed))
    found: dict[str, datetime] = {}
    for id, history in zip(ids, await store.get_histories(collection, ids) if ids else (), strict=True):
        before = [each.document for each in history if was_there(each)]
        if before and before[-1].state is not State.WITHDRAWN:
            found[id] = before[-1].modified_at
    return found


async def list_changed(store: Store, collection: Collection, ranges: str, since: datetime) -> list[str]:
    """Return the ids of the documents whose instant is `since` or later."""
    return await _find(store, Walk(collection, None, ranges, is_by_creation=False), since, None, None)


async def list_next(store: Store, walk: Walk, last: tuple[datetime, str], limit: int) -> list[str]:
    """Return the ids of at most `limit` documents that come after the last one shown.

    Args:
        store: Where the documents are.
        walk: The list.
        last: The instant and the id of the last document shown, in the order of the walk.
        limit: 1 or more.
    """
    at, id = last
    moved = [(instant, each) for each, instant in walk.moved.items() if _is_after((instant, each), last)]
    moved = await _keep_matching(store, walk, moved)
    depth = limit + len(walk.moved)
    same = [each for each in sorted(await _find(store, walk, at, at, None)) if each > id and each not in walk.moved]
    older = await _find(store, walk, None, at - _INSTANT, depth) if len(same) < limit else []
    stayed = [each for each in older if each not in walk.moved]
    if not moved:
        return [*same, *stayed][:limit]
    documents = await store.get_documents(walk.collection, stayed)
    placed = [(get_instant(walk, each), each.id) for each in documents if each is not None]
    placed += [*((at, each) for each in same), *moved]
    return [each for _, each in sorted(placed, key=lambda pair: (-pair[0].timestamp(), pair[1]))][:limit]


def get_instant(walk: Walk, document: Document) -> datetime:
    """Return the instant by which a document is ordered in the walk."""
    return walk.moved.get(document.id) or (document.created_at if walk.is_by_creation else document.modified_at)


def _is_after(one: tuple[datetime, str], last: tuple[datetime, str]) -> bool:
    return one[0] < last[0] or (one[0] == last[0] and one[1] > last[1])


async def _keep_matching(
    store: Store, walk: Walk, placed: Sequence[tuple[datetime, str]]
) -> list[tuple[datetime, str]]:
    if not placed:
        return []
    ids = HasId(tuple(id for _, id in placed))
    where = ids if walk.where is None else And((walk.where, ids))
    found = await store.find(FindRequest(walk.collection, where=where, depth=len(placed), order=(SortKey("id"),)))
    matching = {each.id for each in found.candidates}
    return [pair for pair in placed if pair[1] in matching]


async def _find(
    store: Store, walk: Walk, since: datetime | None, until: datetime | None, depth: int | None
) -> list[str]:
    """Return the ids of the first `depth` documents between two instants, both included, in the order of the walk."""
    within = Overlaps((walk.ranges,), since, until)
    where = within if walk.where is None else And((walk.where, within))
    by = SortKey("created" if walk.is_by_creation else "modified", descending=True)
    request = FindRequest(walk.collection, where=where, depth=depth or _ALL, order=(by, SortKey("id")), counts=False)
    return [each.id for each in (await store.find(request)).candidates]
