"""What becomes of API keys where a backup takes the place of a store: what opens less since then stays so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core import keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from refdesk.core.keys import ApiKey
    from refdesk.model import AuditEntry, Metadata
    from refdesk.protocols import Clock, Store


async def carry_keys(
    known: Sequence[Metadata],
    acts: Sequence[Sequence[AuditEntry]],
    followed: frozenset[str],
    store: Store,
    clock: Clock,
    *,
    revokes_unchecked: bool,
) -> tuple[int, tuple[ApiKey, ...]]:
    """Revoke the keys that were revoked since, and bring forward the expiry of those that end earlier.

    Args:
        known: The keys of the replaced store, as far as they could be read.
        acts: What could be read of its audit log: that a key was revoked is on record, too.
        followed: The orgs whose log is known to its end; of their keys that tells everything but when one expires that
            was rotated.
        store: The restored store.
        clock: Says when this happens.
        revokes_unchecked: Whether to revoke those of which nobody knows.

    Returns:
        How many were changed, and which are valid although nobody knows whether they should be, by org and agent.
    """
    now, checked = clock.now(), {record.key for record in known}
    revoked, rotated = _read_acts(acts)
    there = await store.get_many_metadata([record.key for record in known])
    pairs = zip(known, there, strict=True)
    changed = [since for since, then in pairs if then is not None and keys.opens_less(since, then)]
    unchecked: list[Metadata] = []
    for record in await store.list_metadata(keys.KIND, limit=keys.MOST_KEYS):
        key = keys.read(record)
        if record.key in checked or not key.is_valid(now):
            continue
        if key.id in revoked:
            changed.append(keys.revoke(record, revoked[key.id]))
        elif key.org not in followed or key.id in rotated:
            unchecked.append(record)
    if revokes_unchecked:
        changed += [keys.revoke(record, now) for record in unchecked]
        unchecked = []
    if changed:
        async with store.transaction() as transaction:
            await transaction.put_metadata(changed)
    left = sorted((keys.read(record) for record in unchecked), key=lambda key: (key.org, key.agent, key.id))
    return len(changed), tuple(left)


def _read_acts(acts: Iterable[Iterable[AuditEntry]]) -> tuple[dict[str, datetime], set[str]]:
    """Return when which keys were revoked, and which were rotated, by their ids."""
    revoked: dict[str, datetime] = {}
    rotated: set[str] = set()
    for entry in (entry for log in acts for entry in log):
        details = entry.act.get("details")
        id = str(details.get("key")) if isinstance(details, dict) else ""
        if entry.act.get("action") == "keys.revoke":
            revoked[id] = entry.at
        elif entry.act.get("action") == "keys.rotate":
            rotated.add(id)
    return revoked, rotated
