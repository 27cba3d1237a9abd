"""How many bytes an org keeps, counted and limited in the transaction of each write, the same on every engine.

What counts is what callers wrote, as UTF-8: title and body of every version that is kept, unless they are the same as
in the version before, and each version's record as JSON. Erased documents do not count; nor do vectors and indexes,
which are derived. A store is measured once, when it is first opened with a limit, and counted from then on, even when
it is opened without one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import QuotaExceededError
from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.model import Collection, Document, Revision
    from refdesk.protocols import Reader, Store, Transaction

KIND = "size"
SETTING = "REFDESK_MAX_ORG_BYTES"
PAGE = 1000
MARK_BYTES = 256
"""How much larger than the one before a version's record may be for the version to count as a mark on what is there:
superseded, withdrawn, restored. Marks are counted but never refused, so that errors can be corrected in a full org."""

_MEASURED = MetadataKey(SHARED_ORG, KIND, "measured")
_Place: TypeAlias = "tuple[Collection, str]"


async def open_counted(store: Store, most: int | None) -> Store:
    """Return a view of the store that counts writes, and refuses those by which an org would exceed `most` bytes.

    Without a limit, a store whose orgs were never measured is returned as it is. Measuring reads the whole store once;
    other writers wait for it.
    """
    if most is None and await store.get_metadata(_MEASURED) is None:
        return store
    async with store.transaction() as transaction:
        if await transaction.get_metadata(_MEASURED) is None:
            sizes = await measure(store)
            await transaction.put_metadata([_to_record(org, size) for org, size in sizes.items()])
            await transaction.put_metadata([Metadata(_MEASURED, {})])
    return cast("Store", _CountedStore(store, most))


async def measure(store: Store) -> dict[str, int]:
    """Return the bytes that each org keeps, by reading all of it."""
    sizes: Counter[str] = Counter()
    async for histories in _read_histories(store):
        for history in histories:
            sizes[history[-1].collection.org] += weigh(history)
    return dict(sizes)


async def measure_again(store: Store, org: str) -> None:
    """Measure an org anew after much of it was moved from or to another store, if the store counts sizes."""
    if await store.get_metadata(_MEASURED) is None:
        return
    size = 0
    async for histories in _read_histories(store, org):
        size += sum(map(weigh, histories))
    async with store.transaction() as transaction:
        if size:
            await transaction.put_metadata([_to_record(org, size)])
        else:
            await transaction.remove_metadata([_make_key(org)])


async def read_sizes(reader: Reader) -> dict[str, int]:
    """Return the bytes that each org keeps, as counted so far; empty if nothing is counted."""
    records = await reader.list_metadata(KIND, limit=1_000_000)
    return {record.key.org: int(str(record.value["bytes"])) for record in records if record.key != _MEASURED}


def weigh(history: Sequence[Document]) -> int:
    """Return the bytes of a document: all of its versions, oldest first."""
    if not history or is_erased(history[-1]):
        return 0
    pairs = zip((None, *history), history, strict=False)
    return sum(weigh_text(document, before) + _weigh_record(document) for before, document in pairs)


def weigh_text(document: Document, before: Document | None) -> int:
    """Return the bytes of title and body; 0 if they are the same as in the version before."""
    if before is not None and (before.title, before.body) == (document.title, document.body):
        return 0
    return _weigh(document.title) + _weigh(document.body)


def _weigh_record(document: Document) -> int:
    return _weigh(json.dumps(document.data, ensure_ascii=False, separators=(",", ":"))) if document.data else 0


def _is_mark(document: Document, before: Document | None) -> bool:
    """Return whether a version only changes the state of the document, and adds nothing new."""
    if before is None or weigh_text(document, before):
        return False
    return _weigh_record(document) <= _weigh_record(before) + MARK_BYTES


def _weigh(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


async def _read_histories(store: Store, org: str | None = None) -> AsyncIterator[list[list[Document]]]:
    after: _Place | None = None
    while entries := await store.list_documents(after, PAGE):
        after = entries[-1]
        for collection, group in groupby(entries, key=itemgetter(0)):
            if collection.org != SHARED_ORG and org in (None, collection.org):
                found = await store.get_histories(collection, [id for _, id in group])
                yield [[each.document for each in history] for history in found]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _CountedStore:
    store: Store
    most: int | None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Transaction]:
        async with self.store.transaction() as transaction:
            yield cast("Transaction", _CountedTransaction(transaction, self.most))


@dataclass(frozen=True, slots=True)
class _CountedTransaction:
    transaction: Transaction
    most: int | None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transaction has
        return getattr(self.transaction, name)

    async def put_documents(self, documents: Sequence[Document]) -> None:
        sizes = await self._find_growth(documents)
        await self.transaction.put_documents(documents)
        await self._put(sizes)

    async def put_revisions(self, revisions: Sequence[Revision]) -> None:
        sizes = await self._find_growth([revision.document for revision in revisions])
        await self.transaction.put_revisions(revisions)
        await self._put(sizes)

    async def erase_documents(self, documents: Sequence[Document]) -> None:
        freed: Counter[str] = Counter()
        for document in documents:
            history = await self.transaction.get_revisions(document.collection, document.id)
            freed[document.collection.org] += weigh([each.document for each in history])
        sizes = {org: await self._read(org) - amount for org, amount in freed.items() if amount}
        await self.transaction.erase_documents(documents)
        await self._put(sizes)

    async def _find_growth(self, documents: Sequence[Document]) -> dict[str, int]:
        """Return the new size of each org that would grow.

        Raises:
            QuotaExceededError: Writes other than marks would make an org larger than it may be.
        """
        growth, refusable = Counter[str](), set[str]()
        newest = await self._read_newest(documents)
        for document in documents:
            org, place = document.collection.org, (document.collection, document.id)
            if org != SHARED_ORG:
                before = newest.get(place)
                growth[org] += weigh_text(document, before) + _weigh_record(document)
                refusable |= {org} if not _is_mark(document, before) else set()
                newest[place] = document
        sizes = {org: await self._read(org) + growth[org] for org in growth}
        for org in refusable:
            if self.most is not None and sizes[org] > self.most:
                raise _refuse(sizes[org] - growth[org], growth[org], self.most)
        return sizes

    async def _read_newest(self, documents: Sequence[Document]) -> dict[_Place, Document]:
        newest: dict[_Place, Document] = {}
        later = sorted((each.collection, each.id) for each in documents if each.version > 1)
        for collection, group in groupby(dict.fromkeys(later), key=itemgetter(0)):
            ids = [id for _, id in group]
            for found in await self.transaction.get_documents(collection, ids):
                if found is not None:
                    newest[collection, found.id] = found
        return newest

    async def _read(self, org: str) -> int:
        record = await self.transaction.get_metadata(_make_key(org))
        return int(str(record.value["bytes"])) if record is not None else 0

    async def _put(self, sizes: Mapping[str, int]) -> None:
        if sizes:
            await self.transaction.put_metadata([_to_record(org, size) for org, size in sizes.items()])


def _to_record(org: str, size: int) -> Metadata:
    return Metadata(_make_key(org), {"bytes": size})


def _make_key(org: str) -> MetadataKey:
    return MetadataKey(org, KIND, "org")


def _refuse(used: int, more: int, most: int) -> QuotaExceededError:
    return QuotaExceededError(
        f"This org may keep {most} bytes and keeps {used}; {more} more do not fit. Nothing was written. Store less, or "
        f"ask whoever runs this server to erase what is not needed (refdesk erase) or to raise {SETTING}.",
        details={"quota": "org_bytes", "scope": "org", "used": used, "limit": most},
    )
