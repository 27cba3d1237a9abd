"""Notes on the entry that holds in place of another: it may not be the one meant, or may have expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import Choice, ConflictError
from refdesk.toolsets.knowledge import READ_SCOPE, models

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.core.context import Context
    from refdesk.model import Document
    from refdesk.protocols import Reader

_EXPIRED = (
    "What holds now expired on {:%Y-%m-%d}: neither entry is found unless includeExpired is true. To change that, "
    "edit_knowledge."
)


async def offer_head(
    reader: Reader, context: Context, pair: models.SupersedeInput, error: ConflictError
) -> ConflictError:
    """Return the error with the entry that holds now added as a choice to replace instead."""
    head_id = str((error.details or {}).get("headId", ""))
    [head] = await reader.get_documents(models.get_collection(context.principal.org), [head_id])
    if head is None or head_id in (pair.old_id, pair.new_id) or READ_SCOPE not in context.principal.scopes:
        return error
    question = (
        f"The entry was superseded before; what holds now is {head.title!r}, of {head.created_at:%Y-%m-%d}, by "
        f"{head.author}. Shall the new entry take its place?"
    )
    choice = Choice(("oldId",), question, [(head_id, f"Replace {head.title!r}")], pair.old_id)
    return ConflictError(error.message, details=error.details, choice=choice)


async def tell_expired(reader: Reader, new: Document, head_id: str, now: datetime) -> str | None:
    """Return a note if the head of a chain has expired: the new entry, or what superseded it; else `None`."""
    [head] = [new] if new.id == head_id else await reader.get_documents(new.collection, [head_id])
    expiry = models.get_expiry(head) if head is not None else None
    return _EXPIRED.format(expiry) if expiry is not None and expiry <= now else None
