"""How a new entry is stored: counted, recorded by its wording, and compared with entries that say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.writing import quotas
from refdesk.core.writing.quotas import Quota
from refdesk.model import Metadata
from refdesk.toolsets.knowledge import duplicates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Document, MetadataKey
    from refdesk.protocols import Transaction

QUOTA_NAME = "knowledge_stored"


def list_read(base: KnowledgeBase, document: Document) -> list[MetadataKey]:
    """Return the keys that `put_new` reads: those of both counts, and of the wording's record."""
    counts = quotas.list_keys(_get_quota(base), document.collection.org, document.author)
    return [*counts, duplicates.make_key(document)]


async def put_new(
    transaction: Transaction,
    base: KnowledgeBase,
    document: Document,
    now: datetime,
    keys: Sequence[MetadataKey] | None = None,
) -> str | None:
    """Put a new entry and count it; return the id of another that says the same, if any.

    It takes at most two reads and two writes, however much is stored.

    Args:
        transaction: The one to write in.
        base: The knowledge base whose quota applies.
        document: The new entry.
        now: The present time.
        keys: What `list_read` returns, if the caller has it already.

    Raises:
        QuotaExceededError: The org or the author may store no more.
    """
    keys = list_read(base, document) if keys is None else keys
    *used, noted = await transaction.get_many_metadata(keys)
    records = list(quotas.count(_get_quota(base), document.collection.org, document.author, used))
    same = await duplicates.find(transaction, document, noted, now)
    await transaction.put_documents([document])
    if same is None:
        records.append(Metadata(keys[-1], {"id": document.id}))
    await transaction.put_metadata(records)
    return same


def _get_quota(base: KnowledgeBase) -> Quota:
    return base.quotas.get(QUOTA_NAME, Quota(QUOTA_NAME))
