"""What an entry rests on that no longer holds: the entry that replaced it, and entries it cites by id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refdesk.core.writing import supersession
from refdesk.core.writing.tombstones import is_erased
from refdesk.model import State
from refdesk.toolsets.knowledge import models

if TYPE_CHECKING:
    from datetime import datetime

    from refdesk.model import Document
    from refdesk.protocols import Reader

MOST_CITED = 20
"""Only the first this many ids in a text are looked up."""

_ID = re.compile(r"(?<![0-9a-f-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f-])", re.IGNORECASE)


async def find_gone_head(reader: Reader, entry: Document, head_id: str) -> str | None:
    """Return a sentence saying that the head which replaced a superseded entry is gone; `None` if it is there."""
    if head_id == entry.id:
        return None
    [head] = await reader.get_documents(entry.collection, [head_id])
    if head is not None and head.state is not State.WITHDRAWN:
        return None
    return (
        f"What replaced it, {head_id}, was withdrawn or erased, so nothing holds in its place: restore_knowledge lets "
        "this one hold again."
    )


async def find_outdated(reader: Reader, entry: Document, now: datetime) -> str | None:
    """Return a sentence naming what an entry cites that no longer holds, and what holds instead; `None` if nothing."""
    cited = dict.fromkeys(match[0].lower() for match in _ID.finditer(entry.body))
    cited.pop(entry.id, None)
    if not cited:
        return None
    found = await reader.get_documents(entry.collection, list(cited)[:MOST_CITED])
    there = [each for each in found if each is not None and not is_erased(each)]
    heads = await supersession.find_heads(reader, [each for each in there if each.state is State.SUPERSEDED])
    told = [said for each in there if (said := _tell(each, heads.get(each.id), now))]
    return f"It cites what holds no more: {'; '.join(told)}." if told else None


def _tell(cited: Document, head: str | None, now: datetime) -> str | None:
    if cited.state is State.SUPERSEDED:
        return f"{cited.id}, superseded by {head}"
    if cited.state is State.WITHDRAWN:
        return f"{cited.id}, withdrawn"
    expiry = models.get_expiry(cited)
    return f"{cited.id}, expired" if expiry is not None and expiry <= now else None
