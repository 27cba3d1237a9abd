"""The record of acts: written with the act or not at all, and no change of it stays unnoticed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.writing import audit
from refdesk.core.writing.refusals import WINDOW, Refusals
from refdesk.errors import InvalidInputError
from refdesk.model import AuditEntry, Metadata, MetadataKey, Reference
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from tests.stores.samples import NOW, make_document

ANN = audit.Actor("acme", "ann", "rest", "10.0.0.7", "k1")


def watch(store: Store, **options: bool) -> Store:
    return audit.watch(store, FixedClock(NOW), ANN, "store_note", {"id": "a"}, **options)


async def act(store: Store, *ids: str) -> None:
    for id in ids:
        async with watch(store).transaction() as transaction:
            await transaction.put_documents([make_document(id, "A secret text.")])


async def test_what_is_written_is_on_record_and_no_text_of_it() -> None:
    store = MemoryStore()
    await act(store, "a")
    [entry] = await store.get_audit("acme")
    assert entry.act == {
        "action": "store_note",
        "agent": "ann",
        "transport": "rest",
        "address": "10.0.0.7",
        "credential": "k1",
        "outcome": "done",
        "details": {"id": "a"},
        "records": [{"toolset": "notes", "id": "a", "version": 1, "change": "created"}],
    }
    assert "secret" not in str(entry)


async def test_an_act_that_is_undone_and_one_that_writes_nothing_are_not_on_record() -> None:
    store = MemoryStore()
    with suppress(ZeroDivisionError):
        async with watch(store).transaction() as transaction:
            await transaction.put_documents([make_document("a")])
            raise ZeroDivisionError
    async with watch(store).transaction() as transaction:
        await transaction.get_links("acme", Reference("notes", "a"))
    async with watch(store, documents_only=True).transaction() as transaction:
        await transaction.put_metadata([Metadata(MetadataKey("*", "lease", "sync"), {})])
    assert await store.list_audited_orgs() == []


async def test_bookkeeping_alone_is_an_act_of_an_operation() -> None:
    store = MemoryStore()
    async with watch(store).transaction() as transaction:
        await transaction.put_metadata([Metadata(MetadataKey("acme", "skill_outcome", "x/1"), {})])
    assert (await audit.verify(store, "acme")).entries == 1


async def test_a_whole_chain_holds_and_each_org_has_its_own() -> None:
    store = MemoryStore()
    await act(store, *(f"n{number}" for number in range(12)))
    verdict = await audit.verify(store, "acme")
    assert (verdict.entries, verdict.broken) == (12, None)
    assert await audit.verify(store, "acme", verdict.anchor) == verdict
    assert (await audit.verify(store, "nobody")).entries == 0
    await act(store, "later")
    assert (await audit.verify(store, "acme", verdict.anchor)).broken is None


TAMPERINGS = {
    "changed": "UPDATE audit SET act = replace(act, 'ann', 'bob') WHERE number = 4",
    "its time changed": "UPDATE audit SET at = at + 1 WHERE number = 4",
    "removed": "DELETE FROM audit WHERE number = 4",
    "removed from the front": "DELETE FROM audit WHERE number < 5",
    "exchanged": (
        "UPDATE audit SET number = -4 WHERE number = 4; UPDATE audit SET number = 4 WHERE number = 5;"
        "UPDATE audit SET number = 5 WHERE number = -4"
    ),
    "moved to another org": "UPDATE audit SET org = 'zenith' WHERE number = 4",
}
FIRST_BAD = {"removed from the front": 1}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_tampering_with_the_database_is_found_where_it_begins(tmp_path: Path, tampering: str) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)) as store:
        await act(store, *(f"n{number}" for number in range(8)))
        tamper(path, TAMPERINGS[tampering])
        verdict = await audit.verify(store, "acme")
    assert verdict.broken is not None
    assert verdict.broken.number == FIRST_BAD.get(tampering, 4)


def tamper(path: Path, statements: str) -> None:
    connection = Connection(path, 5000)
    connection.execute("DROP TRIGGER audit_stays; DROP TRIGGER audit_is_unchanged")
    connection.execute(statements)
    connection.close()


async def test_the_database_itself_refuses_to_change_or_remove_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)) as store:
        await act(store, "a")
        connection = Connection(path, 5000)
        for statement in ("DELETE FROM audit", "UPDATE audit SET act = '{}'"):
            with pytest.raises(Exception, match="only ever added"):
                connection.execute(statement)
        connection.close()


async def test_a_cut_end_and_a_log_made_anew_show_against_an_end_that_was_noted(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path, clock=FixedClock(NOW)) as store:
        await act(store, "a", "b", "c")
        anchor = (await audit.verify(store, "acme")).anchor
        tamper(path, "DELETE FROM audit WHERE number = 3")
        assert (await audit.verify(store, "acme")).broken is None, "no chain can tell this by itself"
        cut = await audit.verify(store, "acme", anchor)
        assert cut.broken is not None
        assert (cut.broken.number, "cut off" in cut.broken.reason) == (3, True)
        await act(store, "d")
        anew = await audit.verify(store, "acme", anchor)
        assert anew.broken is not None
        assert "made anew" in anew.broken.reason
        with pytest.raises(InvalidInputError):
            await audit.verify(store, "acme", "no anchor")


async def test_refusals_are_on_record_the_first_at_once_and_repetitions_by_their_number() -> None:
    store, clock, refusals = MemoryStore(), FixedClock(NOW), Refusals()
    for _ in range(100):
        await refusals.note(store, clock, ANN, "erase", "PERMISSION_DENIED")
    await refusals.note(store, clock, replace(ANN, agent="bob"), "erase", "PERMISSION_DENIED")
    clock.advance(WINDOW)
    await refusals.note(store, clock, ANN, "erase", "PERMISSION_DENIED")
    entries: list[AuditEntry] = await store.get_audit("acme")
    assert [(each.act["agent"], each.act["outcome"], each.act.get("details")) for each in entries] == [
        ("ann", "refused: PERMISSION_DENIED", None),
        ("bob", "refused: PERMISSION_DENIED", None),
        ("ann", "refused: PERMISSION_DENIED", {"times": 100}),
    ]
