"""Migrates everything from one store to another, across engines: documents, versions, vectors, links, metadata.

Where toolsets are kept apart, each part of the source goes to the store that is to hold it. It resumes where it
stopped: its progress is kept in the target, written with each piece. What belongs to the old place alone, its leases,
is left behind. At the end both stores are read whole and compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from refdesk.core.background import leases
from refdesk.core.writing import quotas, sizes
from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import ConflictError
from refdesk.model import SHARED_ORG, AuditEntry, Collection, Link, Metadata, MetadataKey, Reference, Revision, State

if TYPE_CHECKING:
    from refdesk.model import EmbeddedPassage, EmbeddingModel, JsonValue
    from refdesk.protocols import DocumentVectors, Store

    Entry = TypeVar("Entry")

KIND = "migration"
POSITION = MetadataKey(SHARED_ORG, KIND, "position")
LEFT_BEHIND = frozenset({KIND, leases.KIND})
PIECE = 200
"""Documents, links or records in one transaction."""

NO_TOOLSETS = frozenset({"", "task"})
"""What links name beside documents: things of the callers' own."""

Work: TypeAlias = Literal["moving", "building", "comparing"]
"""What takes its time: writing the documents, what the target makes of them at the end, reading both stores."""

STAGES = ("documents", "links", "records", "acts", "done")
_DIGESTS = 2**128


@dataclass(frozen=True, slots=True)
class Contents:
    """How much there is of each, and one number that depends on all of it and not on its order."""

    documents: int = 0
    versions: int = 0
    vectors: int = 0
    links: int = 0
    records: int = 0
    acts: int = 0
    digest: int = 0

    def add(self, other: Contents) -> Contents:
        """Return both together."""
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Contents(**{**sums, "digest": sums["digest"] % _DIGESTS})


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a store holds: what is of some toolsets, or the rest of it. A link between both is in both.

    Attributes:
        toolsets: Which toolsets.
        prefixes: What the kinds of metadata begin with that are theirs alone.
        quotas: The names of their quotas.
        is_rest: Whether all but theirs is meant; then the audit log belongs to it, which cannot be split.
    """

    toolsets: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    quotas: frozenset[str] = frozenset()
    is_rest: bool = True

    @property
    def name(self) -> str:
        """What tells it from the other part; empty for everything."""
        return "" if not self.toolsets else "rest" if self.is_rest else ",".join(sorted(self.toolsets))

    def has_document(self, collection: Collection) -> bool:
        """Return whether the documents of a collection are in it."""
        return (collection.toolset in self.toolsets) is not self.is_rest

    def has_link(self, link: Link) -> bool:
        """Return whether a link is in it: with any of its ends."""
        ends = {link.source.toolset, link.target.toolset}
        is_theirs = not ends.isdisjoint(self.toolsets)
        return bool(ends - self.toolsets - NO_TOOLSETS) or not is_theirs if self.is_rest else is_theirs

    def has_record(self, key: MetadataKey) -> bool:
        """Return whether a record is in it. What is counted of a whole store holds for no part, and is counted anew."""
        if key.kind in LEFT_BEHIND or (self.toolsets and key.kind == sizes.KIND):
            return False
        is_quota = key.kind == quotas.KIND and key.name.partition(":")[0] in self.quotas
        is_theirs = is_quota or key.kind.startswith(self.prefixes) or key.name.partition("/")[0] in self.toolsets
        return is_theirs is not self.is_rest


EVERYTHING = Part()


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a migration is: the stage that it is at, and the last entry of it that was moved."""

    source: str
    stage: str = STAGES[0]
    after: tuple[str, ...] | None = None

    def to_record(self) -> Metadata:
        value: dict[str, JsonValue] = {"source": self.source, "stage": self.stage}
        return Metadata(POSITION, value | {"after": None if self.after is None else list(self.after)})


