"""Finds impacts in the background: of new announcements on stored documents, and of all announcements on new documents.

A record says that a document is to be examined. It is written in the commit that embeds the document, and removed in
the commit that stores what was found. A new announcement is read, and the documents that may rely on it are examined
again. If these rules change, or nothing was ever examined, everything is examined, page by page. One process at a time
does this, under a lease.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import anyio.to_thread

from refdesk import errors
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.search.analysis import analyse, get_stop_terms
from refdesk.impact.cases import Case, put_cases
from refdesk.impact.change_reading import STATE, ChangeReader, count_write
from refdesk.impact.change_rows import write_change
from refdesk.impact.changes import Announcement, Change, read_change
from refdesk.impact.comparing import Compared, compare_notes, read_note, says_the_same
from refdesk.impact.known_changes import KnownChanges
from refdesk.impact.matching import read_passages
from refdesk.impact.products import list_names
from refdesk.impact.records import CHANGE, PENDING, REACH, Impact, list_reached, make_impact, put_impacts
from refdesk.impact.series import list_sizes
from refdesk.model import SHARED_ORG, Collection, FindRequest, InState, Metadata, MetadataKey, State, TextQuery

if TYPE_CHECKING:
    from refdesk.model import Document, JsonValue
    from refdesk.protocols import Clock, Store, Transaction

logger = logging.getLogger(__name__)

LEASE = "impact"
BATCH = 2
PAGE = 200
IDLE_SECONDS = 1.0
MOST_SECONDS = 60.0
RESTS = 12.0
"""After a batch, the examiner rests this many times as long as the batch kept a processor busy, so that work that
people wait for goes first."""

CANDIDATES = 400
"""At most this many documents of an org are examined again for a new announcement: those that match its names best."""

MOST_TERMS = 64

COMPARED = 12
"""A new note is compared with at most this many others: those that match it best."""

LOOKED_AT = 2000
"""The first this many characters of a note are used to find others on the same subject."""


@dataclass(slots=True)
class Examiner:
    """Examines what is pending; `run` it as a background task in a server.

    Attributes:
        stores: The stores by toolset: of toolsets that announce, and of those whose documents rely on announcements.
        announcing: By toolset, the function that loads the reader of its announcements.
        relying: The toolsets whose documents announcements may make wrong.
        disputing: The toolsets whose documents may contradict each other.
        working: Entered around each batch that `run` examines; lets it begin only when nobody waits for anything else.
        give_way: Awaited before each document that is examined and each note that is compared, to let calls that came
            meanwhile go first.
        also: Awaited with documents that were just embedded or rewritten, before they count as examined; called again
            for them if the batch was cut off.
    """

    stores: Mapping[str, Store]
    announcing: Mapping[str, Callable[[], Callable[[Document], Announcement]]]
    relying: frozenset[str]
    clock: Clock
    disputing: frozenset[str] = frozenset()
    holder: Holder = field(default_factory=Holder)
    working: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    give_way: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    also: Callable[[Store, Collection, Sequence[Document]], Awaitable[None]] | None = None
    trouble: str | None = None
    _changes: ChangeReader = field(init=False)
    _seen: dict[int, str] = field(default_factory=dict[int, str])

    def __post_init__(self) -> None:
        self._changes = ChangeReader([self.stores[name] for name in self.announcing])

    async def run(self) -> None:
        """Work until cancelled. Failures are logged and retried with increasing pauses; they never end the loop."""
        pause = IDLE_SECONDS
        while True:
            async with self.working():
                begun, begun_working = anyio.current_time(), process_time()
                try:
                    worked = await self.run_once()
                    pause, self.trouble = IDLE_SECONDS, None
                except errors.RefdeskError as error:
                    worked, self.trouble = 0, error.message
                    logger.warning("impacts paused", extra={"reason": error.message, "seconds": pause})
                    pause = min(2 * pause, MOST_SECONDS)
            rest = get_rest(anyio.current_time() - begun, process_time() - begun_working)
            await anyio.sleep(rest if worked else pause)

    async def run_until_done(self) -> int:
        """Examine everything that is pending; return how many documents that was."""
        total = 0
        while worked := await self.run_once():
            total += worked
        return total

    async def run_once(self) -> int:
        """Examine a batch of what is pending, unless another process does; return how many documents that was."""
        worked = 0
        for store in self._list_stores():
            mark = await store.get_change_mark()
            if self._seen.get(id(store)) == mark:
                continue
            done = await self._work_on(store)
            if done == 0:
                self._seen[id(store)] = mark
            worked += done or 0
        return worked

    def _list_stores(self) -> list[Store]:
        """Return the stores, each once, those with announcements first."""
        named = [*(self.stores[name] for name in self.announcing), *self.stores.values()]
        return list({id(store): store for store in named}.values())

    async def _work_on(self, store: Store) -> int | None:
        """Examine a batch of what is pending in a store; return how many, or `None` if another process is doing so."""
        lease = Lease(LEASE, store, self.clock, self.holder, timedelta(seconds=60))
        pending = await self._list_pending(store)
        is_new = not await self._is_all_noted(store)
        if not (pending or is_new):
            return 0
        if not await lease.acquire():
            return None
        try:
            if is_new:
                await self._note_page(store)
            await self._examine(store, lease, pending)
            return len(pending) + is_new
        finally:
            with anyio.CancelScope(shield=True):
                await lease.release()

    async def _list_pending(self, store: Store) -> list[Metadata]:
        announced = await store.list_metadata(PENDING, org=SHARED_ORG, limit=BATCH)
        return announced or await store.list_metadata(PENDING, limit=BATCH)

    async def _examine(self, store: Store, lease: Lease, pending: Sequence[Metadata]) -> None:
        by_collection: dict[Collection, list[Metadata]] = {}
        for record in pending:
            by_collection.setdefault(Collection(record.key.org, str(record.value["toolset"])), []).append(record)
        for collection, records in by_collection.items():
            documents = await store.get_documents(collection, [str(record.value["id"]) for record in records])
            if self.also is not None:
                await self.also(store, collection, [each for each in documents if each is not None])
            if collection.toolset in self.announcing:
                await self._take_announcements(
                    store, lease, collection.toolset, list(zip(records, documents, strict=True))
                )
            else:
                await self._take_items(store, lease, list(zip(records, documents, strict=True)))

    async def _take_announcements(
        self, store: Store, lease: Lease, toolset: str, pairs: Sequence[tuple[Metadata, Document | None]]
    ) -> None:
        """Store what announcements change, and have documents that may rely on that examined."""
        read = self.announcing[toolset]()
        known, changed = await self._changes.get(), list[tuple[str, Change | None]]()
        for record, document in pairs:
            announcement = read(document) if document is not None and _is_current(document) else None
            change = await anyio.to_thread.run_sync(read_change, announcement) if announcement is not None else None
            id = str(record.value["id"])
            if known.by_id.get(id) != change:
                changed.append((id, change))
        for id, change in changed:
            await self._have_examined(id, known.by_id.get(id), change)
        async with store.transaction() as transaction:
            if not await lease.renew(transaction):
                return
            keys = {id: MetadataKey(SHARED_ORG, CHANGE, id) for id, _ in changed}
            await transaction.put_metadata(
                [Metadata(keys[id], write_change(change)) for id, change in changed if change is not None]
            )
            await transaction.remove_metadata([keys[id] for id, change in changed if change is None])
            if changed:
                await count_write(transaction)
            await _remove_done(transaction, [record for record, _ in pairs])

    async def _take_items(self, store: Store, lease: Lease, pairs: Sequence[tuple[Metadata, Document | None]]) -> None:
        """Find and store the impacts on documents and the cases between them."""
        known, found = await self._changes.get(), list[tuple[Metadata, list[Impact]]]()
        disputes = [(record, await self._find_disputes(store, record, document)) for record, document in pairs]
        for record, document in pairs:
            # If there are no announcements, do not read the document: that would cost more than embedding it did.
            impacts = list[Impact]()
            if document is not None and _is_current(document) and known.by_id:
                await self.give_way()
                impacts = await anyio.to_thread.run_sync(find_impacts, known, document)
            found.append((record, impacts))
        async with store.transaction() as transaction:
            if not await lease.renew(transaction):
                return
            for record, impacts in found:
                value = record.value
                await put_impacts(transaction, record.key.org, str(value["toolset"]), str(value["id"]), impacts)
            for record, dispute in disputes:
                if dispute is not None:
                    place = str(record.value["toolset"]), str(record.value["id"])
                    await put_cases(transaction, record.key.org, *place, *dispute)
            await _remove_done(transaction, [record for record, _ in pairs])

    async def _find_disputes(
        self, store: Store, record: Metadata, document: Document | None
    ) -> tuple[list[Case], list[str]] | None:
        """Return the cases of a document and the ids of those it repeats; `None` if its toolset is not compared."""
        if record.value["toolset"] not in self.disputing:
            return None
        if document is None or not _is_current(document):
            return [], []
        terms = dict.fromkeys(analyse(f"{document.title}\n{document.body[:LOOKED_AT]}"))
        request = FindRequest(
            document.collection,
            text=TextQuery(tuple(term for term in terms if term not in get_stop_terms())[:MOST_TERMS]),
            where=InState((State.CURRENT,)),
            depth=COMPARED + 1,
            counts=False,
        )
        ids = [each.id for each in (await store.find(request)).candidates if each.id != document.id][:COMPARED]
        others = [each for each in await store.get_documents(document.collection, ids) if each is not None]
        return await self._compare(document, others)

    async def _compare(self, document: Document, others: Sequence[Document]) -> tuple[list[Case], list[str]]:
        """Return the cases of a document with others, and the ids of those it repeats."""
        mine, cases, repeats = await anyio.to_thread.run_sync(read_note, document), list[Case](), list[str]()
        for other in others:
            await self.give_way()
            case, is_same = await anyio.to_thread.run_sync(compare_with, mine, other)
            if case is not None:
                cases.append(case)
            elif is_same:
                repeats.append(other.id)
        return cases, repeats

    async def _have_examined(self, id: str, *changes: Change | None) -> None:
        """Have the documents examined that may rely on an announcement, and those that did before."""
        self._seen.clear()
        terms = list(dict.fromkeys(term for change in changes if change is not None for term in list_terms(change)))
        for store, collection in await self._list_relying():
            request = FindRequest(
                collection,
                text=TextQuery(tuple(terms[:MOST_TERMS])),
                where=InState((State.CURRENT,)),
                depth=CANDIDATES,
                counts=False,
            )
            ids = {candidate.id for candidate in (await store.find(request)).candidates} if terms else set[str]()
            reached = list_reached(await store.get_metadata(MetadataKey(collection.org, REACH, id)))
            ids |= {item.partition("/")[2] for item in reached if item.startswith(f"{collection.toolset}/")}
            await _put_pending(store, collection, sorted(ids))

    async def _list_relying(self) -> list[tuple[Store, Collection]]:
        return [
            (store, each)
            for store in self._list_stores()
            for each in sorted(await store.list_collections())
            if each.toolset in self.relying and self.stores[each.toolset] is store
        ]

    async def _is_all_noted(self, store: Store) -> bool:
        record = await store.get_metadata(_STATE_KEY)
        return record is not None and record.value["version"] == get_rules_version() and bool(record.value["done"])

    async def _note_page(self, store: Store) -> None:
        """Note that the next page of documents is to be examined, as all are once for each version of the rules."""
        async with store.transaction() as transaction:
            record = await transaction.get_metadata(_STATE_KEY)
            version = get_rules_version()
            after = record.value["after"] if record is not None and record.value["version"] == version else None
            org, toolset, id = cast("Sequence[str]", after) if after is not None else ("", "", "")
            entries = await store.list_documents((Collection(org, toolset), id) if after is not None else None, PAGE)
            meant = [
                each for each in entries if each[0].toolset in self.stores and self.stores[each[0].toolset] is store
            ]
            await transaction.put_metadata([_make_pending(collection, id) for collection, id in meant])
            last = entries[-1] if entries else None
            place: list[JsonValue] | None = [last[0].org, last[0].toolset, last[1]] if last is not None else None
            value: dict[str, JsonValue] = {"version": version, "after": place or after, "done": len(entries) < PAGE}
            await transaction.put_metadata([Metadata(_STATE_KEY, value)])


_STATE_KEY = MetadataKey(SHARED_ORG, STATE, "examined")


def get_rest(took: float, worked: float) -> float:
    """Return the seconds to rest after a batch, of which a part may have been spent waiting.

    A batch that waits, for a server of the store, for its disk or lock, or for calls that go first, keeps nobody else.

    Args:
        took: How long the batch took.
        worked: How long this process used a processor meanwhile, for whatever; it may be more than `took`.
    """
    return RESTS * min(took, worked)


def find_impacts(known: KnownChanges, document: Document) -> list[Impact]:
    """Return the impacts of all changes on a document, surest first."""
    found = known.find(list(read_passages(document.title, document.body)))
    return [make_impact(change, match, document) for change, match in found]


def compare_with(mine: Compared, other: Document) -> tuple[Case | None, bool]:
    """Return the case of a note with another or, if there is none, whether both say the same."""
    theirs = read_note(other)
    case = compare_notes(mine, theirs)
    return case, case is None and says_the_same(mine, theirs)


def list_terms(change: Change) -> list[str]:
    """Return terms for finding documents that may rely on a change, the most telling first."""
    names = [*change.identifiers, *change.phrases, *(size for name in change.series for size in list_sizes(name))]
    names += [f"{version.name} {version.number}" for version in change.versions]
    names += [name for product in sorted(change.products) for name in list_names(product)]
    terms = [*change.terms, *(term for name in names for term in analyse(name)), *change.counted]
    return [term for term in dict.fromkeys(terms) if term not in get_stop_terms()]


@cache
def get_rules_version() -> str:
    """Return a digest of the code of this package: when it changes, different impacts may be found."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_current(document: Document) -> bool:
    return document.state is State.CURRENT


def _make_pending(collection: Collection, id: str) -> Metadata:
    key = MetadataKey(collection.org, PENDING, f"{collection.toolset}/{id}")
    return Metadata(key, {"toolset": collection.toolset, "id": id, "text_digest": ""})


async def _put_pending(store: Store, collection: Collection, ids: Sequence[str]) -> None:
    if ids:
        async with store.transaction() as transaction:
            await transaction.put_metadata([_make_pending(collection, id) for id in ids])


async def _remove_done(transaction: Transaction, records: Iterable[Metadata]) -> None:
    """Remove the records of what was examined, except those written again meanwhile."""
    before = {record.key: record for record in records}
    now = await transaction.get_many_metadata(list(before))
    await transaction.remove_metadata(
        [record.key for record in now if record is not None and before[record.key] == record]
    )
