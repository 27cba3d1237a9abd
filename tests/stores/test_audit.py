"""The audit log: entries are added in their org's order, with whatever else the transaction does, and stay."""

from __future__ import annotations

from contextlib import suppress

import pytest

from refdesk.errors import ConflictError
from refdesk.model import AuditEntry
from refdesk.protocols import Store
from tests.stores.samples import day, make_document


def make_entry(number: int, org: str = "acme") -> AuditEntry:
    return AuditEntry(
        org, number, day(number), {"action": "store", "records": [{"id": f"n{number}"}]}, "p", f"d{number}"
    )


async def add(store: Store, *entries: AuditEntry) -> None:
    async with store.transaction() as transaction:
        await transaction.put_audit(entries)


async def test_entries_come_back_as_they_were_by_number(store: Store) -> None:
    await add(store, make_entry(1), make_entry(2), make_entry(1, "zenith"))
    await add(store, make_entry(3))
    assert await store.get_audit("acme") == [make_entry(1), make_entry(2), make_entry(3)]
    assert await store.get_audit("acme", 1, 1) == [make_entry(2)]
    assert await store.get_audit("acme", 3) == []
    assert await store.get_last_audit("acme") == make_entry(3)
    assert await store.get_last_audit("nobody") is None
    assert await store.list_audited_orgs() == ["acme", "zenith"]


async def test_a_transaction_sees_its_own_entries_and_takes_them_back_with_the_rest(store: Store) -> None:
    with suppress(ZeroDivisionError):
        async with store.transaction() as transaction:
            await transaction.put_documents([make_document("a")])
            await transaction.put_audit([make_entry(1)])
            assert await transaction.get_last_audit("acme") == make_entry(1)
            assert await transaction.get_audit("acme") == [make_entry(1)]
            raise ZeroDivisionError
    assert await store.get_last_audit("acme") is None
    assert await store.list_audited_orgs() == []


async def test_a_number_is_given_once(store: Store) -> None:
    await add(store, make_entry(1))
    async with store.transaction() as transaction:
        with pytest.raises(ConflictError):
            await transaction.put_audit([make_entry(2), make_entry(1)])
        await transaction.put_documents([make_document("a")])
    assert await store.get_audit("acme") == [make_entry(1)]
