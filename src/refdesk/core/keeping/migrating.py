"""Migrates everything from one store to another, across engines: documents, versions, vectors, links, metadata.

Where toolsets are kept apart, each part of the source goes to the store that is to hold it. A single org may be moved
to a store that already has others. A migration resumes where it stopped: its progress is kept in the target, written
with each piece. What concerns only the old store, such as its leases, is left behind. At the end both stores are read
completely and compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from refdesk.core import keys
from refdesk.core.background import leases
from refdesk.core.background.failures import FAILURE_KIND
from refdesk.core.keeping import moves, store_id
from refdesk.core.keeping.contents import Contents, make_digest, summarise_document, tell, write_link, write_metadata
from refdesk.core.search.semantics import read_active
from refdesk.core.writing import quotas, sizes
from refdesk.errors import ConflictError, NotFoundError
from refdesk.model import SHARED_ORG, AuditEntry, Collection, Link, Metadata, MetadataKey, Reference, Revision, State

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.protocols import DocumentVectors, Store, Transaction

    Entry = TypeVar("Entry")

KIND = "migration"
POSITION = MetadataKey(SHARED_ORG, KIND, "position")
LEFT_BEHIND = frozenset({KIND, moves.KIND, leases.KIND})
PIECE = 200
"""Documents, links or records in one transaction."""

NO_TOOLSETS = frozenset({"", "task"})
"""The toolsets of references in links to something other than documents: things of the callers' own."""

Work: TypeAlias = Literal["moving", "building", "comparing"]
"""The steps that take long: writing the documents, building what the target derives from them, reading both stores."""

STAGES = ("documents", "links", "records", "acts", "done", "removing")

Settle: TypeAlias = "Callable[[Metadata, int], Metadata]"
"""Returns a record of an org as it is to be in the target, given the number of the last act of the shared org there."""


Finish: TypeAlias = "Callable[[Transaction], Awaitable[None]]"
"""Tells the target that records have arrived, in the transaction that completes them."""


def _stay(record: Metadata, _: int) -> Metadata:
    return record


async def _say_nothing(_: Transaction) -> None:
    return


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a store holds: that of some toolsets, or the rest. A link between both is in both parts.

    Attributes:
        toolsets: The toolsets.
        prefixes: Prefixes of the kinds of metadata that belong to them alone.
        quotas: The names of their quotas.
        is_rest: Whether everything except theirs is meant; this includes the audit log, which cannot be split.
        org: The only org that is meant; `None` for all orgs, including the shared one.
        settle: See `Settle`; used only for a single org.
        finish: See `Finish`.
        worked_on: Prefixes of the kinds of an org's records that a server of the target may work on as soon as they
            are there: they are not compared.
    """

    toolsets: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    quotas: frozenset[str] = frozenset()
    is_rest: bool = True
    org: str | None = None
    settle: Settle = _stay
    finish: Finish = _say_nothing
    worked_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What distinguishes it from other parts; empty for everything."""
        toolsets = "" if not self.toolsets else "rest" if self.is_rest else ",".join(sorted(self.toolsets))
        return "/".join(filter(None, (f"org {self.org}" if self.org is not None else "", toolsets)))

    @property
    def position_key(self) -> MetadataKey:
        """Where the target keeps the progress: one record for whole stores, and one for each org moved alone."""
        return POSITION if self.org is None else replace(POSITION, name=f"{POSITION.name} of {self.org}")

    def has_org(self, org: str) -> bool:
        """Return whether anything of an org may be in it."""
        return self.org in (None, org)

    def has_document(self, collection: Collection) -> bool:
        """Return whether the documents of a collection are in it."""
        return self.has_org(collection.org) and (collection.toolset in self.toolsets) is not self.is_rest

    def has_link(self, link: Link) -> bool:
        """Return whether a link is in it, which holds if either of its ends is."""
        ends = {link.source.toolset, link.target.toolset}
        is_theirs = not ends.isdisjoint(self.toolsets)
        is_meant = bool(ends - self.toolsets - NO_TOOLSETS) or not is_theirs if self.is_rest else is_theirs
        return self.has_org(link.org) and is_meant

    def has_record(self, record: Metadata) -> bool:
        """Return whether a record is in it. Sizes counted for a whole store do not hold for a part: they are recounted.

        An org's keys are kept in the shared org, with those of all others.
        """
        key, is_whole = record.key, self.org is None and not self.toolsets
        org = record.value.get("org") if key.org == SHARED_ORG and key.kind == keys.KIND else key.org
        if key.kind in LEFT_BEHIND or (key.kind == sizes.KIND and not is_whole) or not self.has_org(str(org)):
            return False
        is_quota = key.kind == quotas.KIND and key.name.partition(":")[0] in self.quotas
        is_theirs = is_quota or key.kind.startswith(self.prefixes) or key.name.partition("/")[0] in self.toolsets
        return is_theirs is not self.is_rest

    def takes_record(self, record: Metadata) -> bool:
        """Return whether a record is to be in the target as well: a server there finds out itself what fails there."""
        return self.has_record(record) and (self.org is None or record.key.kind != FAILURE_KIND)

    def compares_record(self, record: Metadata) -> bool:
        """Return whether a record must in the end be the same in the target."""
        return self.takes_record(record) and not (self.worked_on and record.key.kind.startswith(self.worked_on))