async def migrate(
    source: Store,
    target: Store,
    name: str,
    note: Callable[[int], None] = lambda _: None,
    begin: Callable[[Work], None] = lambda _: None,
    part: Part = EVERYTHING,
) -> Contents:
    """Return what the target holds now, which is what the source holds, or a part of it.

    Args:
        source: Nobody may write to it meanwhile.
        target: Empty, or where an earlier migration from this source stopped.
        name: Tells one source from another.
        note: Told how many more documents were written, or when all is compared, read.
        begin: Told when something else begins.
        part: What of the source is moved.

    Raises:
        ConflictError: The target holds something else, or in the end not what the source holds.
    """
    name = f"{name}/{part.name}" if part.name else name
    position = await _find_position(target, name)
    if position.stage == "documents":
        begin("moving")
        async with target.loading():
            await _move_documents(source, target, position, part, note)
            begin("building")
        position = _Position(name, "links")
    if position.stage == "links":
        await _move_links(source, target, position, part)
        position = _Position(name, "records")
    if position.stage == "records":
        await _move_records(source, target, position, part)
        position = _Position(name, "acts")
    if position.stage == "acts":
        await _move_acts(source, target, name, part)
    begin("comparing")
    held, moved = await summarise(source, note, part), await summarise(target, note, part)
    if held != moved:
        raise ConflictError(
            f"The target holds {_tell(moved)}, the source {_tell(held)}. Stop whatever writes to either of them, empty "
            "the target and start again."
        )
    return moved


async def summarise(store: Store, note: Callable[[int], None] = lambda _: None, part: Part = EVERYTHING) -> Contents:
    """Return what a store holds of a part, without what is not migrated; `note` hears how many documents were read."""
    total = Contents()
    async for keys in _read(store.list_documents, None):
        for history, vectors in await _read_documents(store, [key for key in keys if part.has_document(key[0])]):
            total = total.add(_summarise_document(history, vectors))
        note(len(keys))
    async for every in _read(store.list_links, None):
        links = [link for link in every if part.has_link(link)]
        total = total.add(Contents(links=len(links), digest=sum(_hash(_write_link(link)) for link in links)))
    async for records in _read_records(store, None):
        kept = [record for record in records if part.has_record(record.key)]
        total = total.add(Contents(records=len(kept), digest=sum(_hash(_write_metadata(record)) for record in kept)))
    async for acts in _read_acts(store, part):
        total = total.add(
            Contents(acts=len(acts), digest=sum(_hash([act.org, act.number, act.digest]) for act in acts))
        )
    return total


async def _find_position(target: Store, name: str) -> _Position:
    record = await target.get_metadata(POSITION)
    if record is None:
        if await target.list_documents(None, 1) or await target.list_links(None, 1):
            raise ConflictError("The target is not empty: give one that holds nothing yet.")
        return _Position(name)
    if record.value["source"] != name:
        raise ConflictError("The target holds a migration from another source: give one that holds nothing yet.")
    after = record.value["after"]
    entries = tuple(str(part) for part in after) if isinstance(after, list) else None
    return _Position(name, str(record.value["stage"]), entries)


async def _move_documents(
    source: Store, target: Store, position: _Position, part: Part, note: Callable[[int], None]
) -> None:
    after = None if position.after is None else (Collection(position.after[0], position.after[1]), position.after[2])
    async for keys in _read(source.list_documents, after):
        pieces = await _read_documents(source, [key for key in keys if part.has_document(key[0])])
        async with target.transaction() as transaction:
            living = [history for history, _ in pieces if history[0].document.version == 1]
            await transaction.put_revisions([revision for history in living for revision in history])
            # The history of what was erased begins where it was.
            await transaction.erase_documents(
                [history[-1].document for history, _ in pieces if history[0].document.version > 1]
            )
            await transaction.put_all_vectors([(history[-1].document, vectors) for history, vectors in pieces])
            last, id = keys[-1]
            position = _Position(position.source, "documents", (last.org, last.toolset, id))
            await transaction.put_metadata([position.to_record()])
        note(len(keys))


async def _read_documents(
    store: Store, keys: Sequence[tuple[Collection, str]]
) -> list[tuple[list[Revision], DocumentVectors]]:
    """Return every version of each document, and its vectors; of one that is withdrawn none, for it takes none."""
    pieces: list[tuple[list[Revision], DocumentVectors]] = []
    for collection, together in groupby(keys, itemgetter(0)):
        ids = [id for _, id in together]
        histories, vectors = await store.get_histories(collection, ids), await store.get_vectors(collection, ids)
        for history, kept in zip(histories, vectors, strict=True):
            pieces.append((history, [] if history[-1].document.state is State.WITHDRAWN else kept))
    return pieces


