"""Every entry of an org at one instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.transfer.entries import refer, to_document, to_entry
from refdesk.toolsets.knowledge.transfer.reports import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.model import Collection, Document
    from refdesk.protocols import Store
    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.reports import Progress

_BATCH = 200
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Entries by time of creation, then by id, and problems with those that an `Entry` cannot hold whole.

    Erased entries are included if a chain leads through them; see `Entry.erased_at`.
    """

    entries: Sequence[Entry]
    problems: Sequence[Problem]


async def take_snapshot(store: Store, org: str, progress: Progress | None = None) -> Snapshot:
    """Return every entry of an org as one transaction saw them, in every state.

    Other writers wait while this reads: about a tenth of a millisecond per entry.
    """
    collection = models.get_collection(org)
    read: list[tuple[Entry, Document]] = []
    gaps: dict[str, Entry] = {}
    async with store.transaction() as transaction:
        ids = list(dict.fromkeys([*await transaction.get_digests(collection), *await _list_all(store, collection)]))
        for start in range(0, len(ids), _BATCH):
            for document in await transaction.get_documents(collection, ids[start : start + _BATCH]):
                if document is None:
                    continue
                entry = to_entry(document, await transaction.get_links(org, refer(document.id)))
                if is_erased(document):
                    gaps[entry.id] = entry
                else:
                    read.append((entry, document))
            if progress is not None:
                progress(len(read), len(ids))
    problems = [problem for pair in read for problem in _check_whole(*pair)]
    entries = [entry for entry, _ in read]
    entries += _list_gaps(entries, gaps)
    return Snapshot(sorted(entries, key=lambda entry: (entry.created_at, entry.id)), problems)


def _list_gaps(entries: Sequence[Entry], gaps: Mapping[str, Entry]) -> list[Entry]:
    """Return the erased entries that supersede an entry, directly or not: without them its chain would break off."""
    met: dict[str, Entry] = {}
    for entry in entries:
        at = entry.superseded_by
        while at is not None and at in gaps and at not in met:
            met[at] = gaps[at]
            at = gaps[at].superseded_by
    return list(met.values())


async def _list_all(store: Store, collection: Collection) -> list[str]:
    """Return the ids of a collection, including withdrawn documents, which have no digest."""
    found, after = list[str](), None
    while entries := await store.list_documents(after, _PAGE):
        after = entries[-1]
        found += [id for of, id in entries if of == collection]
    return found


def _check_whole(entry: Entry, document: Document) -> list[Problem]:
    """Return a problem unless the document can be recreated from the entry."""
    # A document superseded by an earlier refdesk names the head that its chain had then; ignore that.
    data = {name: value for name, value in document.data.items() if name != supersession.HEAD}
    if to_document(entry, document.collection.org).digest == replace(document, data=data).digest:
        return []
    return [Problem("left_out", document.id, "holds something that the format does not know; it is not exported.")]