EVERYTHING = Part()


@dataclass(frozen=True, slots=True)
class Position:
    """The progress of a migration: the stage that it is at, and the last entry that was moved in it."""

    source: str
    key: MetadataKey
    stage: str = STAGES[0]
    after: tuple[str, ...] | None = None

    def move_to(self, stage: str, after: tuple[str, ...] | None = None) -> Position:
        """Return the position in a stage, after an entry of it."""
        return replace(self, stage=stage, after=after)

    def to_record(self) -> Metadata:
        """Return it as the target keeps it."""
        value: dict[str, JsonValue] = {"source": self.source, "stage": self.stage}
        return Metadata(self.key, value | {"after": None if self.after is None else list(self.after)})


async def migrate(
    source: Store,
    target: Store,
    name: str,
    note: Callable[[int], None] = lambda _: None,
    begin: Callable[[Work], None] = lambda _: None,
    part: Part = EVERYTHING,
) -> Contents:
    """Migrate a store, or a part of it, and return what the target holds of it afterwards.

    Args:
        source: Nobody may write to it, or to that part of it, meanwhile.
        target: Empty, or without anything of the org, or where an earlier migration from this source stopped.
        name: Distinguishes one source from another.
        note: Called with how many more documents were written or, while comparing, read.
        begin: Called when a further step of the work begins.
        part: The part of the source that is moved.

    Raises:
        ConflictError: The target holds something else, or in the end not the same as the source.
        NotFoundError: The source has nothing of the org that is to be moved alone.
    """
    stage = await copy(source, target, name, note, begin, part)
    begin("comparing")
    if stage == "removing":
        return await summarise(target, note, part)
    # A server of the target may embed what arrives, and removes vectors that it does not search by.
    others = (None, None) if part.org is None else (target, source)
    held = await summarise(source, note, part, others[0])
    moved = await summarise(target, note, part, others[1])
    if held != moved:
        raise ConflictError(_DIFFERS[part.org is not None].format(tell(moved), tell(held)))
    return moved


async def copy(
    source: Store,
    target: Store,
    name: str,
    note: Callable[[int], None] = lambda _: None,
    begin: Callable[[Work], None] = lambda _: None,
    part: Part = EVERYTHING,
) -> str:
    """Do the same without comparing; return the stage at which it began."""
    position = await require_fit(source, target, name, part)
    stage = position.stage
    if position.stage == "documents":
        begin("moving")
        if part.org is None and part.is_rest:
            await store_id.forget_store_id(target)
        async with AsyncExitStack() as stack:
            if part.org is None:
                # Other orgs in the target would have to wait for the work that a load leaves for its end.
                await stack.enter_async_context(target.loading())
            await _move_documents(source, target, position, part, note)
            begin("building")
        position = position.move_to("links")
    if position.stage == "links":
        await _move_links(source, target, position, part)
        position = position.move_to("records")
    if position.stage == "records":
        await _move_records(source, target, position, part)
        position = position.move_to("acts")
    if position.stage == "acts":
        await _move_acts(source, target, position, part)
    return stage


_DIFFERS = {
    False: "The target holds {}, the source {}. Stop whatever writes to either of them, empty the target and start "
    "again.",
    True: "The target holds of the org {}, the source {}. Stop whatever writes as that org to either of them, erase "
    "it from the target, whose other orgs are as they were, and move it to another store or a new one.",
}


