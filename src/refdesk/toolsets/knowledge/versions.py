"""Tracks the versions that edits made of an entry: restoring one version takes the others out of the way.

An edit is not a correction by another entry: the old and the new version are one entry, and only one of its versions
holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.core.writing import supersession
from refdesk.model import State

if TYPE_CHECKING:
    from refdesk.model import Document
    from refdesk.protocols import Reader, Transaction

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


async def find_earlier(reader: Reader, document: Document) -> tuple[Document, Document] | None:
    """Return the earlier version that holds, and the version after it; `None` if none holds."""
    later = document
    while (id := later.data.get(EDIT_OF)) is not None:
        [earlier] = await reader.get_documents(document.collection, [str(id)])
        if earlier is None:
            return None
        if earlier.state is State.CURRENT:
            return earlier, later
        if supersession.get_successor_id(earlier) != later.id:
            return None
        later = earlier
    return None
