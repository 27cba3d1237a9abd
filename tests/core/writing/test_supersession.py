from __future__ import annotations

import contextlib
import random
from itertools import pairwise

import anyio
import pytest

from refdesk.core.writing import supersession
from refdesk.errors import ConflictError, InvalidInputError, NotFoundError
from refdesk.model import Collection, State
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, make_document


async def make_store(*ids: str) -> MemoryStore:
    store = MemoryStore()
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document(id) for id in ids])
    return store


async def supersede(store: MemoryStore, old: str, new: str) -> str:
    async with store.transaction() as transaction:
        pair = await supersession.read_pair(transaction, NOTES, old, new)
        return await supersession.supersede(transaction, *pair, NOW)


async def get_heads(store: MemoryStore, ids: str) -> list[str]:
    documents = await store.get_documents(NOTES, list(ids))
    return [supersession.get_head_id(document) for document in documents if document is not None]


async def test_the_old_one_is_superseded_and_names_its_successor_and_head() -> None:
    store = await make_store("a", "b")
    assert await supersede(store, "a", "b") == "b"
    [a, b] = await store.get_documents(NOTES, ["a", "b"])
    assert a is not None
    assert b is not None
    assert (a.state, b.state) == (State.SUPERSEDED, State.CURRENT)
    assert supersession.get_successor_id(a) == "b"
    assert [revision.document.state for revision in await store.get_revisions(NOTES, "a")] == [
        State.CURRENT,
        State.SUPERSEDED,
    ]


@pytest.mark.parametrize("order", [["ab", "bc", "cd"], ["cd", "bc", "ab"], ["ab", "cd", "bc"]])
async def test_every_member_of_a_chain_knows_its_head_in_whatever_order_it_was_made(order: list[str]) -> None:
    store = await make_store(*"abcd")
    for old, new in order:
        await supersede(store, old, new)
    assert await get_heads(store, "abcd") == ["d"] * 4


async def test_several_can_be_superseded_by_one() -> None:
    store = await make_store(*"abcd")
    for old, new in ("ac", "bc", "cd"):
        await supersede(store, old, new)
    assert await get_heads(store, "abcd") == ["d"] * 4
    [d] = await store.get_documents(NOTES, ["d"])
    assert d is not None
    assert [m.id for m in await supersession.find_older(store, d)] == ["c", "a", "b"]


async def test_the_chain_can_be_read_upwards() -> None:
    store = await make_store(*"abc")
    for old, new in ("ab", "bc"):
        await supersede(store, old, new)
    [a] = await store.get_documents(NOTES, ["a"])
    assert a is not None
    assert [m.id for m in await supersession.find_newer(store, a)] == ["b", "c"]


async def test_doing_it_again_changes_nothing() -> None:
    store = await make_store("a", "b")
    await supersede(store, "a", "b")
    before = await store.get_documents(NOTES, ["a", "b"])
    assert await supersede(store, "a", "b") == "b"
    assert await store.get_documents(NOTES, ["a", "b"]) == before


async def test_what_is_superseded_already_is_a_conflict_that_names_the_head() -> None:
    store = await make_store(*"abcd")
    await supersede(store, "a", "b")
    await supersede(store, "b", "c")
    with pytest.raises(ConflictError) as caught:
        await supersede(store, "a", "d")
    assert caught.value.details == {"headId": "c"}


@pytest.mark.parametrize("length", [2, 3, 6])
async def test_no_circle_can_be_closed(length: int) -> None:
    ids = "abcdef"[:length]
    store = await make_store(*ids)
    for old, new in pairwise(ids):
        await supersede(store, old, new)
    with pytest.raises(ConflictError, match="circle"):
        await supersede(store, ids[-1], ids[0])
    assert await get_heads(store, ids) == [ids[-1]] * length


async def test_an_entry_cannot_supersede_itself() -> None:
    with pytest.raises(InvalidInputError):
        await supersede(await make_store("a"), "a", "a")


async def test_another_orgs_entry_looks_like_one_that_does_not_exist() -> None:
    store = await make_store("a")
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("b", collection=Collection("other", "notes"))])
    with pytest.raises(NotFoundError) as foreign:
        await supersede(store, "a", "b")
    with pytest.raises(NotFoundError) as unknown:
        await supersede(store, "a", "c")
    assert foreign.value.message.replace(" b.", " c.") == unknown.value.message


async def test_racing_pairs_never_make_a_circle() -> None:
    ids = "abcdefgh"
    for seed in range(20):
        store = await make_store(*ids)
        pairs = [tuple(random.Random(seed * 100 + n).sample(ids, 2)) for n in range(40)]

        async def race(old: str, new: str, store: MemoryStore = store) -> None:
            with contextlib.suppress(ConflictError):
                await supersede(store, old, new)

        async with anyio.create_task_group() as group:
            for old, new in pairs:
                group.start_soon(race, old, new)
        await assert_no_circle(store, ids)


async def assert_no_circle(store: MemoryStore, ids: str) -> None:
    for document in await store.get_documents(NOTES, list(ids)):
        assert document is not None
        newer = await supersession.find_newer(store, document)
        assert len({member.id for member in newer}) == len(newer)
        head = newer[-1].id if newer else document.id
        assert supersession.get_head_id(document) == head