async def summarise(
    store: Store, note: Callable[[int], None] = lambda _: None, part: Part = EVERYTHING, other: Store | None = None
) -> Contents:
    """Return what a store holds of a part, without what is not migrated.

    Args:
        store: The store.
        note: Called with how many more documents were read.
        part: What is meant.
        other: Vectors count only where this store has some of the same model for the document, too.
    """
    total = Contents()
    async for places in read_all(store.list_documents, None):
        meant = [each for each in places if part.has_document(each[0])]
        pieces = await read_documents(store, meant)
        theirs = await read_documents(other, meant) if other is not None else pieces
        for (history, vectors), (_, others) in zip(pieces, theirs, strict=True):
            shared = {model for model, _ in others}
            total = total.add(summarise_document(history, [each for each in vectors if each[0] in shared]))
        note(len(places))
    async for every in read_all(store.list_links, None):
        links = [link for link in every if part.has_link(link)]
        total = total.add(Contents(links=len(links), digest=sum(make_digest(write_link(link)) for link in links)))
    async for records in read_all_records(store, None):
        kept = [write_metadata(part.settle(record, 0)) for record in records if part.compares_record(record)]
        total = total.add(Contents(records=len(kept), digest=sum(map(make_digest, kept))))
    async for acts in _read_acts(store, part):
        total = total.add(
            Contents(acts=len(acts), digest=sum(make_digest([act.org, act.number, act.digest]) for act in acts))
        )
    return total


async def require_fit(source: Store, target: Store, name: str, part: Part = EVERYTHING) -> Position:
    """Return the progress of migrating a part; errors as in `migrate`, before anything is written."""
    for store in (source, target):
        if (move := await moves.read_move(store)) is not None and (store is target or move.stage == "switched"):
            raise ConflictError("A store that was moved while it served, or is being moved, takes no part in another.")
    name = f"{name}/{part.name}" if part.name else name
    record = await target.get_metadata(part.position_key)
    if record is None:
        if part.org is not None:
            await _require_alone(source, target, part)
        elif await target.list_documents(None, 1) or await target.list_links(None, 1):
            raise ConflictError("The target is not empty: give one that holds nothing yet.")
        elif await _holds_others(source, target, part):
            raise ConflictError(
                "The target is not empty: it has keys, an audit log or other records that the source lacks. Give one "
                "that holds nothing yet."
            )
        return Position(name, part.position_key)
    if record.value["source"] != name:
        raise ConflictError("The target holds a migration from another source: give one that holds nothing yet.")
    after = record.value["after"]
    entries = tuple(str(part) for part in after) if isinstance(after, list) else None
    return Position(name, part.position_key, str(record.value["stage"]), entries)


async def is_from_elsewhere(store: Store, org: str) -> bool:
    """Return whether what a store holds of an org was moved there from another store, with everything or alone."""
    places = POSITION, Part(org=org).position_key
    return any(record is not None for record in await store.get_many_metadata(places))


async def read_removing(target: Store, part: Part) -> str | None:
    """Return the end of the source's log when removing the compared part began; `None` if it has not begun."""
    record = await target.get_metadata(part.position_key)
    return str(record.value["end"]) if record is not None and record.value["stage"] == "removing" else None


async def note_removing(target: Store, part: Part, end: str, *, is_through: bool = False) -> None:
    """Record in the target that both were compared and the part is being removed from the source, whose log ends so.

    Args:
        target: Where the part was moved to.
        part: What was moved.
        end: The end of the source's log when both were compared.
        is_through: Whether it has been removed.
    """
    async with target.transaction() as transaction:
        record = await transaction.get_metadata(part.position_key)
        assert record is not None
        value = {**record.value, "stage": "removing", "end": end, "is_through": is_through}
        await transaction.put_metadata([replace(record, value=value)])


async def _require_alone(source: Store, target: Store, part: Part) -> None:
    """Check that the source has something of an org and the target has nothing."""
    if not await holds_any(source, part):
        raise NotFoundError(f"The source has nothing of the org {part.org}: check its name, which must be exact.")
    if await holds_any(target, replace(part, toolsets=frozenset(), is_rest=True)):
        raise ConflictError(
            f"The target has something of the org {part.org} already, if only a tombstone, a key or its audit log: two "
            "stores' parts of one org cannot become one. Nothing was written. Give a store that never had it."
        )


async def _holds_others(source: Store, target: Store, part: Part) -> bool:
    """Return whether the target has acts, or records that the source lacks and so would not replace."""
    if part.is_rest and await target.list_audited_orgs():
        return True
    async for records in read_all_records(target, None):
        keys = [record.key for record in records if part.has_record(record) and record.key != store_id.KEY]
        if None in await source.get_many_metadata(keys):
            return True
    return False


async def holds_any(store: Store, part: Part) -> bool:
    """Return whether a store has anything of a part, if only a tombstone."""
    if part.is_rest and part.org in await store.list_audited_orgs():
        return True
    async for places in read_all(store.list_documents, None):
        if any(part.has_document(collection) for collection, _ in places):
            return True
    async for links in read_all(store.list_links, None):
        if any(map(part.has_link, links)):
            return True
    async for records in read_all_records(store, None):
        if any(map(part.has_record, records)):
            return True
    return False


