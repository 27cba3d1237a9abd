"""A store that is moved while it serves: every change is noted, every write refused once it is switched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from refdesk.core.clock import FixedClock
from refdesk.core.keeping import erasing, migrating, moves, moving
from refdesk.core.keeping.following import follow
from refdesk.core.keeping.moves import Change, Move, Moves, find_moves, read_move
from refdesk.core.writing import audit
from refdesk.core.writing.tombstones import make_barrier, make_tombstone
from refdesk.errors import ConfigurationError, ConflictError, StoreError
from refdesk.model import EmbeddingModel, Link, Metadata, MetadataKey, Reference
from refdesk.protocols import Store, Transaction
from tests.stores.conftest import ENGINES
from tests.stores.samples import MODEL, NOTES, NOW, day, embed, make_document, passage, put, revise
from tests.stores.traces import find_traces, make_canary

MOVABLE = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.engines)]
PAIRS = [
    pytest.param("sqlite", "sqlite"),
    pytest.param("sqlite", "postgres", marks=pytest.mark.engines),
    pytest.param("postgres", "postgres", marks=pytest.mark.engines),
]
ACT = audit.make_act(audit.Actor(NOTES.org, "ann", "test"), "store_knowledge")
LINK = Link(NOTES.org, Reference("notes", "a"), "references", Reference("notes", "b"), day(1))
RECORD = Metadata(MetadataKey(NOTES.org, "watch", "w"), {"of": "a"})
DOCUMENT = ("acme", "notes", "a")
Write = Callable[[Transaction], Awaitable[object]]
OLD = make_document("a")
WRITES: dict[str, tuple[Change, Write]] = {
    "create": (Change("document", ("acme", "notes", "n")), lambda t: t.put_documents([make_document("n")])),
    "change": (Change("document", DOCUMENT), lambda t: t.put_documents([revise(OLD, author="bob")])),
    "erase": (Change("document", DOCUMENT), lambda t: t.erase_documents([make_tombstone(OLD, NOW)])),
    "bar": (Change("document", ("acme", "notes", "x")), lambda t: t.erase_documents([make_barrier(NOTES, "x", NOW)])),
    "embed": (
        Change("document", DOCUMENT),
        lambda t: t.put_vectors(NOTES, "a", MODEL, OLD.text_digest, [passage((0, 0, 1, 0))]),
    ),
    "forget a model": (Change("document", DOCUMENT), lambda t: t.remove_vectors(MODEL.name)),
    "link": (
        Change("link", ("acme", "notes", "a", "produced", "notes", "b")),
        lambda t: t.put_links([replace(LINK, kind="produced")]),
    ),
    "unlink": (Change("link", ("acme", "notes", "a", "references", "notes", "b")), lambda t: t.remove_links([LINK])),
    "keep": (Change("record", ("acme", "quota", "q")), lambda t: t.put_metadata([_make_record("quota", "q")])),
    "keep anew": (Change("record", ("acme", "watch", "w")), lambda t: t.put_metadata([replace(RECORD, value={})])),
    "remove": (Change("record", ("acme", "watch", "w")), lambda t: t.remove_metadata([RECORD.key])),
    "act": (Change("acts", ("acme",)), lambda t: audit.append(t, "acme", NOW, ACT)),
}


def _make_record(kind: str, name: str) -> Metadata:
    return Metadata(MetadataKey(NOTES.org, kind, name), {"used": 1})


async def fill(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([OLD, make_document("b")])
        await transaction.put_vectors(NOTES, "a", MODEL, OLD.text_digest, [passage((1, 0, 0, 0))])
        await transaction.put_links([LINK])
        await transaction.put_metadata([RECORD])
        await audit.append(transaction, "acme", NOW, ACT)


async def write_and_fail(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("undone")])
        raise ZeroDivisionError


def get_moves(store: Store) -> Moves:
    found = find_moves(store)
    assert found is not None
    return found


@pytest.mark.parametrize("engine", MOVABLE)
@pytest.mark.parametrize("name", WRITES)
async def test_whatever_is_written_is_noted_by_the_store_itself(
    tmp_path: Path, clock: FixedClock, engine: str, name: str
) -> None:
    change, write = WRITES[name]
    async with ENGINES[engine](tmp_path, clock) as store, ENGINES[engine](tmp_path, clock) as other:
        await fill(store)
        own = get_moves(store)
        await own.begin(Move("sqlite:////elsewhere"))
        await own.begin(Move("sqlite:////elsewhere"))
        assert await own.read_changes(10) == []
        async with other.transaction() as transaction:
            await write(transaction)
        [noted] = await own.read_changes(10)
        assert (noted.what, noted.key) == (change.what, change.key)
        await own.forget([noted])
        assert await own.read_changes(10) == []
        with pytest.raises(ZeroDivisionError):
            await write_and_fail(other)
        assert await own.read_changes(10) == []
        await own.cancel()
        assert await read_move(store) is None
        await put(other, make_document("later"))


@pytest.mark.parametrize("engine", MOVABLE)
@pytest.mark.parametrize("name", WRITES)
async def test_a_store_that_was_switched_refuses_every_write(
    tmp_path: Path, clock: FixedClock, engine: str, name: str
) -> None:
    async with ENGINES[engine](tmp_path, clock) as store, ENGINES[engine](tmp_path, clock) as other:
        await fill(store)
        own = get_moves(store)
        await own.begin(Move("sqlite:////elsewhere"))
        async with own.stand_still() as standstill:
            await standstill.switch(Move("sqlite:////elsewhere", "switched"))
        before = await migrating.summarise(other)
        with pytest.raises(StoreError) as refused:
            async with other.transaction() as transaction:
                await WRITES[name][1](transaction)
        assert refused.value.message == moves.REFUSED
        assert await migrating.summarise(other) == before
        assert await read_move(other) == Move("sqlite:////elsewhere", "switched")
        with pytest.raises(ConflictError, match="switched already"):
            await moving.cancel(store)


@pytest.mark.parametrize("engine", MOVABLE)
async def test_what_is_changed_again_is_not_forgotten(tmp_path: Path, clock: FixedClock, engine: str) -> None:
    async with ENGINES[engine](tmp_path, clock) as store:
        own = get_moves(store)
        await own.begin(Move("sqlite:////elsewhere"))
        await put(store, make_document("a"), make_document("b"))
        first = await own.read_changes(10)
        await put(store, revise(make_document("a"), author="bob"))
        await own.forget(first)
        [left] = await own.read_changes(10)
        assert left.key == DOCUMENT
        await own.begin(Move("sqlite:////elsewhere"))
        assert await own.read_changes(10) == [left], "beginning again forgets nothing"


@pytest.mark.parametrize(("engine", "other_engine"), PAIRS)
async def test_a_store_is_moved_with_what_is_written_meanwhile(
    tmp_path: Path, clock: FixedClock, engine: str, other_engine: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    async with ENGINES[engine](old, clock) as source, ENGINES[other_engine](new, clock) as target:
        await fill(source)
        await put(source, *[make_document(f"d{number:04}") for number in range(migrating.PIECE + 10)])
        writes = 0

        def note(_: int) -> None:
            nonlocal writes
            writes += 1

        opened = ENGINES[engine](old, clock)
        async with follow(opened, lambda _: ENGINES[other_engine](new, clock)) as served:
            mover = moving.Mover(source, target, "here", "elsewhere", note)
            # Each kind of write comes once the copy has passed by what it writes.
            await migrating.copy(source, target, "here")
            await get_moves(source).begin(Move("elsewhere"))
            for name in ("create", "change", "embed", "link", "unlink", "keep", "keep anew", "act", "bar"):
                async with served.transaction() as transaction:
                    await WRITES[name][1](transaction)
            held = await migrating.summarise(source)
            await mover.run()
            assert (await migrating.summarise(target), writes > 0) == (held, True)
            assert mover.standstill_seconds < moving.STANDSTILL_SECONDS
            # Whoever follows reads and writes there now.
            await put(served, make_document("after"))
            assert [each is not None for each in await served.get_documents(NOTES, ["after", "n"])] == [True, True]
            assert (await source.get_documents(NOTES, ["after"]), held.documents) == ([None], migrating.PIECE + 14)
            assert await mover.run() is None, "once more finds nothing to do"
        # And whoever comes later.
        async with follow(ENGINES[engine](old, clock), lambda _: ENGINES[other_engine](new, clock)) as served:
            assert (await served.get_documents(NOTES, ["after"]))[0] is not None


@pytest.mark.parametrize(("engine", "other_engine"), PAIRS)
async def test_what_is_erased_and_the_vectors_that_a_change_of_model_removes_meanwhile_are_not_left_in_the_target(
    tmp_path: Path, clock: FixedClock, engine: str, other_engine: str
) -> None:
    old, new, canary = tmp_path / "old", tmp_path / "new", make_canary()
    for folder in (old, new):
        folder.mkdir()
    async with ENGINES[engine](old, clock) as source, ENGINES[other_engine](new, clock) as target:
        documents = [make_document(f"d{number:04}") for number in range(2 * moving.FEW)]
        await put(source, make_document("a", canary), *documents)
        for document in documents:
            await embed(source, document, passage((0, 0, 1, 0)))
            await embed(source, document, passage((0, 1, 0, 0)), model=EmbeddingModel("next", 4))
        await migrating.copy(source, target, "here")
        assert await find_traces(target, new, canary) != []

        def begin(phase: moving.Phase) -> None:
            if phase == "comparing":
                copied.set()

        async def change() -> None:
            await copied.wait()
            await erasing.erase(source, clock, audit.Actor("acme", "ann", "test"), erasing.Erasable("acme", "a"))
            async with source.transaction() as transaction:
                await transaction.remove_vectors(MODEL.name)

        copied = anyio.Event()
        with anyio.fail_after(240):
            async with anyio.create_task_group() as group:
                group.start_soon(change)
                await moving.Mover(source, target, "here", "elsewhere", begin=begin).run()
        assert await migrating.summarise(target) == await migrating.summarise(source)
        assert await find_traces(target, new, canary) == []


async def test_who_has_not_noticed_the_move_is_refused_once_and_then_goes_there(
    tmp_path: Path, clock: FixedClock
) -> None:
    opened, new = ENGINES["sqlite"](tmp_path, clock), tmp_path / "new"
    new.mkdir()
    async with (
        follow(opened, lambda _: ENGINES["sqlite"](new, clock)) as served,
        ENGINES["sqlite"](tmp_path, clock) as old,
    ):
        await put(served, make_document("a"))
        # It asks twice a second; less has passed since.
        await get_moves(old).begin(Move("new"))
        async with ENGINES["sqlite"](new, clock) as target, get_moves(old).stand_still() as standstill:
            await put(target, make_document("a"))
            await standstill.switch(Move("new", "switched"))
        with pytest.raises(StoreError, match="nothing of it was written"):
            await put(served, make_document("b"))
        await put(served, make_document("b"))
        assert sorted(await served.get_digests(NOTES)) == ["a", "b"]
        assert sorted(await old.get_digests(NOTES)) == ["a"]


async def test_a_mark_of_the_store_that_was_moved_hides_nothing_in_the_new_one(
    tmp_path: Path, clock: FixedClock
) -> None:
    opened, new = ENGINES["sqlite"](tmp_path, clock), tmp_path / "new"
    new.mkdir()
    async with (
        follow(opened, lambda _: ENGINES["sqlite"](new, clock)) as served,
        ENGINES["sqlite"](tmp_path, clock) as old,
        ENGINES["sqlite"](new, clock) as target,
    ):
        # The old store has counted further than the new one.
        await put(served, *(make_document(id) for id in "abc"))
        mark = (await served.list_collections())[NOTES]
        assert await served.get_unembedded(NOTES, MODEL.name, 10, mark) == []
        await get_moves(old).begin(Move("new"))
        async with get_moves(old).stand_still() as standstill:
            await put(target, make_document("x"))
            await standstill.switch(Move("new", "switched"))
        with pytest.raises(StoreError, match="nothing of it was written"):
            await put(served, make_document("y"))
        assert (await served.list_collections())[NOTES] != mark
        assert await served.get_unembedded(NOTES, MODEL.name, 10, mark) == ["x"]


async def test_a_transaction_that_waited_for_the_switch_is_one_of_the_new_store(
    tmp_path: Path, clock: FixedClock
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    async with (
        ENGINES["sqlite"](tmp_path, clock) as old,
        ENGINES["sqlite"](new, clock) as target,
        anyio.create_task_group() as group,
    ):
        await get_moves(old).begin(Move("new"))
        async with follow(ENGINES["sqlite"](tmp_path, clock), lambda _: ENGINES["sqlite"](new, clock)) as served:
            mark, is_written = await served.get_change_mark(), anyio.Event()

            async def write(store: Store) -> None:
                await put(store, make_document("waited"))
                is_written.set()

            async with get_moves(old).stand_still() as standstill:
                group.start_soon(write, served)
                await anyio.wait_all_tasks_blocked()
                assert await served.get_digests(NOTES) == {}, "reads go on"
                await standstill.switch(Move("new", "switched"))
            with anyio.fail_after(120):
                await is_written.wait()
            assert list(await target.get_digests(NOTES)) == ["waited"]
            assert await served.get_change_mark() != mark


async def test_a_target_that_says_otherwise_is_noticed_before_the_switch(tmp_path: Path, clock: FixedClock) -> None:
    new = tmp_path / "new"
    new.mkdir()
    async with ENGINES["sqlite"](tmp_path, clock) as old, ENGINES["sqlite"](new, clock) as target:
        await fill(old)
        await migrating.copy(old, target, "here")
        await put(target, make_document("foreign"))
        with pytest.raises(ConflictError, match="foreign"):
            await moving.Mover(old, target, "here", "new").run()
        move = await read_move(old)
        assert move is not None
        assert move.stage == "moving"
        await put(old, make_document("still the truth"))


async def test_what_goes_wrong_while_a_store_is_followed_is_raised_as_it_is(tmp_path: Path, clock: FixedClock) -> None:
    def open_none(_: str) -> NoReturn:
        raise ConfigurationError("There is no such engine.")

    async def follow_and_fail() -> None:
        async with follow(ENGINES["sqlite"](tmp_path, clock), open_none) as served:
            await put(served, make_document("a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await follow_and_fail()
    async with ENGINES["sqlite"](tmp_path, clock) as old:
        await get_moves(old).begin(Move("new"))
        async with get_moves(old).stand_still() as standstill:
            await standstill.switch(Move("new", "switched"))
    with pytest.raises(ConfigurationError, match="no such engine"):
        await follow_and_fail()


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["neo4j", "citus"])
async def test_an_engine_that_notes_no_changes_is_not_moved_while_it_serves(tmp_path: Path, engine: str) -> None:
    clock = FixedClock(NOW)
    async with ENGINES[engine](tmp_path, clock) as source, ENGINES["sqlite"](tmp_path, clock) as target:
        await fill(source)
        with pytest.raises(ConflictError, match="its engine notes no changes, or it is a cluster"):
            await moving.Mover(source, target, "refused", "sqlite:///new").run()
        with pytest.raises(ConflictError, match="leave --serving out"):
            await moving.cancel(source)
        assert await target.get_statistics() == []
