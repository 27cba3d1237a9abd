"""Finds the entry that says the same as a new one: the same words, regardless of case, spacing and punctuation.

A record for each wording names the first entry that had it, so storing an entry costs one extra look-up however many
entries there are. The record is only a hint: the entry itself is checked for whether it still has that wording.
"""

from __future__ import annotations

import hashlib
import unicodedata
from itertools import repeat
from typing import TYPE_CHECKING

from refdesk.model import Metadata, MetadataKey, State
from refdesk.toolsets.knowledge import models

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from refdesk.model import Document
    from refdesk.protocols import Transaction

KIND = "knowledge_wording"
_EDGES = ".,;:!?…*_`\"'“”„‘’«»()[]"
"""Characters stripped from both ends of words, as they do not change what is said."""


def identify(title: str, body: str) -> str:
    """Return a hash that is equal for texts with the same words."""
    text = f"{title}\n{body}"
    words = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold().split()
    said = " ".join(filter(None, map(str.strip, words, repeat(_EDGES))))
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def make_key(document: Document) -> MetadataKey:
    """Return the key of the record that names the first entry with this one's wording."""
    return MetadataKey(document.collection.org, KIND, identify(document.title, document.body))


async def find(transaction: Transaction, document: Document, record: Metadata | None, now: datetime) -> str | None:
    """Return the entry of the org that says the same as a new one and is not withdrawn or expired.

    Args:
        transaction: The one that stores the new entry.
        document: The new entry.
        record: The record kept under its `make_key`, if any.
        now: The present time.
    """
    if record is None:
        return None
    [other] = await transaction.get_documents(document.collection, [str(record.value["id"])])
    return other.id if other is not None and _says(other, record.key.name, now) else None


async def note_all(transaction: Transaction, documents: Sequence[Document]) -> None:
    """Record each wording of entries stored together under the first that has it, unless it is recorded already."""
    firsts: dict[MetadataKey, str] = {}
    for document in documents:
        firsts.setdefault(make_key(document), document.id)
    known = await transaction.get_many_metadata(list(firsts))
    new = [Metadata(key, {"id": id}) for (key, id), record in zip(firsts.items(), known, strict=True) if record is None]
    await transaction.put_metadata(new)


def _says(entry: Document, wording: str, now: datetime) -> bool:
    expiry = models.get_expiry(entry)
    is_there = entry.state is not State.WITHDRAWN and (expiry is None or expiry > now)
    return is_there and identify(entry.title, entry.body) == wording
