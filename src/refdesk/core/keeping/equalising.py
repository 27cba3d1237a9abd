"""Makes single things in one store the same as in another: those changed in the source while all of it is copied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from refdesk.core.keeping import migrating
from refdesk.core.keeping.contents import summarise_document, write_link, write_metadata
from refdesk.core.keeping.moves import Change
from refdesk.errors import ConflictError
from refdesk.model import Collection, MetadataKey, Reference

if TYPE_CHECKING:
    from refdesk.model import Link, Metadata, Revision
    from refdesk.protocols import DocumentVectors, Store, Transaction

FOREIGN = (
    "The target holds something that the source does not, or a later version of it: {}. Give a target that holds "
    "nothing yet, and start again."
)


Piece: TypeAlias = "tuple[list[Revision], DocumentVectors]"


class Pair:
    """Two stores: the target is to become the same as the source. Nobody else writes to the target."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target

    async def equalise(self, changes: Iterable[Change]) -> list[Change]:
        """Make some things in the target the same as they are in the source now; return those that differed.

        Raises:
            ConflictError: The target holds what the source never held.
        """
        each = {(change.what, change.key): change for change in changes}.values()
        differed: list[Change] = []
        for what, settle in (("document", self._documents), ("link", self._links), ("record", self._records)):
            meant = [change for change in each if change.what == what]
            for start in range(0, len(meant), migrating.PIECE):
                differed += await settle(meant[start : start + migrating.PIECE])
        for change in each:
            differed += [change] if change.what == "acts" and await self._acts(change.key[0]) else []
        return differed

    async def find_differing(self) -> AsyncIterator[tuple[int, list[Change]]]:
        """Yield, piece by piece, how many documents were compared, and what differs or is only in the target."""
        async for places in migrating.read_all(self._source.list_documents, None):
            yield len(places), [_name(*place) for place, _, _ in await self._compare_documents(places)]
        async for places in migrating.read_all(self._target.list_documents, None):
            found = await migrating.read_documents(self._source, places)
            yield 0, [_name(*place) for place, (history, _) in zip(places, found, strict=True) if not history]
        for mine, theirs in ((self._source, self._target), (self._target, self._source)):
            async for links in migrating.read_all(mine.list_links, None):
                keys = [(link, write_link(link)[:-1]) for link in links]
                yield 0, [Change("link", key) for link, key in keys if await _find_link(theirs, key) != link]
            async for records in migrating.read_all_records(mine, None):
                differing = await self._compare_records([record.key for record in records])
                yield 0, [Change("record", (key.org, key.kind, key.name)) for key, _ in differing]
            yield 0, [Change("acts", (org,)) for org in await mine.list_audited_orgs()]

    async def _compare_documents(
        self, places: Sequence[tuple[Collection, str]]
    ) -> list[tuple[tuple[Collection, str], Piece, Piece]]:
        here, there = [await migrating.read_documents(store, places) for store in (self._source, self._target)]
        every = zip(places, here, there, strict=True)
        return [(place, mine, theirs) for place, mine, theirs in every if not _are_equal(mine, theirs)]

    async def _documents(self, changes: Sequence[Change]) -> list[Change]:
        places = sorted((Collection(change.key[0], change.key[1]), change.key[2]) for change in changes)
        differing = await self._compare_documents(places)
        if differing:
            async with self._target.transaction() as transaction:
                for (_, id), mine, theirs in differing:
                    await _put_document(transaction, mine, theirs, id)
        return [_name(*place) for place, _, _ in differing]

    async def _links(self, changes: Sequence[Change]) -> list[Change]:
        pairs = [[await _find_link(store, change.key) for store in (self._source, self._target)] for change in changes]
        differing = [(change, *pair) for change, pair in zip(changes, pairs, strict=True) if pair[0] != pair[1]]
        if differing:
            async with self._target.transaction() as transaction:
                await transaction.remove_links([theirs for _, _, theirs in differing if theirs is not None])
                await transaction.put_links([mine for _, mine, _ in differing if mine is not None])
        return [change for change, _, _ in differing]

    async def _compare_records(self, keys: Sequence[MetadataKey]) -> list[tuple[MetadataKey, Metadata | None]]:
        keys = [key for key in keys if key.kind not in migrating.LEFT_BEHIND]
        here, there = await self._source.get_many_metadata(keys), await self._target.get_many_metadata(keys)
        pairs = zip(keys, here, there, strict=True)
        return [(key, mine) for key, mine, theirs in pairs if _write(mine) != _write(theirs)]

    async def _records(self, changes: Sequence[Change]) -> list[Change]:
        differing = await self._compare_records([MetadataKey(*change.key) for change in changes])
        if differing:
            async with self._target.transaction() as transaction:
                await transaction.put_metadata([mine for _, mine in differing if mine is not None])
                await transaction.remove_metadata([key for key, mine in differing if mine is None])
        return [Change("record", (key.org, key.kind, key.name)) for key, _ in differing]

    async def _acts(self, org: str) -> bool:
        """Bring the log of an org up to date, and return whether it differed.

        Comparing one entry is enough, since its digest covers all before it.
        """
        end, reached = await self._source.get_last_audit(org), await self._target.get_last_audit(org)
        if end == reached:
            return False
        if reached is not None and await self._source.get_audit(org, reached.number - 1, 1) != [reached]:
            raise ConflictError(FOREIGN.format(f"the audit log of {org}"))
        after = reached.number if reached is not None else 0
        while acts := await self._source.get_audit(org, after, migrating.PIECE):
            async with self._target.transaction() as transaction:
                await transaction.put_audit(acts)
            after = acts[-1].number
        return True


def _name(collection: Collection, id: str) -> Change:
    return Change("document", (collection.org, collection.toolset, id))


def _are_equal(mine: tuple[list[Revision], DocumentVectors], theirs: tuple[list[Revision], DocumentVectors]) -> bool:
    if not mine[0] or not theirs[0]:
        return not mine[0] and not theirs[0]
    return summarise_document(*mine) == summarise_document(*theirs)


async def _put_document(transaction: Transaction, mine: Piece, theirs: Piece, id: str) -> None:
    (history, vectors), (there, others) = mine, theirs
    last = there[-1].document.version if there else 0
    if not history or last > history[-1].document.version:
        raise ConflictError(FOREIGN.format(id))
    first = history[0].document
    if first.version > max(last, 1):
        await transaction.erase_documents([first])
        last = first.version
    await transaction.put_revisions([each for each in history if each.document.version > last])
    # Of a model that was given up meanwhile no vector may stay: setting none removes them.
    kept = {model for model, _ in vectors}
    given_up: DocumentVectors = [(model, []) for model, _ in others if model not in kept]
    await transaction.put_all_vectors([(history[-1].document, [*vectors, *given_up])])


async def _find_link(store: Store, key: tuple[str, ...]) -> Link | None:
    org, source_toolset, source, kind, target_toolset, target = key
    ends = Reference(source_toolset, source), Reference(target_toolset, target)
    links = await store.get_links(org, ends[0])
    return next((each for each in links if (each.source, each.kind, each.target) == (ends[0], kind, ends[1])), None)


def _write(record: Metadata | None) -> object:
    return None if record is None else write_metadata(record)
