"""Removes an org from a store that it was moved out of, once both stores have been compared.

It is removed as by erasing: a tombstone without content stays in place of each document, so that no copy of the old
store brings it back; the audit log, which can only be added to, stays too. No document or record that was written after
the comparison is removed: each transaction that removes some first checks whether the org's log still ends where it
did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


async def begin(store: Store, target: Store, clock: Clock, actor: Actor, part: Part) -> Removal:
    """Return what removes a part of one org from a store; to be called before the stores are compared.

    Raises:
        ConflictError: Its removal had begun before, and the org has been written to since.
    """
    last = await store.get_last_audit(str(part.org))
    is_ours = last is not None and last.act["action"] == ACTION
    if await migrating.read_removing(target, part) not in (None, _get_end(last)) and not is_ours:
        raise ConflictError(_WRITTEN.format(part.org))
    return Removal(store, target, clock, actor, part, last)


@dataclass(slots=True)
class Removal:
    """The removal of a part of one org from a store.

    Attributes:
        target: Where it was moved to; records that it is being removed, so that a stopped removal can be continued.
        actor: Who removes it.
        last: The end of the org's audit log when the stores were compared, and then after each transaction.
    """

    store: Store
    target: Store
    clock: Clock
    actor: Actor
    part: Part
    last: AuditEntry | None

    async def run(self) -> int:
        """Remove it, overwrite what is left in the engine's files as far as possible, and return the document count.

        Raises:
            ConflictError: The org has been written to since; what earlier transactions removed stays removed.
        """
        await migrating.note_removing(self.target, self.part, _get_end(self.last))
        count = 0
        for collection, ids in await self._list_documents():
            for start in range(0, len(ids), erasing.PIECE):
                count += await self._bury(collection, ids[start : start + erasing.PIECE])
        await self._remove_links()
        await self._remove_records(count)
        await sizes.measure_again(self.store, str(self.part.org))
        await self.store.scrub()
        return count

    async def _list_documents(self) -> list[tuple[Collection, list[str]]]:
        found = await erasing.find(self.store, erasing.Erasable(str(self.part.org)))
        return [(collection, ids) for collection, ids in found.items() if self.part.has_document(collection)]

    async def _bury(self, collection: Collection, ids: Sequence[str]) -> int:
        async with erasing.erasing(self.store) as transaction:
            await self._require_untouched(transaction)
            documents = await transaction.get_documents(collection, ids)
            there = [each for each in documents if each is not None and not is_erased(each)]
            await erasing.bury(transaction, there, self.clock.now())
            await self._put_on_record(transaction, {"documents": len(there)})
        return len(there)

    async def _remove_links(self) -> None:
        after = None
        while links := await self.store.list_links(after, PAGE):
            after = links[-1]
            async with erasing.erasing(self.store) as transaction:
                await transaction.remove_links([each for each in links if self.part.has_link(each)])

    async def _remove_records(self, documents: int) -> None:
        after = None
        while records := await self.store.list_all_metadata(after, PAGE):
            after = records[-1].key
            keys = [each.key for each in records if self.part.has_record(each)]
            async with erasing.erasing(self.store) as transaction:
                await self._require_untouched(transaction)
                await transaction.remove_metadata(keys)
        async with erasing.erasing(self.store) as transaction:
            part: dict[str, JsonValue] = {"part": self.part.name} if self.part.toolsets else {}
            await self._put_on_record(transaction, {"documents": documents, "is_whole": True, **part})

    async def _require_untouched(self, transaction: Transaction) -> None:
        if await transaction.get_last_audit(str(self.part.org)) != self.last:
            raise ConflictError(_WRITTEN.format(self.part.org))

    async def _put_on_record(self, transaction: Transaction, details: dict[str, JsonValue]) -> None:
        act = audit.make_act(self.actor, ACTION, details={"of": "org", "is_removed": True, **details})
        entry = audit.make_entry(self.last, str(self.part.org), self.clock.now(), act)
        await transaction.put_audit([entry])
        self.last = entry


def _get_end(last: AuditEntry | None) -> str:
    return last.digest if last is not None else ""
