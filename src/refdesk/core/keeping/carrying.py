"""What a store that is restored from a backup keeps of the one that it replaces.

A backup is of an earlier time. Its documents are what is wanted; what came after it and must not be undone is carried
over: erasures, the audit log, which is only ever added to, and the revocation of keys. What cannot be carried over,
because the replaced store cannot be read or does not know of it, is reported.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.core.keeping import erasing
from refdesk.core.keeping.carrying_keys import carry_keys
from refdesk.core.writing import audit, sizes
from refdesk.errors import NotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from refdesk.core.keys import ApiKey
    from refdesk.core.writing.audit import Actor
    from refdesk.model import AuditEntry, Collection, JsonValue, Metadata
    from refdesk.protocols import Clock, Store

PAGE = 1000
ACTION = "restore"
MOST_NAMED = 100
"""Most keys that could not be checked that an entry of the audit log names."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is known of the time after a backup.

    Attributes:
        tombstones: What was erased.
        wide: The orgs of which everything was erased, with the number of that act and, if it was erased only of one
            agent, that agent.
        acts: The audit log, by org, from some entry on.
        keys: The records of API keys.
        has_all_acts: Whether `acts` is all of the audit log.
        is_of_one_history: Whether it is known that the backup is of the replaced store, or of one that it follows;
            otherwise an org's log that continues the backup's proves it for that org.
    """

    tombstones: Sequence[tuple[Collection, str]] = ()
    wide: Sequence[tuple[str, int, str | None]] = ()
    acts: Sequence[Sequence[AuditEntry]] = ()
    keys: Sequence[Metadata] = ()
    has_all_acts: bool = True
    is_of_one_history: bool = True


@dataclass(frozen=True, slots=True)
class Carried:
    """What was carried over, and what was not.

    Attributes:
        erased: How many documents were erased again.
        acts: How many entries were added to the audit log.
        keys: How many keys were revoked again, or had their expiry brought forward again.
        unchecked: The keys that are valid, although it is not known whether they should be.
        left_acts: How many entries of the replaced log do not continue the backup's, and so are not in the restored
            log.
    """

    erased: int = 0
    acts: int = 0
    keys: int = 0
    unchecked: tuple[ApiKey, ...] = ()
    left_acts: int = 0


@dataclass(frozen=True, slots=True)
class Restored:
    """The result for one restored file.

    Attributes:
        documents: How many it holds, in whatever state.
        kept: Where the file that was there before is now; `None` if there was none.
        knows_erasures: Whether it is known what was erased since the backup was made.
        knows_acts: Whether it is known what else was put on record since.
        has_left_log: Whether a log beside the file was left out because it does not belong to the file.
        was_moved: Whether the restored backup is of a store that had been moved to another one by then.
    """

    name: str
    documents: int
    carried: Carried
    kept: Path | None
    knows_erasures: bool
    has_left_log: bool
    was_moved: bool = False
    knows_acts: bool = True


async def carry_over(
    aftermath: Aftermath, store: Store, clock: Clock, actor: Actor, *, revokes_unchecked: bool = False
) -> Carried:
    """Bring a store that nobody reads yet to a state in which it may replace the other; return what was carried over.

    With `revokes_unchecked`, keys of which nobody knows whether they were revoked since are revoked.

    Doing it again changes nothing, except that it is put on record once more.

    Raises:
        StoreError: It failed half way; begin again with the backup.
    """
    ends = {org: await store.get_last_audit(org) for org in _list_orgs(aftermath)}
    carried = [await _carry_acts(entries, store) for entries in aftermath.acts]
    acts, left = sum(added for added, _ in carried), sum(left for _, left in carried)
    erased = await erasing.keep_erased(store, clock, aftermath.tombstones)
    for org, number, agent in aftermath.wide:
        if _is_later(number, ends[org], aftermath):
            with suppress(NotFoundError):
                again = await erasing.erase(
                    store, clock, audit.Actor(org, "refdesk", "server"), erasing.Erasable(org, agent=agent)
                )
                erased += again.count
    if erased:
        # Unlike in a store that serves, sizes are not counted with the writes here.
        for org in sorted({of.org for of, _ in aftermath.tombstones} | _list_orgs(aftermath)):
            await sizes.measure_again(store, org)
    followed = await _list_followed(aftermath.acts, store) if aftermath.has_all_acts else frozenset[str]()
    revoked, unchecked = await carry_keys(
        aftermath.keys, aftermath.acts, followed, store, clock, revokes_unchecked=revokes_unchecked
    )
    async with store.transaction() as transaction:
        details: dict[str, JsonValue] = {"erased": erased, "acts": acts, "keys": revoked}
        if left or not aftermath.has_all_acts:
            details |= {"left_acts": left, "knows_acts": aftermath.has_all_acts}
        if unchecked:
            details["unchecked_keys"] = [key.id for key in unchecked[:MOST_NAMED]]
        await audit.append(transaction, actor.org, clock.now(), audit.make_act(actor, ACTION, details=details))
    if not await store.scrub():
        raise StoreError("Traces of what was erased could not be overwritten. Nothing was restored.")
    return Carried(erased, acts, revoked, unchecked, left)


def _list_orgs(aftermath: Aftermath) -> set[str]:
    return {org for org, _, _ in aftermath.wide}


def _is_later(number: int, end: AuditEntry | None, aftermath: Aftermath) -> bool:
    """Return whether an act came after a backup in which the log of its org ended with `end`.

    The numbers of an unrelated log say nothing about when that was.
    """
    if number <= (end.number if end is not None else 0):
        return False
    logs = (entries for entries in aftermath.acts if end is not None and entries and entries[0].org == end.org)
    return aftermath.is_of_one_history or any(entry == end for entries in logs for entry in entries)


async def _carry_acts(entries: Sequence[AuditEntry], store: Store) -> tuple[int, int]:
    """Add to a log the entries that follow its end, as far as the chain is intact.

    Returns:
        How many entries were added, and how many are still not in the log.
    """
    if not entries:
        return 0, 0
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
    return len(following), await _count_left(entries, store)


async def _count_left(entries: Sequence[AuditEntry], store: Store) -> int:
    """Return how many of the entries are missing from the log."""
    org, at, left = entries[0].org, entries[0].number - 1, 0
    for start in range(0, len(entries), PAGE):
        wanted = entries[start : start + PAGE]
        there = {entry.digest for entry in await store.get_audit(org, at, PAGE)}
        left += sum(entry.digest not in there for entry in wanted)
        at = wanted[-1].number
    return left


async def _list_followed(acts: Sequence[Sequence[AuditEntry]], store: Store) -> frozenset[str]:
    """Return the orgs whose log ends as it did in the replaced store."""
    ends = [entries[-1] for entries in acts if entries]
    return frozenset([end.org for end in ends if await store.get_last_audit(end.org) == end])
