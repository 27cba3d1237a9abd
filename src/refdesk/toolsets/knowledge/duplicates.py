"""Which entry says the same as a new one: the same words, however they are cased, spaced and punctuated.

A record for each wording names the entry that had it first, so that a store costs one look-up more however many entries
there are. It is a hint: the entry itself decides whether it still says so.
"""

from __future__ import annotations

import hashlib
import unicodedata
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
"""What is written around words without changing what they say."""


def identify(title: str, body: str) -> str:
    """Return what is the same for texts that say the same in the same words."""
    words = (word.strip(_EDGES) for word in unicodedata.normalize("NFKC", f"{title}\n{body}").casefold().split())
    return hashlib.blake2b(" ".join(word for word in words if word).encode(), digest_size=16).hexdigest()


def make_key(document: Document) -> MetadataKey:
    """Return where it is noted which entry said first what this one says."""
    return MetadataKey(document.collection.org, KIND, identify(document.title, document.body))


async def note(transaction: Transaction, document: Document, now: datetime) -> str | None:
    """Return the entry of the org that says the same and is not withdrawn or expired; without one, note the new one."""
    key = make_key(document)
    record = await transaction.get_metadata(key)
    if record is not None:
        [other] = await transaction.get_documents(document.collection, [str(record.value["id"])])
        if other is not None and _says(other, key.name, now):
            return other.id
    await transaction.put_metadata([Metadata(key, {"id": document.id})])
    return None


async def note_all(transaction: Transaction, documents: Sequence[Document]) -> None:
    """Note entries that come with others at once; of those that say the same, the first, or who is noted already."""
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
