"""Tracks the versions that edits made of an entry: restoring one version takes the others out of the way.

An edit is not a correction by another entry: the old and the new version are one entry, and only one of its versions
holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased
from refdesk.model import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from refdesk.model import Document
    from refdesk.protocols import Transaction

EDIT_OF = "edit_of"


def mark(new: Document, old: Document) -> Document:
    """Return the new version with a note of which one it was made from."""
    return replace(new, data={**new.data, EDIT_OF: old.id})


async def withdraw_later(transaction: Transaction, document: Document) -> Document | None:
    """Withdraw the version that holds in place of a superseded one and return it; `None` if no version does."""
    held = document
    while (id := supersession.get_successor_id(held)) is not None:
        [later] = await transaction.get_documents(document.collection, [id])
        if later is None or later.data.get(EDIT_OF) != held.id:
            return None
        held = later
    if held.state is not State.CURRENT:
        return None
    withdrawn = replace(held, state=State.WITHDRAWN, version=held.version + 1)
    await transaction.put_documents([withdrawn])
    return withdrawn


async def take_place(
    transaction: Transaction,
    document: Document,
    now: datetime,
    require_owner: Callable[[Document, Document], None],
) -> Document | None:
    """Let a version that holds again stand in place of every earlier one; return the one withdrawn for it, if any.

    Each earlier version then leads to this one, so that whichever is restored next finds the one that holds.

    Args:
        transaction: The one in which the version was restored.
        document: The version.
        now: The present time.
        require_owner: Refuses unless the caller may let the second version replace the first.
    """
    withdrawn, later = None, document
    while (id := later.data.get(EDIT_OF)) is not None:
        [earlier] = await transaction.get_documents(document.collection, [str(id)])
        if earlier is None or is_erased(earlier):
            break
        if supersession.get_successor_id(earlier) != later.id:
            require_owner(earlier, later)
            withdrawn = await _replace(transaction, earlier, later, now) or withdrawn
        later = earlier
    return withdrawn


async def _replace(transaction: Transaction, earlier: Document, later: Document, now: datetime) -> Document | None:
    """Let a version supersede an earlier one instead of whatever did; return the one that held and is withdrawn."""
    withdrawn, held = None, earlier
    if supersession.get_successor_id(earlier) is not None:
        withdrawn = await withdraw_later(transaction, earlier)
        # A withdrawn one has its place in the chain of what superseded it, too.
        held = await supersession.undo(transaction, replace(earlier, state=State.SUPERSEDED))
    await supersession.supersede(transaction, held, later, now)
    if earlier.state is State.WITHDRAWN:
        [superseded] = await transaction.get_documents(earlier.collection, [earlier.id])
        assert superseded is not None
        hidden = replace(superseded, state=State.WITHDRAWN, version=superseded.version + 1)
        await transaction.put_documents([hidden])
    return withdrawn
