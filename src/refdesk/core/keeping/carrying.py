"""What a store that is put back from a backup keeps of the one that it replaces.

A backup is of an earlier time. Its documents are what is wanted; what came after it and must not be undone is carried
over: what was erased, the audit log, which is only ever added to, and keys that open nothing any more.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core import keys
from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.errors import NotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from refdesk.core.writing.audit import Actor
    from refdesk.model import AuditEntry, Collection, Metadata
    from refdesk.protocols import Clock, Store

PAGE = 1000
ACTION = "restore"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is known of the time after a backup.

    Attributes:
        tombstones: What was erased.
        wide: Of which orgs (and agents, where not of all) everything was erased, and the number of that act.
        acts: The audit log, by org, from some entry on.
        keys: The records of API keys.
    """

    tombstones: Sequence[tuple[Collection, str]] = ()
    wide: Sequence[tuple[str, int, str | None]] = ()
    acts: Sequence[Sequence[AuditEntry]] = ()
    keys: Sequence[Metadata] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """What was carried over: documents erased again, entries of the audit log, keys that were revoked again."""

    erased: int = 0
    acts: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one file.

    Attributes:
        documents: How many it holds, in whatever state.
        kept: Where the file that was there is now; `None` when there was none.
        knows_erasures: Whether it is known what was erased since the backup was made.
        has_left_log: Whether a log beside the file was left out, as it is not the file's.
        was_moved: Whether what was put back is of a store that had been moved to another one by then.
    """

    name: str
    documents: int
    carried: Carried
    kept: Path | None
    knows_erasures: bool
    has_left_log: bool
    was_moved: bool = False


async def carry_over(aftermath: Aftermath, store: Store, clock: Clock, actor: Actor) -> Carried:
    """Bring a store, which nobody reads yet, to where it may follow the one that it replaces; return what that took.

    Doing it again changes nothing but the record that it was done.

    Raises:
        StoreError: It failed half way; begin again with the backup.
    """
    ends = {org: await _get_end(store, org) for org in {*_list_orgs(aftermath), actor.org}}
    acts = sum([await _carry_acts(entries, store) for entries in aftermath.acts])
    erased = await erasing.keep_erased(store, clock, aftermath.tombstones)
    for org, number, agent in aftermath.wide:
        if number > ends[org]:
            with suppress(NotFoundError):
                again = await erasing.erase(
                    store, clock, audit.Actor(org, "refdesk", "server"), erasing.Erasable(org, agent=agent)
                )
                erased += again.count
    revoked = await _carry_keys(aftermath.keys, store)
    async with store.transaction() as transaction:
        details = {"erased": erased, "acts": acts, "keys": revoked}
        await audit.append(transaction, actor.org, clock.now(), audit.make_act(actor, ACTION, details=details))
    if not await store.scrub():
        raise StoreError("Traces of what was erased could not be overwritten. Nothing was restored.")
    return Carried(erased, acts, revoked)


def _list_orgs(aftermath: Aftermath) -> set[str]:
    return {org for org, _, _ in aftermath.wide}


async def _get_end(store: Store, org: str) -> int:
    last = await store.get_last_audit(org)
    return last.number if last is not None else 0


async def _carry_acts(entries: Sequence[AuditEntry], store: Store) -> int:
    """Add what follows the end of a log to it, as far as the chain holds; return how much that was."""
    if not entries:
        return 0
    last = await store.get_last_audit(entries[0].org)
    number, digest = (last.number, last.digest) if last is not None else (0, "")
    following: list[AuditEntry] = []
    for entry in entries:
        if entry.number == number + 1 and entry.previous == digest and audit.is_unchanged(entry):
            following.append(entry)
            number, digest = entry.number, entry.digest
    for start in range(0, len(following), PAGE):
        async with store.transaction() as transaction:
            await transaction.put_audit(following[start : start + PAGE])
    return len(following)


async def _carry_keys(known: Sequence[Metadata], store: Store) -> int:
    """Let keys open nothing that were revoked, or end earlier, in the store that is replaced."""
    there = await store.get_many_metadata([record.key for record in known])
    changed = [now for now, then in zip(known, there, strict=True) if then is not None and keys.opens_less(now, then)]
    if changed:
        async with store.transaction() as transaction:
            await transaction.put_metadata(changed)
    return len(changed)
