"""What every engine promises to those who ask again and again whether anything changed."""

from __future__ import annotations

from dataclasses import replace

from refdesk.model import State
from refdesk.protocols import Store
from tests.stores.samples import embed, make_document, passage, put, revise


async def test_the_mark_differs_after_each_write_of_a_document(store: Store) -> None:
    marks = [await store.get_change_mark()]
    document = make_document("a")
    await put(store, document)
    marks.append(await store.get_change_mark())
    await put(store, revised := revise(document, title="New"))
    marks.append(await store.get_change_mark())
    assert await embed(store, revised, passage((1, 0, 0, 0)))
    marks.append(await store.get_change_mark())
    async with store.transaction() as transaction:
        await transaction.erase_documents([replace(revised, version=revised.version + 1, state=State.WITHDRAWN)])
    marks.append(await store.get_change_mark())
    assert len(set(marks)) == len(marks)


async def test_asking_changes_nothing(store: Store) -> None:
    await put(store, make_document("a"))
    assert await store.get_change_mark() == await store.get_change_mark()


async def test_the_mark_differs_once_a_write_is_committed_not_only_while_it_is_made(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        during = await store.get_change_mark()
    assert await store.get_change_mark() != during
