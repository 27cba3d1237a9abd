"""Plans an import entry by entry against what is stored; the dry run and the import share the plan.

Heads of chains are judged first, so an entry never lands before what superseded it. Stored entries are never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from refdesk.core.writing import quotas, supersession
from refdesk.core.writing.quotas import Quota
from refdesk.core.writing.tombstones import is_erased
from refdesk.model import Link
from refdesk.toolsets.knowledge import TOOLSET_NAME, duplicates, models
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from refdesk.toolsets.knowledge.transfer import edges
from refdesk.toolsets.knowledge.transfer.entries import (
    find_differences,
    refer,
    to_document,
    to_entry,
    to_links,
    to_tombstone,
)
from refdesk.toolsets.knowledge.transfer.intake import Intake, PlacedEntry

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Document, Metadata
    from refdesk.protocols import Reader, Transaction
    from refdesk.toolsets.knowledge.transfer.entries import Entry
    from refdesk.toolsets.knowledge.transfer.reports import ImportReport, Progress, Tally

T = TypeVar("T")

MOST_IN_A_TRANSACTION = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be imported into an org: entries whose edges are valid, heads first, and the intake they come from."""

    intake: Intake
    org: str
    entries: Sequence[PlacedEntry]
    report: ImportReport
    """What applying the plan now would do."""


async def plan_import(base: KnowledgeBase, org: str, intake: Intake) -> Plan:
    """Return the plan for importing what was read. Nothing is written."""
    collection = models.get_collection(org)
    ids = [*(placed.entry.id for placed in intake.entries), *edges.list_outer_ids(intake.entries)]
    stored = [
        document.id
        for batch in _cut(ids)
        for document in await base.store.get_documents(collection, batch)
        if document is not None
    ]
    entries = edges.keep_sound(intake, stored)
    judge = _Judge(org, intake.tally.copy(), {placed.entry.id for placed in entries})
    allowance = _Allowance(base.store, _get_quota(base), org)
    for batch in _cut(entries):
        await judge.judge(base.store, batch, allowance)
    judge.finish()
    return Plan(intake, org, entries, judge.tally.report(intake.format, dry_run=True))


async def apply_plan(base: KnowledgeBase, plan: Plan, progress: Progress | None = None) -> ImportReport:
    """Import what was planned and return what was done.

    Each transaction takes at most `MOST_IN_A_TRANSACTION` whole entries; a link waits for the transaction that brings
    its other end. Everything is checked again, so entries stored since the plan was made are safe. Repeating the import
    after a failure adds what is missing.

    Raises:
        StoreError: The store failed; earlier transactions stay committed.
    """
    judge = _Judge(plan.org, plan.intake.tally.copy(), {placed.entry.id for placed in plan.entries})
    quota, done = _get_quota(base), 0
    for batch in _cut(plan.entries):
        judge.forget_landed()
        async with base.store.transaction() as transaction:
            allowance = _Allowance(transaction, quota, plan.org)
            writes = await judge.judge(transaction, batch, allowance)
            await allowance.spend(transaction)
            await transaction.put_documents(writes.documents)
            await transaction.erase_documents(writes.tombstones)
            await duplicates.note_all(transaction, writes.documents)
            await transaction.put_metadata(writes.records)
            await transaction.put_links(writes.links)
        base.note_change()
        done += len(batch)
        if progress is not None:
            progress(done, len(plan.entries))
    judge.finish()
    return judge.tally.report(plan.intake.format, dry_run=False)


@dataclass(slots=True)
class _Writes:
    documents: list[Document] = field(default_factory=list["Document"])
    tombstones: list[Document] = field(default_factory=list["Document"])
    records: list[Metadata] = field(default_factory=list["Metadata"])
    links: list[Link] = field(default_factory=list[Link])


class _Allowance:
    """How many more entries each author may store; reads the usage once and counts what is taken."""

    def __init__(self, reader: Reader, quota: Quota, org: str) -> None:
        self._reader = reader
        self._quota = quota
        self._org = org
        self._used: dict[str, int] = {}
        self._used_by_org = 0
        self._taken: Counter[str] = Counter()

    async def take(self, author: str) -> bool:
        """Count one entry of an author; return whether there was room."""
        if author not in self._used:
            usage = await quotas.read_usage(self._reader, self._quota, self._org, author)
            self._used[author], self._used_by_org = usage.agent, usage.org
        of_org = (self._quota.per_org, self._used_by_org + self._taken.total())
        of_agent = (self._quota.per_agent, self._used[author] + self._taken[author])
        if any(limit is not None and used >= limit for limit, used in (of_org, of_agent)):
            return False
        self._taken[author] += 1
        return True

    async def spend(self, transaction: Transaction) -> None:
        """Count what was taken against the quota."""
        for author, amount in sorted(self._taken.items()):
            await quotas.spend(transaction, self._quota, self._org, author, amount)


