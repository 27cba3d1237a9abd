from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from itertools import pairwise

import anyio
import pytest

from refdesk.core.writing import supersession
from refdesk.errors import ConflictError, InvalidInputError, NotFoundError
from refdesk.model import Collection, Reference, State
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, make_document
from tests.reliability.chains import walk


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
    heads = await supersession.find_heads(store, [document for document in documents if document is not None])
    return [heads[id] for id in ids]


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
    assert await supersession.list_chain(store, NOTES, "d", 0, 10) == (["d", "c", "b", "a"], False)


async def test_a_chain_is_read_in_pages_from_its_head() -> None:
    store = await make_store(*"abcde")
    for old, new in ("ab", "bc", "cd", "de"):
        await supersede(store, old, new)
    assert await supersession.list_chain(store, NOTES, "e", 0, 2) == (["e", "d"], True)
    assert await supersession.list_chain(store, NOTES, "e", 2, 2) == (["c", "b"], True)
    assert await supersession.list_chain(store, NOTES, "e", 4, 2) == (["a"], False)


async def test_a_correction_writes_the_same_however_long_the_chain_is() -> None:
    store = await make_store(*map(str, range(300)))
    for number in range(299):
        await supersede(store, str(number), str(number + 1))
    versions = [len(await store.get_revisions(NOTES, str(number))) for number in range(300)]
    assert versions == [2] * 299 + [1]
    assert len(await store.list_metadata(supersession.KIND)) == 300


@pytest.mark.parametrize("seed", range(10))
async def test_the_way_to_the_root_is_short_in_whatever_order_chains_grow_together(seed: int) -> None:
    ids = [str(number) for number in range(64)]
    store, heads, random_ = await make_store(*ids), list(ids), random.Random(seed)
    while len(heads) > 1:
        old, new = random_.sample(heads, 2)
        await supersede(store, old, new)
        heads.remove(old)
    parents = {
        record.key.name.removeprefix("notes/"): record.value.get("parent")
        for record in await store.list_metadata(supersession.KIND)
    }
    for id in ids:
        at, steps = id, 0
        while (parent := parents.get(at)) is not None:
            at, steps = str(parent), steps + 1
        assert steps <= 6
    documents = [each for each in await store.get_documents(NOTES, ids) if each is not None]
    assert set((await supersession.find_heads(store, documents)).values()) == set(heads)


async def test_a_chain_that_an_earlier_refdesk_made_goes_on() -> None:
    store = await make_store("c", "d", "e")
    retired = {"state": State.SUPERSEDED}
    a = make_document("a", data={"superseded_by": "b", "head": "c"}, **retired)
    b = make_document("b", data={"superseded_by": "c", "head": "c"}, **retired)
    async with store.transaction() as transaction:
        await transaction.put_documents([a, b])
    assert await get_heads(store, "abc") == ["c"] * 3
    for old, new in ("cd", "de"):
        await supersede(store, old, new)
    assert await get_heads(store, "abcde") == ["e"] * 5
    with pytest.raises(ConflictError, match="circle"):
        await supersede(store, "e", "a")


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


async def set_state(store: MemoryStore, id: str, state: State) -> None:
    [document] = await store.get_documents(NOTES, [id])
    assert document is not None
    async with store.transaction() as transaction:
        await transaction.put_documents([replace(document, state=state, version=document.version + 1)])


async def test_no_circle_can_be_closed_over_what_was_withdrawn() -> None:
    store = await make_store(*"abc")
    await supersede(store, "a", "b")
    await supersede(store, "b", "c")
    await set_state(store, "c", State.WITHDRAWN)
    with pytest.raises(ConflictError, match="circle"):
        await supersede(store, "b", "a")
    assert await get_heads(store, "ab") == ["c", "c"]


async def test_what_is_superseded_anew_leaves_the_chain_of_what_was_withdrawn() -> None:
    store = await make_store(*"abcdef")
    for old, new in ("ab", "bc", "fc"):
        await supersede(store, old, new)
    await set_state(store, "c", State.WITHDRAWN)
    assert await supersede(store, "b", "d") == "d"
    assert await get_heads(store, "abf") == ["d", "d", "c"]
    await set_state(store, "c", State.CURRENT)
    await supersede(store, "c", "e")
    assert await get_heads(store, "abcdef") == ["d", "d", "e", "d", "e", "e"]
    assert await supersession.list_chain(store, NOTES, "e", 0, 9) == (["e", "c", "f"], False)


@pytest.mark.parametrize("seed", range(20))
async def test_edges_and_heads_agree_whatever_is_superseded_withdrawn_and_brought_back(seed: int) -> None:
    ids, chance = "abcdefg", random.Random(seed)
    store = await make_store(*ids)
    for _ in range(60):
        one, other = chance.sample(ids, 2)
        [document] = await store.get_documents(NOTES, [one])
        assert document is not None
        if (act := chance.random()) < 0.6:
            with contextlib.suppress(ConflictError, NotFoundError):
                await supersede(store, one, other)
        elif act < 0.8 and document.state is State.SUPERSEDED:
            async with store.transaction() as transaction:
                await supersession.undo(transaction, document)
        elif document.state is State.WITHDRAWN:
            is_superseded = supersession.get_successor_id(document) is not None
            await set_state(store, one, State.SUPERSEDED if is_superseded else State.CURRENT)
        else:
            await set_state(store, one, State.WITHDRAWN)
        await assert_no_circle(store, ids)


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
    documents = {each.id: each for each in await store.get_documents(NOTES, list(ids)) if each is not None}
    heads = await supersession.find_heads(store, documents.values())
    for document in documents.values():
        assert walk(documents, document) == heads[document.id] or document.state is State.WITHDRAWN
        newer = [
            link.source.id
            for link in await store.get_links(NOTES.org, Reference(NOTES.toolset, document.id))
            if link.kind == supersession.SUPERSEDES and link.target.id == document.id
        ]
        successor = supersession.get_successor_id(document)
        assert newer == ([] if successor is None else [successor])
