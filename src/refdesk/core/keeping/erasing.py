"""Erases one document, all that an agent wrote, or all of an org, with every version, and keeps it from coming back.

Documents are erased in transactions of many, each with its record in the audit log. If erasing stops half way, running
it again continues. At the end the store overwrites what is left in its files, as far as its engine can.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from refdesk.core import keys
from refdesk.core.writing import audit, idempotency, quotas, supersession
from refdesk.core.writing.tombstones import is_erased, make_barrier, make_tombstone
from refdesk.errors import NotFoundError, StoreError
from refdesk.model import SHARED_ORG, Collection, Reference

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.writing.audit import Actor
    from refdesk.model import Document, JsonValue, Link, Metadata, MetadataKey
    from refdesk.protocols import Clock, EmbeddingJob, Store, Transaction

ACTION = "erase"
PIECE = 100
"""Documents erased in one transaction."""

PAGE = 1000
_NOTHING = (
    "There is nothing to erase: no such entry, or nothing of that agent or org. Check the name, which must be exact."
)
WRITER = "agent"
"""The field of a record that names the agent it belongs to, with which it is erased. Kinds whose records have the agent
in their name have no such field."""

JUDGE = "by"
"""The field, at any depth, that names who made a judgement; with that agent, its name and its words are erased. Each
kind of record that holds who wrote something has one of these two fields, or has the agent in its name."""

ERASED_JUDGE = "judge_erased"
"""The field that says so where one of them was erased: nobody takes the judgement for refdesk's own."""

_SAID = (JUDGE, "reason", "note")
CHAIN = (supersession.SUPERSEDED_BY, supersession.HEAD)


