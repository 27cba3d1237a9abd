"""What every engine promises to those who look for what was written since they looked last."""

from __future__ import annotations

from dataclasses import replace

from refdesk.model import Collection, State
from refdesk.protocols import Store
from tests.stores.samples import MODEL, NOTES, embed, make_document, passage, put, revise

EAST = (1, 0, 0, 0)
ELSEWHERE = Collection("zenith", "notes")


async def list_since(store: Store, mark: str, limit: int = 100) -> list[str]:
    return await store.get_unembedded(NOTES, MODEL.name, limit, mark)


async def test_the_collections_are_those_that_hold_documents_in_whatever_state(store: Store) -> None:
    assert await store.list_collections() == {}
    gone = make_document("b", collection=ELSEWHERE, state=State.WITHDRAWN)
    await put(store, make_document("a"), gone)
    marks = await store.list_collections()
    assert set(marks) == {NOTES, ELSEWHERE} == {each.collection for each in await store.get_statistics()}
    assert all(marks.values())


async def test_the_mark_of_a_collection_differs_after_each_write_of_a_document_in_it(store: Store) -> None:
    await put(store, document := make_document("a"))
    marks = [await store.list_collections()]
    await put(store, revised := revise(document, title="New"))
    marks.append(await store.list_collections())
    await put(store, make_document("b"))
    marks.append(await store.list_collections())
    async with store.transaction() as transaction:
        await transaction.erase_documents([replace(revised, version=revised.version + 1, state=State.WITHDRAWN)])
    marks.append(await store.list_collections())
    assert len({each[NOTES] for each in marks}) == len(marks)


async def test_what_another_org_writes_leaves_the_mark_as_it_is(store: Store) -> None:
    await put(store, make_document("a"))
    before = await store.list_collections()
    await put(store, make_document("b", collection=ELSEWHERE))
    assert (await store.list_collections())[NOTES] == before[NOTES]


async def test_of_what_was_written_since_a_mark_that_without_vectors_is_found_by_id(store: Store) -> None:
    old = [make_document(id) for id in ("old", "reworded", "same")]
    await put(store, *old)
    await embed(store, old[1], passage(EAST))
    await embed(store, old[2], passage(EAST))
    mark = (await store.list_collections())[NOTES]
    assert await list_since(store, mark) == []
    await put(store, revise(old[1], body="Other words."), revise(old[2], facets={"tags": ("x",)}))
    new = [make_document("z"), make_document("embedded"), make_document("gone", state=State.WITHDRAWN)]
    await put(store, *new, make_document("there", collection=ELSEWHERE))
    await embed(store, new[1], passage(EAST))
    assert await list_since(store, mark) == ["reworded", "z"]
    assert await list_since(store, mark, limit=1) == ["reworded"]
    assert await list_since(store, (await store.list_collections())[NOTES]) == []
    assert await list_since(store, "") == ["old", "reworded", "z"]


async def test_vectors_of_another_model_count_for_nothing(store: Store) -> None:
    await put(store, make_document("a"))
    mark = (await store.list_collections())[NOTES]
    await put(store, new := make_document("b"))
    await embed(store, new, passage(EAST))
    assert await store.get_unembedded(NOTES, "another", 100, mark) == ["b"]


async def test_a_document_that_comes_back_is_written_since(store: Store) -> None:
    await put(store, gone := make_document("a", state=State.WITHDRAWN))
    mark = (await store.list_collections())[NOTES]
    await put(store, revise(gone, state=State.CURRENT))
    assert await list_since(store, mark) == ["a"]


async def test_a_mark_taken_while_a_write_is_made_does_not_hide_it(store: Store) -> None:
    await put(store, make_document("a"))
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("b")])
        mark = (await store.list_collections())[NOTES]
    assert await list_since(store, mark) == ["b"]


async def test_a_transaction_sees_what_it_has_written_since(store: Store) -> None:
    await put(store, make_document("a"))
    mark = (await store.list_collections())[NOTES]
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("b")])
        assert await transaction.get_unembedded(NOTES, MODEL.name, 100, mark) == ["b"]
