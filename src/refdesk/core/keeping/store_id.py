"""A store's id, which tells it from any other one. It moves with the store, and a copy has it too."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.protocols import Reader, Store

KEY = MetadataKey(SHARED_ORG, "store", "id")


async def read_store_id(reader: Reader) -> str:
    """Return the id; empty if the store has none yet."""
    record = await reader.get_metadata(KEY)
    return str(record.value["id"]) if record is not None else ""


async def get_store_id(store: Store) -> str:
    """Return the id, the same to every process; one is chosen if the store has none yet."""
    known = await read_store_id(store)
    if known:
        return known
    async with store.transaction() as transaction:
        chosen = await read_store_id(transaction) or uuid4().hex
        await transaction.put_metadata([Metadata(KEY, {"id": chosen})])
    return chosen


async def forget_store_id(store: Store) -> None:
    """Remove the id, since the store becomes another one."""
    async with store.transaction() as transaction:
        await transaction.remove_metadata([KEY])
