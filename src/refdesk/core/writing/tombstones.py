"""What stands in the place of an erased document: its place in its org and its chain, but nothing of its content.

A tombstone keeps the ids of its chain, so that a chain with a gap still leads from end to end, and its id and version,
so that neither an import nor anybody who read the document before can bring it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.model import Document, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from refdesk.model import Collection

ERASED = "erased"


def is_erased(document: Document) -> bool:
    """Return whether the document is a tombstone."""
    return ERASED in document.data


def make_tombstone(document: Document, at: datetime, kept: Sequence[str] = ()) -> Document:
    """Return what stands in a document's place once it is erased.

    Args:
        document: As it is now.
        at: When it is erased.
        kept: Names of the fields of its `data` that stay: ids through which others follow the chain.
    """
    data = {name: document.data[name] for name in kept if name in document.data}
    return Document(
        collection=document.collection,
        id=document.id,
        title="",
        body="",
        author="",
        created_at=at,
        modified_at=at,
        state=State.WITHDRAWN,
        version=document.version + 1,
        data={**data, ERASED: at.isoformat()},
    )


def make_barrier(collection: Collection, id: str, at: datetime) -> Document:
    """Return a tombstone for a document that is not there, so that it cannot be added."""
    nothing = Document(collection=collection, id=id, title="", body="", author="", created_at=at, modified_at=at)
    return make_tombstone(nothing, at)