async def _move_links(source: Store, target: Store, position: _Position, part: Part) -> None:
    after = None if position.after is None else _read_link(position.after)
    async for links in _read(source.list_links, after):
        async with target.transaction() as transaction:
            await transaction.put_links([link for link in links if part.has_link(link)])
            await transaction.put_metadata([_Position(position.source, "links", _write_link(links[-1])).to_record()])


async def _move_records(source: Store, target: Store, position: _Position, part: Part) -> None:
    after = None if position.after is None else MetadataKey(*position.after)
    async for records in _read_records(source, after):
        async with target.transaction() as transaction:
            await transaction.put_metadata([record for record in records if part.has_record(record.key)])
            last = records[-1].key
            reached = _Position(position.source, "records", (last.org, last.kind, last.name))
            await transaction.put_metadata([reached.to_record()])
    async with target.transaction() as transaction:
        await transaction.put_metadata([_Position(position.source, "acts").to_record()])


async def _move_acts(source: Store, target: Store, name: str, part: Part) -> None:
    for org in await source.list_audited_orgs() if part.is_rest else []:
        last = await target.get_last_audit(org)
        after = last.number if last is not None else 0
        while acts := await source.get_audit(org, after, PIECE):
            async with target.transaction() as transaction:
                await transaction.put_audit(acts)
            after = acts[-1].number
    async with target.transaction() as transaction:
        await transaction.put_metadata([_Position(name, "done").to_record()])


async def _read(
    list_entries: Callable[[Entry | None, int], Awaitable[list[Entry]]], after: Entry | None
) -> AsyncIterator[list[Entry]]:
    while entries := await list_entries(after, PIECE):
        yield entries
        after = entries[-1]


async def _read_records(store: Store, after: MetadataKey | None) -> AsyncIterator[list[Metadata]]:
    while records := await store.list_all_metadata(after, PIECE):
        yield records
        after = records[-1].key


async def _read_acts(store: Store, part: Part) -> AsyncIterator[list[AuditEntry]]:
    for org in await store.list_audited_orgs() if part.is_rest else []:
        after = 0
        while acts := await store.get_audit(org, after, PIECE):
            yield acts
            after = acts[-1].number


def _summarise_document(history: Sequence[Revision], vectors: DocumentVectors) -> Contents:
    document = history[-1].document
    place = [document.collection.org, document.collection.toolset]
    digest = sum(_hash([*place, each.document.digest, each.document.version, _stamp(each)]) for each in history)
    digest += sum(_hash([*place, document.id, *_write_vectors(*each)]) for each in vectors)
    return Contents(1, len(history), sum(len(passages) for _, passages in vectors), digest=digest)


def _stamp(revision: Revision) -> str:
    # A tombstone is recorded anew where it is moved to; when it was erased is in it.
    return "" if is_erased(revision.document) else revision.recorded_at.isoformat()


def _write_vectors(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[object]:
    pieces = [[each.start, each.end, each.vector.astype(np.float16).tobytes().hex()] for each in passages]
    return [model.name, model.dimensions, sorted(pieces, key=str)]


def _write_link(link: Link) -> tuple[str, ...]:
    ends = (link.source.toolset, link.source.id, link.kind, link.target.toolset, link.target.id)
    return (link.org, *ends, link.created_at.isoformat())


def _read_link(parts: Sequence[str]) -> Link:
    org, source_toolset, source, kind, target_toolset, target, created_at = parts
    ends = Reference(source_toolset, source), Reference(target_toolset, target)
    return Link(org, ends[0], kind, ends[1], datetime.fromisoformat(created_at))


def _write_metadata(record: Metadata) -> list[object]:
    key = record.key
    return [key.org, key.kind, key.name, record.value, None if record.due_at is None else record.due_at.isoformat()]


def _hash(value: object) -> int:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def _tell(contents: Contents) -> str:
    numbers = {name: value for name, value in asdict(contents).items() if name != "digest"}
    return ", ".join(f"{value} {name}" for name, value in numbers.items()) + f" ({contents.digest:032x})"
