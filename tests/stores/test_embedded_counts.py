"""How much of each collection has vectors is known without a look at all documents, and stays right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refdesk.model import Collection, Document, EmbeddedCount, EmbeddingModel, State
from refdesk.protocols import Store
from tests.stores.samples import MODEL, NOTES, embed, make_document, passage, put, revise

OTHER = EmbeddingModel("other", 4)
EAST, NORTH = (1, 0, 0, 0), (0, 1, 0, 0)
ELSEWHERE = Collection("zenith", "notes")


async def count(store: Store, model: str = MODEL.name) -> dict[Collection, tuple[int, int]]:
    return {each.collection: (each.documents, each.embedded) for each in await store.count_embedded(model)}


async def erase(store: Store, document: Document) -> None:
    async with store.transaction() as transaction:
        erased = replace(document, version=document.version + 1, state=State.WITHDRAWN, title="", body="")
        await transaction.erase_documents([erased])


async def test_each_collection_is_counted_with_its_mark(store: Store) -> None:
    assert await store.count_embedded(MODEL.name) == []
    await put(store, document := make_document("a"), make_document("b"), make_document("c", collection=ELSEWHERE))
    await embed(store, document, passage(EAST), passage(NORTH))
    marks = await store.list_collections()
    assert await store.count_embedded(MODEL.name) == [
        EmbeddedCount(NOTES, 2, 1, marks[NOTES]),
        EmbeddedCount(ELSEWHERE, 1, 0, marks[ELSEWHERE]),
    ]
    assert await count(store, OTHER.name) == {NOTES: (2, 0), ELSEWHERE: (1, 0)}


async def test_embedding_a_document_again_counts_once(store: Store) -> None:
    await put(store, document := make_document("a"))
    for passages in ([passage(EAST)], [passage(NORTH), passage(EAST)], [passage(EAST)]):
        await embed(store, document, *passages)
        assert await count(store) == {NOTES: (1, 1)}


@pytest.mark.parametrize("state", [State.CURRENT, State.SUPERSEDED])
async def test_a_document_counts_while_it_is_not_withdrawn_and_its_text_is_the_same(store: Store, state: State) -> None:
    await put(store, document := make_document("a", body="One."), make_document("b"))
    await embed(store, document, passage(EAST))
    steps: list[tuple[dict[str, object], tuple[int, int]]] = [
        ({"state": state}, (2, 1)),
        ({"state": State.WITHDRAWN}, (1, 0)),
        ({"facets": {"tags": ("x",)}}, (1, 0)),
        ({"state": state}, (2, 1)),
        ({"state": State.WITHDRAWN}, (1, 0)),
        ({"body": "Two.", "state": state}, (2, 0)),
    ]
    for changes, expected in steps:
        await put(store, document := revise(document, **changes))
        assert await count(store) == {NOTES: expected}, changes
    await embed(store, document, passage(EAST))
    await put(store, document := revise(document, body="Three.", state=State.WITHDRAWN))
    assert await count(store) == {NOTES: (1, 0)}
    await put(store, document := revise(document, state=state))
    await embed(store, document, passage(EAST))
    assert await count(store) == {NOTES: (2, 1)}
    await erase(store, document)
    assert await count(store) == {NOTES: (1, 0)}


async def test_versions_that_are_put_together_count_as_the_last_does(store: Store) -> None:
    await put(store, document := make_document("a"))
    await embed(store, document, passage(EAST))
    versions = [document]
    for state in (State.WITHDRAWN, State.CURRENT, State.WITHDRAWN):
        versions.append(revise(versions[-1], state=state))
    await put(store, *versions[1:])
    assert await count(store) == {NOTES: (0, 0)}
    await put(store, revise(versions[-1], state=State.CURRENT))
    assert await count(store) == {NOTES: (1, 1)}


async def test_what_was_embedded_while_it_was_withdrawn_never_counts(store: Store) -> None:
    await put(store, document := make_document("a", state=State.WITHDRAWN))
    assert not await embed(store, document, passage(EAST))
    assert await count(store) == {NOTES: (0, 0)}


async def test_vectors_that_are_removed_with_their_model_count_no_longer(store: Store) -> None:
    await put(store, document := make_document("a"))
    assert await store.list_models() == []
    for model in (MODEL, OTHER):
        await embed(store, document, passage(EAST), model=model)
    assert await store.list_models() == sorted([MODEL.name, OTHER.name])
    async with store.transaction() as transaction:
        await transaction.remove_vectors(MODEL.name)
    assert await store.list_models() == [OTHER.name]
    assert (await count(store), await count(store, OTHER.name)) == ({NOTES: (1, 0)}, {NOTES: (1, 1)})


async def test_a_count_that_is_right_stays_as_it_is_when_it_is_made_again(store: Store) -> None:
    await put(store, document := make_document("a"), make_document("b"))
    await embed(store, document, passage(EAST))
    for model in (MODEL.name, "unknown"):
        await store.recount_embedded(NOTES, model)
    assert await count(store) == {NOTES: (2, 1)}


async def test_the_statistics_of_one_org_are_those_of_its_collections(store: Store) -> None:
    await put(store, document := make_document("a"), make_document("b", collection=ELSEWHERE))
    await embed(store, document, passage(EAST))
    every = {each.collection: each for each in await store.get_statistics()}
    assert await store.get_statistics(NOTES.org) == [every[NOTES]]
    assert await store.get_statistics("nobody") == []