@dataclass(frozen=True, slots=True)
class Erasable:
    """What is to be erased in an org: one entry, all that an agent wrote, or everything if neither is given."""

    org: str
    entry: str | None = None
    agent: str | None = None

    @property
    def is_whole_org(self) -> bool:
        """Whether everything is meant."""
        return self.entry is None and self.agent is None


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased from a store.

    Attributes:
        documents: The ids, by collection.
        records: The bookkeeping records that were erased with them.
        is_scrubbed: Whether nothing is left in the engine's own files either, nor in what processes share.
    """

    documents: dict[Collection, list[str]] = field(default_factory=dict[Collection, list[str]])
    records: list[MetadataKey] = field(default_factory=list["MetadataKey"])
    is_scrubbed: bool = True

    @property
    def count(self) -> int:
        """How many documents."""
        return sum(len(ids) for ids in self.documents.values())


async def find(store: Store, wanted: Erasable) -> dict[Collection, list[str]]:
    """Return the ids of the documents that would be erased, by collection, without tombstones."""
    found: dict[Collection, list[str]] = {}
    async for collection, ids in _list_documents(store, wanted.org):
        asked = [id for id in ids if wanted.entry in (None, id)]
        for history in await store.get_histories(collection, asked) if asked else []:
            document, authors = history[-1].document, {each.document.author for each in history}
            if not is_erased(document) and wanted.agent in (None, *authors):
                found.setdefault(collection, []).append(document.id)
    return found


async def erase(store: Store, clock: Clock, actor: Actor, wanted: Erasable) -> Erased:
    """Erase what is wanted from a store, with the records that tell of it, and return what was erased.

    Raises:
        NotFoundError: There is no such entry, or nothing of the agent or the org.
        StoreError: The store failed; what earlier transactions erased is erased.
    """
    found = await find(store, wanted)
    # An entry that was erased before may have left something behind, because of a kill half way or a late write.
    ids = {id for each in found.values() for id in each} | {id for id in (wanted.entry,) if id is not None}
    records = [record async for record in _list_records(store, wanted, ids)]
    judged = [record async for record in _list_judged(store, wanted)]
    if not found and not records and not judged:
        raise NotFoundError(_NOTHING)
    for collection, there in found.items():
        for start in range(0, len(there), PIECE):
            await _erase_piece(store, clock, actor, collection, there[start : start + PIECE], records)
    # What was added between reading and erasing goes too; nothing can be added for what has been erased.
    left = [record async for record in _list_records(store, wanted, ids)]
    judged += [record async for record in _list_judged(store, wanted)]
    await _redact(store, wanted, list(dict.fromkeys(judged)))
    every = list(dict.fromkeys([*records, *left]))
    await _erase_records(store, clock, actor, wanted, left, len({*every, *judged}))
    return Erased(found, every, await _scrub(store))


async def erase_everywhere(bases: Sequence[KnowledgeBase], actor: Actor, wanted: Erasable) -> Erased:
    """Erase from each of several stores, and from the queue and the scratchpad that their processes share.

    Errors as in `erase`, except that it is enough if one of the stores has something to erase.
    """
    results: list[Erased] = []
    is_forgotten: list[bool] = []
    for base in bases:
        with suppress(NotFoundError):
            erased = await erase(base.store, base.clock, actor, wanted)
            results.append(erased)
            # If a later store fails, the command that is given again finds nothing here that it could forget.
            is_forgotten += [await _forget(each, wanted, erased) for each in bases]
    if not results:
        raise NotFoundError(_NOTHING)
    documents = {collection: ids for result in results for collection, ids in result.documents.items()}
    records = [record for result in results for record in result.records]
    return Erased(documents, records, all(is_forgotten) and all(each.is_scrubbed for each in results))


async def _forget(base: KnowledgeBase, wanted: Erasable, done: Erased) -> bool:
    """Delete jobs and notes of answers that processes share; return whether none of those jobs is left."""
    erased = {(collection, id) for collection, ids in done.documents.items() for id in ids}

    def is_meant(job: EmbeddingJob) -> bool:
        in_org = wanted.is_whole_org and job.org == wanted.org
        return in_org or (Collection(job.org, job.toolset), job.id) in erased

    if base.scratchpad is not None:
        for record in done.records:
            if record.kind == idempotency.KIND:
                await base.scratchpad.remove(idempotency.find_note_key(record))
    return base.queue is None or await base.queue.forget(is_meant)


@asynccontextmanager
async def erasing(store: Store) -> AsyncGenerator[Transaction, None]:
    """Open a transaction of which nothing that it removes or replaces may stay behind, even after a kill."""
    async with store.transaction() as transaction:
        await transaction.leave_no_trace()
        yield transaction


async def list_tombstones(store: Store) -> AsyncIterator[tuple[Collection, str]]:
    """Yield collection and id of everything that was erased: an earlier copy of the store must not bring it back."""
    async for collection, ids in _list_documents(store, None):
        for document in await store.get_documents(collection, ids):
            if document is not None and is_erased(document):
                yield collection, document.id


async def keep_erased(store: Store, clock: Clock, tombstones: Sequence[tuple[Collection, str]]) -> int:
    """Erase from a store what was erased elsewhere, and keep it from being added; return how many documents it had.

    Meant for a copy from an earlier time, before anybody may read it, with the `list_tombstones` of the store that it
    is to replace. Records that tell of what was erased go too. Doing it again changes nothing.
    """
    count = records = 0
    for collection, group in groupby(sorted(tombstones), key=itemgetter(0)):
        ids = [id for _, id in group]
        for start in range(0, len(ids), PIECE):
            count += await _keep_piece_erased(store, clock, collection, ids[start : start + PIECE])
    for org in sorted({collection.org for collection, _ in tombstones}):
        records += await _remove_records(store, org, {id for collection, id in tombstones if collection.org == org})
    if count or records:
        await _scrub(store)
    return count


async def _remove_records(store: Store, org: str, ids: set[str]) -> int:
    records = [record async for record in _list_records(store, Erasable(org, entry=min(ids)), ids)]
    for start in range(0, len(records), PAGE):
        async with erasing(store) as transaction:
            await transaction.remove_metadata(records[start : start + PAGE])
    return len(records)


async def _keep_piece_erased(store: Store, clock: Clock, collection: Collection, ids: Sequence[str]) -> int:
    actor = audit.Actor(collection.org, "refdesk", "server")
    async with erasing(store) as transaction:
        documents = await transaction.get_documents(collection, ids)
        there = [document for document in documents if document is not None and not is_erased(document)]
        missing = [id for id, document in zip(ids, documents, strict=True) if document is None]
        now = clock.now()
        await transaction.erase_documents([make_barrier(collection, id, now) for id in missing])
        await bury(transaction, there, now)
        if there:
            records = [audit.describe(document, "erased") for document in there]
            act = audit.make_act(actor, ACTION, records, {"again": True})
            await audit.append(transaction, collection.org, now, act)
    return len(there)


async def _erase_piece(
    store: Store,
    clock: Clock,
    actor: Actor,
    collection: Collection,
    ids: Sequence[str],
    records: Sequence[MetadataKey],
) -> None:
    """Erase some documents together with the records that name them, so that a kill leaves both or neither."""
    of_them = [key for key in records if key.kind != supersession.KIND and _names(key.name, set(ids))]
    async with erasing(store) as transaction:
        documents = await transaction.get_documents(collection, ids)
        there = [document for document in documents if document is not None and not is_erased(document)]
        now = clock.now()
        await bury(transaction, there, now)
        await transaction.remove_metadata(of_them)
        if there:
            described = [audit.describe(document, "erased") for document in there]
            await audit.append(transaction, collection.org, now, audit.make_act(actor, ACTION, described))


async def bury(transaction: Transaction, documents: Sequence[Document], now: datetime) -> None:
    """Put tombstones in place of documents, and remove the links that told of them."""
    links: list[Link] = []
    for document in documents:
        reference = Reference(document.collection.toolset, document.id)
        found = await transaction.get_links(document.collection.org, reference)
        links += [link for link in found if link.kind != supersession.SUPERSEDES]
    await transaction.remove_links(links)
    await transaction.erase_documents([make_tombstone(document, now, CHAIN) for document in documents])


async def _erase_records(
    store: Store, clock: Clock, actor: Actor, wanted: Erasable, records: Sequence[MetadataKey], count: int
) -> None:
    for start in range(0, len(records), PAGE):
        async with erasing(store) as transaction:
            await transaction.remove_metadata(records[start : start + PAGE])
    if wanted.entry is None:
        subject: dict[str, JsonValue] = {"of": "org"} if wanted.agent is None else {"of": "agent", "name": wanted.agent}
        async with erasing(store) as transaction:
            act = audit.make_act(actor, ACTION, details={**subject, "records": count})
            await audit.append(transaction, wanted.org, clock.now(), act)


async def _redact(store: Store, wanted: Erasable, keys: Sequence[MetadataKey]) -> None:
    """Remove an agent's name and words from its judgements in records; the judgements themselves stay."""
    for start in range(0, len(keys), PAGE):
        async with erasing(store) as transaction:
            there = await transaction.get_many_metadata(keys[start : start + PAGE])
            await transaction.put_metadata([redact(each, wanted.agent) for each in there if each is not None])