async def _move_documents(
    source: Store, target: Store, position: Position, part: Part, note: Callable[[int], None]
) -> None:
    after = None if position.after is None else (Collection(position.after[0], position.after[1]), position.after[2])
    # Whoever serves the others searches by one model: vectors of another would be of no use to anybody there.
    searched = await read_active(target) if part.org is not None else None
    async for places in read_all(source.list_documents, after):
        pieces = await read_documents(source, [place for place in places if part.has_document(place[0])])
        async with target.transaction() as transaction:
            living = [history for history, _ in pieces if history[0].document.version == 1]
            await transaction.put_revisions([revision for history in living for revision in history])
            # The history of an erased document begins with its tombstone.
            erased = [history for history, _ in pieces if history[0].document.version > 1]
            await transaction.erase_documents([history[0].document for history in erased])
            await transaction.put_revisions([revision for history in erased for revision in history[1:]])
            chosen = [
                (history[-1].document, [each for each in vectors if searched in (None, each[0])])
                for history, vectors in pieces
            ]
            await transaction.put_all_vectors(chosen)
            last, id = places[-1]
            position = position.move_to("documents", (last.org, last.toolset, id))
            await transaction.put_metadata([position.to_record()])
        note(len(places))


async def read_documents(
    store: Store, places: Sequence[tuple[Collection, str]]
) -> list[tuple[list[Revision], DocumentVectors]]:
    """Return every version of each document, and its vectors; a withdrawn document has none, as stores accept none.

    A document that is not there has no versions.
    """
    pieces: list[tuple[list[Revision], DocumentVectors]] = []
    for collection, together in groupby(places, itemgetter(0)):
        ids = [id for _, id in together]
        histories, vectors = await store.get_histories(collection, ids), await store.get_vectors(collection, ids)
        for history, kept in zip(histories, vectors, strict=True):
            is_there = bool(history) and history[-1].document.state is not State.WITHDRAWN
            pieces.append((history, kept if is_there else []))
    return pieces


async def _move_links(source: Store, target: Store, position: Position, part: Part) -> None:
    after = None if position.after is None else _read_link(position.after)
    async for links in read_all(source.list_links, after):
        async with target.transaction() as transaction:
            await transaction.put_links([link for link in links if part.has_link(link)])
            await transaction.put_metadata([position.move_to("links", write_link(links[-1])).to_record()])


async def _move_records(source: Store, target: Store, position: Position, part: Part) -> None:
    after = None if position.after is None else MetadataKey(*position.after)
    shared = await target.get_last_audit(SHARED_ORG)
    end = shared.number if shared is not None else 0
    async for records in read_all_records(source, after):
        async with target.transaction() as transaction:
            await transaction.put_metadata(
                [part.settle(record, end) for record in records if part.takes_record(record)]
            )
            last = records[-1].key
            await transaction.put_metadata([position.move_to("records", (last.org, last.kind, last.name)).to_record()])
    if part.org is not None:
        await sizes.measure_again(target, part.org)
    async with target.transaction() as transaction:
        await part.finish(transaction)
        await transaction.put_metadata([position.move_to("acts").to_record()])


async def _move_acts(source: Store, target: Store, position: Position, part: Part) -> None:
    for org in await _list_audited(source, part):
        last = await target.get_last_audit(org)
        after = last.number if last is not None else 0
        while acts := await source.get_audit(org, after, PIECE):
            async with target.transaction() as transaction:
                await transaction.put_audit(acts)
            after = acts[-1].number
    async with target.transaction() as transaction:
        await transaction.put_metadata([position.move_to("done").to_record()])


async def _list_audited(store: Store, part: Part) -> list[str]:
    return [org for org in await store.list_audited_orgs() if part.is_rest and part.has_org(org)]


async def read_all(
    list_entries: Callable[[Entry | None, int], Awaitable[list[Entry]]], after: Entry | None
) -> AsyncIterator[list[Entry]]:
    """Yield everything that a list method of `Archive` returns, piece by piece."""
    while entries := await list_entries(after, PIECE):
        yield entries
        after = entries[-1]


async def read_all_records(store: Store, after: MetadataKey | None) -> AsyncIterator[list[Metadata]]:
    """Yield the records of a store, piece by piece."""
    while records := await store.list_all_metadata(after, PIECE):
        yield records
        after = records[-1].key


async def _read_acts(store: Store, part: Part) -> AsyncIterator[list[AuditEntry]]:
    for org in await _list_audited(store, part):
        after = 0
        while acts := await store.get_audit(org, after, PIECE):
            yield acts
            after = acts[-1].number


def _read_link(parts: Sequence[str]) -> Link:
    org, source_toolset, source, kind, target_toolset, target, created_at = parts
    ends = Reference(source_toolset, source), Reference(target_toolset, target)
    return Link(org, ends[0], kind, ends[1], datetime.fromisoformat(created_at))
