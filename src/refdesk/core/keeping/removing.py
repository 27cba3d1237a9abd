"""Removes an org from a store that it was moved out of, once both stores have been compared.

It is removed as by erasing: a tombstone without content stays in place of each document, so that no copy of the old
store brings it back; the audit log, which can only be added to, stays too. No document or record that was written after
the comparison is removed: each transaction that removes some first checks whether the org's log still ends where it
did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from refdesk.core.keeping import erasing, migrating
from refdesk.core.writing import audit, sizes
from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.keeping.migrating import Part
    from refdesk.core.writing.audit import Actor
    from refdesk.model import AuditEntry, Collection, JsonValue
    from refdesk.protocols import Clock, Store, Transaction

ACTION = "migrate"
PAGE = 1000


_WRITTEN = (
    "The org {} was written to while it was removed from the source, so what is left of it was kept there. The target "
    "has all that was compared. Stop whatever writes as that org, and look at its audit log there."
)


Place: TypeAlias = "tuple[Store, Part]"
"""Where a part of the org was moved to."""


async def begin(store: Store, places: Sequence[Place], clock: Clock, actor: Actor) -> Removal:
    """Return what removes the parts of one org from a store; to be called before the stores are compared.

    Raises:
        ConflictError: Its removal had begun before, and the org has been written to since.
    """
    org = str(places[0][1].org)
    last = await store.get_last_audit(org)
    is_ours = last is not None and last.act["action"] == ACTION
    for target, part in places:
        if await migrating.read_removing(target, part) not in (None, _get_end(last)) and not is_ours:
            raise ConflictError(_WRITTEN.format(org))
    return Removal(store, places, clock, actor, last)


@dataclass(slots=True)
class Removal:
    """The removal of the parts of one org from a store, none of them before all have been compared.

    Attributes:
        places: Each target records that its part is being removed, so that a stopped removal can be continued.
        actor: Who removes it.
        last: The end of the org's audit log when the stores were compared, and then after each transaction.
    """

    store: Store
    places: Sequence[Place]
    clock: Clock
    actor: Actor
    last: AuditEntry | None

    async def run(self) -> int:
        """Remove it, overwrite what is left in the engine's files as far as possible, and return the document count.

        Raises:
            ConflictError: The org has been written to since; what earlier transactions removed stays removed.
        """
        end, org = _get_end(self.last), str(self.places[0][1].org)
        for target, part in self.places:
            await migrating.note_removing(target, part, end)
        counts = [await self._remove(part) for _, part in self.places]
        if any(part.is_rest and part.toolsets for _, part in self.places):
            # An older copy of the store must not bring back anything of the org, whichever part it was in.
            async with erasing.erasing(self.store) as transaction:
                await self._put_on_record(transaction, org, {"documents": sum(counts), "is_whole": True})
        await sizes.measure_again(self.store, org)
        await self.store.scrub()
        for target, part in self.places:
            await migrating.note_removing(target, part, end, is_through=True)
        return sum(counts)

    async def _remove(self, part: Part) -> int:
        count = 0
        for collection, ids in await self._list_documents(part):
            for start in range(0, len(ids), erasing.PIECE):
                count += await self._bury(collection, ids[start : start + erasing.PIECE])
        await self._remove_links(part)
        await self._remove_records(part, count)
        return count

    async def _list_documents(self, part: Part) -> list[tuple[Collection, list[str]]]:
        found = await erasing.find(self.store, erasing.Erasable(str(part.org)))
        return [(collection, ids) for collection, ids in found.items() if part.has_document(collection)]

    async def _bury(self, collection: Collection, ids: Sequence[str]) -> int:
        async with erasing.erasing(self.store) as transaction:
            await self._require_untouched(transaction, collection.org)
            documents = await transaction.get_documents(collection, ids)
            there = [each for each in documents if each is not None and not is_erased(each)]
            await erasing.bury(transaction, there, self.clock.now())
            await self._put_on_record(transaction, collection.org, {"documents": len(there)})
        return len(there)

    async def _remove_links(self, part: Part) -> None:
        after = None
        while links := await self.store.list_links(after, PAGE):
            after = links[-1]
            async with erasing.erasing(self.store) as transaction:
                await transaction.remove_links([each for each in links if part.has_link(each)])

    async def _remove_records(self, part: Part, documents: int) -> None:
        after, org = None, str(part.org)
        while records := await self.store.list_all_metadata(after, PAGE):
            after = records[-1].key
            keys = [each.key for each in records if part.has_record(each)]
            async with erasing.erasing(self.store) as transaction:
                await self._require_untouched(transaction, org)
                await transaction.remove_metadata(keys)
        async with erasing.erasing(self.store) as transaction:
            which: dict[str, JsonValue] = {"part": part.name} if part.toolsets else {}
            await self._put_on_record(transaction, org, {"documents": documents, "is_whole": True, **which})

    async def _require_untouched(self, transaction: Transaction, org: str) -> None:
        if await transaction.get_last_audit(org) != self.last:
            raise ConflictError(_WRITTEN.format(org))

    async def _put_on_record(self, transaction: Transaction, org: str, details: dict[str, JsonValue]) -> None:
        act = audit.make_act(self.actor, ACTION, details={"of": "org", "is_removed": True, **details})
        entry = audit.make_entry(self.last, org, self.clock.now(), act)
        await transaction.put_audit([entry])
        self.last = entry


def _get_end(last: AuditEntry | None) -> str:
    return last.digest if last is not None else ""