async def _scrub(store: Store) -> bool:
    try:
        return await store.scrub()
    except StoreError:
        return False


async def _list_documents(store: Store, org: str | None) -> AsyncIterator[tuple[Collection, list[str]]]:
    after: tuple[Collection, str] | None = None
    while entries := await store.list_documents(after, PAGE):
        after = entries[-1]
        for collection, group in groupby(entries, key=itemgetter(0)):
            if org in (None, collection.org):
                yield collection, [id for _, id in group]


async def _list_records(store: Store, wanted: Erasable, ids: set[str]) -> AsyncIterator[MetadataKey]:
    after: MetadataKey | None = None
    while records := await store.list_all_metadata(after, PAGE):
        after = records[-1].key
        for record in records:
            if _is_meant(record, wanted, ids):
                yield record.key


async def _list_judged(store: Store, wanted: Erasable) -> AsyncIterator[MetadataKey]:
    """Yield the keys of records that do not belong to the agent, but hold a judgement of it."""
    after: MetadataKey | None = None
    while wanted.agent is not None and (records := await store.list_all_metadata(after, PAGE)):
        after = records[-1].key
        for record in records:
            is_meant = record.key.org == wanted.org and not _is_meant(record, wanted, set())
            if is_meant and redact(record, wanted.agent) != record:
                yield record.key


def redact(record: Metadata, agent: str | None) -> Metadata:
    """Return a record without the name of an agent as the one who judged (`by`), and without what it said of that.

    In its place it says that whoever judged was erased (`ERASED_JUDGE`).
    """
    return replace(record, value=cast("dict[str, JsonValue]", _strip(record.value, agent)))


def _strip(value: object, agent: str | None) -> object:
    if isinstance(value, list):
        return [_strip(each, agent) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, object]", value)
    said = {name for name in _SAID if name in held} if agent is not None and held.get(JUDGE) == agent else set[str]()
    left = {name: "" if name in said else _strip(each, agent) for name, each in held.items()}
    return {**left, ERASED_JUDGE: True} if said else left


def _is_meant(record: Metadata, wanted: Erasable, ids: set[str]) -> bool:
    """Return whether a bookkeeping record goes too: one that tells of the documents, or belongs to the agent or org."""
    key, value = record.key, record.value
    if key.org == SHARED_ORG:
        return wanted.is_whole_org and key.kind == keys.KIND and value.get("org") == wanted.org
    if key.org != wanted.org:
        return False
    if key.kind == supersession.KIND:
        # It holds only ids, by which chains with a gap still lead on.
        return wanted.is_whole_org
    if wanted.is_whole_org or _names(key.name, ids) or _holds(value, ids):
        return True
    return wanted.agent is not None and _is_of_agent(record, wanted.agent)


def _is_of_agent(record: Metadata, agent: str) -> bool:
    key = record.key
    if key.kind == idempotency.KIND:
        return key.name.partition(":")[2].rpartition(":")[0] == agent
    if key.kind == quotas.KIND:
        return key.name.partition(":agent:")[2] == agent  # which may itself have these words in it
    return record.value.get(WRITER) == agent


def _names(name: str, ids: set[str]) -> bool:
    return name in ids or name.partition("/")[0] in ids or name.rpartition("/")[2] in ids


def _holds(value: object, ids: set[str]) -> bool:
    if isinstance(value, str):
        return value in ids
    if isinstance(value, dict):
        return any(_holds(each, ids) for each in cast("dict[str, object]", value).values())
    return isinstance(value, list) and any(_holds(each, ids) for each in cast("list[object]", value))
