"""How a new entry is put: counted, noted by its wording, and compared with what says the same."""

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
    """Return what `put_new` reads: both counts, and who has the wording."""
    counts = quotas.list_keys(_get_quota(base), document.collection.org, document.author)
    return [*counts, duplicates.make_key(document)]


async def put_new(
    transaction: Transaction,
    base: KnowledgeBase,
    document: Document,
    now: datetime,
    keys: Sequence[MetadataKey] | None = None,
) -> str | None:
    """Put a new entry and count it; return which other says the same. One read and two writes, whatever is kept.

    Args:
        transaction: That of the store.
        base: Whose quota counts.
        document: The new entry.
        now: When that is.
        keys: What `list_read` returns, where that is known.

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