class _Judge:
    """Decides for each entry whether it is added, and keeps count.

    Entries it added are remembered as landed, with their heads, so that a dry run sees what the store would then hold.
    """

    def __init__(self, org: str, tally: Tally, planned: set[str]) -> None:
        self.tally = tally
        self._org = org
        self._planned = planned
        self._landed: dict[str, str] = {}
        self._waiting: list[tuple[str, Link]] = []

    def forget_landed(self) -> None:
        """Rely on the store alone for what earlier batches added: the heads may have changed since."""
        self._landed.clear()

    async def judge(self, reader: Reader, batch: Sequence[PlacedEntry], allowance: _Allowance) -> _Writes:
        """Return what is to be written for a batch."""
        stored = await self._read(reader, batch)
        heads = await supersession.find_heads(reader, stored.values()) | self._landed
        writes, candidates = _Writes(), list[tuple[str, Link]]()
        for placed in batch:
            entry, document = placed.entry, stored.get(placed.entry.id)
            links: list[Link] | None
            if document is None:
                links = await self._add(placed, heads, allowance, writes)
            else:
                links = await self._compare(reader, placed, document)
            self._planned.discard(entry.id)
            candidates += [(placed.place, link) for link in links or ()]
        candidates, self._waiting = self._waiting + candidates, []
        await self._settle_links(reader, candidates, stored, writes)
        return writes

    def finish(self) -> None:
        """Note the links whose other end never came."""
        for place, link in self._waiting:
            self._note_lost(place, link)
        self._waiting = []

    async def _read(self, reader: Reader, batch: Sequence[PlacedEntry]) -> dict[str, Document]:
        entries = [placed.entry for placed in batch]
        ids = [id for entry in entries for id in (entry.id, entry.superseded_by) if id is not None]
        return await self._read_documents(reader, ids)

    async def _read_documents(self, reader: Reader, ids: Sequence[str]) -> dict[str, Document]:
        documents = await reader.get_documents(models.get_collection(self._org), list(dict.fromkeys(ids)))
        return {document.id: document for document in documents if document is not None}

    async def _add(
        self, placed: PlacedEntry, heads: dict[str, str], allowance: _Allowance, writes: _Writes
    ) -> list[Link] | None:
        """Return the links of an entry that was added, else `None`; the entry's own head is added to `heads`."""
        entry = placed.entry
        head = entry.id if entry.superseded_by is None else heads.get(entry.superseded_by)
        if head is None:
            self.tally.note("invalid", placed.place, f"points to {entry.superseded_by}, which was not imported.")
            return None
        if entry.erased_at is None:
            if not await allowance.take(entry.author):
                self.tally.note("quota", placed.place, f"is over the quota {QUOTA_NAME} of the org or its author.")
                return None
            writes.documents.append(to_document(entry, self._org))
            self.tally.added += 1
        else:
            writes.tombstones.append(to_tombstone(entry, self._org))
        writes.links += _list_chain_edges(entry, self._org)
        if head != entry.id:
            writes.records.append(supersession.point(models.get_collection(self._org), entry.id, head))
        self._landed[entry.id] = heads[entry.id] = head
        return to_links(entry, self._org)

    async def _compare(self, reader: Reader, placed: PlacedEntry, document: Document) -> list[Link] | None:
        if placed.entry.erased_at is not None:
            # An import only adds: an entry that was erased elsewhere but is stored here stays as it is.
            return None
        if is_erased(document):
            self.tally.note("conflict", placed.place, f"{placed.entry.id} was erased here, and stays so.")
            return None
        differences = find_differences(placed.entry, to_entry(document, ()))
        if differences:
            names = ", ".join(differences)
            self.tally.note("conflict", placed.place, f"{placed.entry.id} is stored with another {names}; it stays.")
            return None
        self.tally.unchanged += 1
        links = to_links(placed.entry, self._org)
        if not links:
            return links
        present = {_identify(link) for link in await reader.get_links(self._org, refer(document.id))}
        return [link for link in links if _identify(link) not in present]

    async def _settle_links(
        self, reader: Reader, candidates: Sequence[tuple[str, Link]], stored: dict[str, Document], writes: _Writes
    ) -> None:
        ends = [_list_ends(link) for _, link in candidates]
        unseen = [id for ids in ends for id in ids if id not in stored and id not in self._landed]
        known = {*stored, *self._landed}
        for part in _cut(unseen):
            known |= (await self._read_documents(reader, part)).keys()
        for (place, link), ids in zip(candidates, ends, strict=True):
            missing = [id for id in ids if id not in known]
            if not missing:
                writes.links.append(link)
                self.tally.links_added += 1
            elif self._planned.issuperset(missing):
                self._waiting.append((place, link))
            else:
                self._note_lost(place, link)

    def _note_lost(self, place: str, link: Link) -> None:
        self.tally.note("left_out", place, f"its link to {link.target.id}: that entry was not imported.")


def _list_chain_edges(entry: Entry, org: str) -> list[Link]:
    if entry.superseded_by is None or entry.superseded_at is None:
        return []
    source, target = refer(entry.superseded_by), refer(entry.id)
    return [Link(org, source, supersession.SUPERSEDES, target, entry.superseded_at)]


def _list_ends(link: Link) -> list[str]:
    return [end.id for end in (link.source, link.target) if end.toolset == TOOLSET_NAME]


def _identify(link: Link) -> tuple[object, ...]:
    return link.source, link.kind, link.target


def _get_quota(base: KnowledgeBase) -> Quota:
    return base.quotas.get(QUOTA_NAME, Quota(QUOTA_NAME))


def _cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), MOST_IN_A_TRANSACTION):
        yield items[start : start + MOST_IN_A_TRANSACTION]
