"""Erasing: what was kept under an id is gone, every version of it, and what stands there cannot be overtaken."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from refdesk.errors import ConflictError
from refdesk.model import Document, FindRequest, Link, Metadata, MetadataKey, Reference, State
from refdesk.protocols import Store
from tests.stores.samples import MODEL, NOTES, asking, day, embed, find_ids, make_document, near, passage, put, revise


def empty(document: Document, version: int) -> Document:
    blank = replace(document, title="", body="", author="", facets={}, date_ranges={}, data={"erased": True})
    return replace(blank, state=State.WITHDRAWN, version=version)


async def erase(store: Store, *documents: Document) -> None:
    async with store.transaction() as transaction:
        await transaction.erase_documents(documents)


async def fill(store: Store) -> Document:
    first = make_document("a", "Canary sings.", facets={"tags": ("bird",)})
    await put(store, first, make_document("b", "Another canary."))
    second = revise(first, body="Canary sings loudly.")
    await put(store, second)
    await embed(store, second, passage((1, 2, 3, 4)))
    return second


async def test_no_version_and_no_vector_is_left(store: Store) -> None:
    second = await fill(store)
    assert sorted(await find_ids(store, asking("canary"))) == ["a", "b"]
    gone = empty(second, 3)
    await erase(store, gone)
    assert await store.get_documents(NOTES, ["a"]) == [gone]
    assert [revision.document for revision in await store.get_revisions(NOTES, "a")] == [gone]
    assert [each.document for [each] in await store.get_histories(NOTES, ["a"])] == [gone]
    assert await store.get_vectors(NOTES, ["a"]) == [[]]
    assert await store.get_embedded(NOTES, MODEL.name, ["a"]) == frozenset()
    assert await find_ids(store, asking("canary")) == ["b"]
    assert await find_ids(store, FindRequest(NOTES, vector=near((1, 2, 3, 4)))) == []
    assert await find_ids(store, FindRequest(NOTES, title_contains=second.title)) in ([], ["b"])
    assert list(await store.get_digests(NOTES)) == ["b"]


async def test_scores_are_those_of_what_is_left(store: Store) -> None:
    await erase(store, empty(await fill(store), 3))
    found = await store.find(asking("canary"))
    [statistics] = await store.get_statistics()
    assert statistics.documents[State.WITHDRAWN] == 1
    assert statistics.embedded.get(MODEL.name, 0) == 0
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("c")])
    await erase(store, empty(make_document("c"), 2))
    assert (await store.find(asking("canary"))).candidates == found.candidates


async def test_who_read_it_before_cannot_bring_it_back(store: Store) -> None:
    second = await fill(store)
    await erase(store, empty(second, 3))
    for late in (revise(second), replace(second, version=1)):
        with pytest.raises(ConflictError):
            await put(store, late)
    async with store.transaction() as transaction:
        assert not await transaction.put_vectors(NOTES, "a", MODEL, second.text_digest, [passage((1, 2, 3, 4))])


async def test_an_older_version_erases_nothing(store: Store) -> None:
    second = await fill(store)
    async with store.transaction() as transaction:
        with pytest.raises(ConflictError):
            await transaction.erase_documents([empty(make_document("b"), 2), empty(second, 2)])
    assert await store.get_documents(NOTES, ["a"]) == [second]
    [b] = await store.get_documents(NOTES, ["b"])
    assert b is not None
    assert b.state is State.CURRENT


async def test_what_never_was_can_be_kept_from_coming(store: Store) -> None:
    await erase(store, empty(make_document("new"), 5))
    with pytest.raises(ConflictError):
        await put(store, make_document("new"))
    await erase(store, empty(make_document("new"), 6))


async def test_an_undone_erasure_erased_nothing(store: Store) -> None:
    second = await fill(store)
    with suppress(ZeroDivisionError):
        async with store.transaction() as transaction:
            await transaction.erase_documents([empty(second, 3)])
            raise ZeroDivisionError
    assert len(await store.get_revisions(NOTES, "a")) == 2
    assert sorted(await find_ids(store, asking("canary"))) == ["a", "b"]


async def test_links_are_removed_one_by_one(store: Store) -> None:
    task, a, b = Reference("task", "T-1"), Reference("notes", "a"), Reference("notes", "b")
    links = [Link("acme", task, "produced", a, day(1)), Link("acme", b, "supersedes", a, day(2))]
    await fill(store)
    async with store.transaction() as transaction:
        await transaction.put_links(links)
        await transaction.remove_links([replace(links[0], created_at=day(9)), replace(links[0], org="zenith")])
    assert await store.get_links("acme", a) == links[1:]
    assert await store.get_links("acme", task) == []
    async with store.transaction() as transaction:
        await transaction.remove_links(links)
    assert await store.list_links(None, 10) == []


async def test_scrubbing_leaves_what_is_there(store: Store) -> None:
    second = await fill(store)
    record = Metadata(MetadataKey("acme", "quota", "x"), {"used": 1})
    async with store.transaction() as transaction:
        await transaction.put_metadata([record])
        await transaction.erase_documents([empty(second, 3)])
    await store.scrub()
    assert await find_ids(store, asking("canary")) == ["b"]
    assert await store.get_metadata(record.key) == record
    await put(store, make_document("c", "A third canary."))
    assert sorted(await find_ids(store, asking("canary"))) == ["b", "c"]
