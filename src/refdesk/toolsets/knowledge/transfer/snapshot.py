"""Every entry of an org at one instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased
from refdesk.toolsets.knowledge import TOOLSET_NAME, models
from refdesk.toolsets.knowledge.transfer.entries import refer, to_document, to_entry
from refdesk.toolsets.knowledge.transfer.reports import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import Document
    from refdesk.protocols import Reader, Store
    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.reports import Progress

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Entries by the time they were made, then by id, and those of them that are not held whole."""

    entries: Sequence[Entry]
    problems: Sequence[Problem]


async def take_snapshot(store: Store, org: str, progress: Progress | None = None) -> Snapshot:
    """Return every entry of an org as one transaction saw them, in every state.

    A store does not list what was withdrawn; such entries are found where a chain or a link leads to them. Other
    writers wait while this reads, some tenth of a millisecond for each entry.
    """
    collection = models.get_collection(org)
    read: list[tuple[Entry, Document]] = []
    async with store.transaction() as transaction:
        waiting = list(await transaction.get_digests(collection))
        known = set(waiting)
        while waiting:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            for document in await transaction.get_documents(collection, batch):
                if document is None:
                    continue
                if is_erased(document):
                    # Of what was erased only the way through its chain is left.
                    waiting += [id for id in await _list_neighbours(transaction, document) if id not in known]
                    known.update(waiting)
                    continue
                entry, led_to = await _read_entry(transaction, document)
                read.append((entry, document))
                found = [id for id in dict.fromkeys(led_to) if id not in known]
                waiting += found
                known.update(found)
            if progress is not None:
                progress(len(read), len(known))
    read.sort(key=lambda pair: (pair[0].created_at, pair[0].id))
    problems = [problem for pair in read for problem in _check_whole(*pair)]
    return Snapshot([entry for entry, _ in read], problems)


async def _list_neighbours(reader: Reader, document: Document) -> list[str]:
    links = await reader.get_links(document.collection.org, refer(document.id))
    return list(
        dict.fromkeys(end.id for link in links for end in (link.source, link.target) if end.toolset == TOOLSET_NAME)
    )


async def _read_entry(reader: Reader, document: Document) -> tuple[Entry, list[str]]:
    """Return the entry, and the ids of all entries that an edge joins it to."""
    links = await reader.get_links(document.collection.org, refer(document.id))
    entry = to_entry(document, links)
    ends = [end.id for link in links for end in (link.source, link.target) if end.toolset == TOOLSET_NAME]
    return entry, [*ends, *([entry.superseded_by] if entry.superseded_by is not None else [])]


def _check_whole(entry: Entry, document: Document) -> list[Problem]:
    """Return a problem unless the document can be made again from the entry."""
    # What was superseded by an earlier refdesk names the head of its chain at that time.
    data = {name: value for name, value in document.data.items() if name != supersession.HEAD}
    if to_document(entry, document.collection.org).digest == replace(document, data=data).digest:
        return []
    return [Problem("left_out", document.id, "holds something that the format does not know; it is not exported.")]
