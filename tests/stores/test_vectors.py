"""What every engine promises about vectors: they belong to a text and a model."""

from __future__ import annotations

import numpy as np
import pytest

from refdesk.errors import InvalidInputError
from refdesk.model import Collection, EmbeddedPassage, EmbeddingModel, State
from refdesk.protocols import Store
from tests.stores.samples import (
    MODEL,
    NOTES,
    asking,
    embed,
    find_ids,
    make_document,
    near,
    passage,
    put,
    revise,
)

EAST, NORTH = [1.0, 0, 0, 0], [0, 1.0, 0, 0]
OTHER = EmbeddingModel("other", 2)


async def test_documents_without_vectors_of_a_model_are_named_by_id(store: Store) -> None:
    documents = [make_document(id) for id in ("c", "a", "d", "b")]
    await put(store, *documents, make_document("gone", state=State.WITHDRAWN))
    await embed(store, documents[1], passage(EAST))
    assert await store.get_unembedded(NOTES, MODEL.name, 10) == ["b", "c", "d"]
    assert await store.get_unembedded(NOTES, MODEL.name, 2) == ["b", "c"]
    assert await store.get_unembedded(NOTES, OTHER.name, 10) == ["a", "b", "c", "d"]


async def test_those_with_vectors_are_told_from_those_without(store: Store) -> None:
    a, b = make_document("a"), make_document("b")
    await put(store, a, b)
    await embed(store, a, passage(EAST))
    assert await store.get_embedded(NOTES, MODEL.name, ["a", "b", "nobody"]) == {"a"}
    assert await store.get_embedded(NOTES, OTHER.name, ["a"]) == frozenset()


async def test_vectors_stay_when_the_text_does_and_go_when_it_changes(store: Store) -> None:
    document = make_document("a", title="Title", body="Body")
    await put(store, document)
    await embed(store, document, passage(EAST))
    retagged = revise(document, facets={"tags": ("new",)}, data={"x": 1})
    await put(store, retagged)
    assert await find_ids(store, asking(vector=near(EAST))) == ["a"]
    reworded = revise(retagged, title="Another title")
    await put(store, reworded)
    assert await find_ids(store, asking(vector=near(EAST))) == []
    assert await store.get_unembedded(NOTES, MODEL.name, 10) == ["a"]


async def test_vectors_made_from_an_older_text_are_not_kept(store: Store) -> None:
    old = make_document("a", body="old")
    await put(store, old)
    await put(store, revise(old, body="new"))
    assert not await embed(store, old, passage(EAST))
    assert await store.get_unembedded(NOTES, MODEL.name, 10) == ["a"]


async def test_vectors_of_a_document_that_is_gone_are_not_kept(store: Store) -> None:
    gone = make_document("gone")
    await put(store, gone)
    await put(store, revise(gone, state=State.WITHDRAWN))
    assert not await embed(store, gone, passage(EAST))
    assert not await embed(store, make_document("never"), passage(EAST))


async def test_new_vectors_take_the_place_of_those_of_the_same_model_only(store: Store) -> None:
    document = make_document("a")
    await put(store, document)
    assert await embed(store, document, passage(EAST), passage(NORTH))
    assert await embed(store, document, passage([1, 0]), model=OTHER)
    assert await embed(store, document, passage([0, 0, 1, 0]))
    (by_model,) = (await store.find(asking(vector=near(EAST)))).candidates
    (by_other,) = (await store.find(asking(vector=near([1, 0], OTHER.name)))).candidates
    assert (by_model.cosine, by_other.cosine) == (0.0, 1.0)


async def test_vectors_set_anew_count_at_the_next_search(store: Store) -> None:
    documents = [make_document("a"), make_document("b")]
    await put(store, *documents)
    await embed(store, documents[0], passage(EAST))
    assert await find_ids(store, asking(vector=near(EAST))) == ["a"]
    await embed(store, documents[1], passage([1, 1, 0, 0]))
    assert await find_ids(store, asking(vector=near(EAST))) == ["a", "b"]
    await embed(store, documents[0], passage(NORTH))
    assert await find_ids(store, asking(vector=near(EAST))) == ["b", "a"]


async def test_removing_a_models_vectors_reaches_every_collection_and_no_other_model(store: Store) -> None:
    here = make_document("a")
    there = make_document("a", collection=Collection("zenith", "notes"))
    await put(store, here, there)
    for document in (here, there):
        await embed(store, document, passage(EAST), passage(NORTH))
        await embed(store, document, passage([1, 0]), model=OTHER)
        await store.find(asking(collection=document.collection, vector=near(EAST)))
    async with store.transaction() as transaction:
        assert await transaction.remove_vectors(MODEL.name) == 2
        assert await transaction.remove_vectors(MODEL.name) == 0
        assert await transaction.remove_vectors("nobody's") == 0
    for document in (here, there):
        assert await find_ids(store, asking(collection=document.collection, vector=near(EAST))) == []
        assert await find_ids(store, asking(collection=document.collection, vector=near([1, 0], "other"))) == ["a"]


async def test_a_model_may_come_back_in_another_width_once_its_vectors_are_removed(store: Store) -> None:
    document = make_document("a")
    await put(store, document)
    await embed(store, document, passage(EAST))
    assert await find_ids(store, asking(vector=near(EAST))) == ["a"]
    async with store.transaction() as transaction:
        await transaction.remove_vectors(MODEL.name)
    assert await embed(store, document, passage([1, 0]), model=EmbeddingModel(MODEL.name, 2))
    assert await find_ids(store, asking(vector=near([1, 0]))) == ["a"]


async def test_a_document_that_comes_back_with_the_same_text_brings_its_vectors(store: Store) -> None:
    document = make_document("a")
    await put(store, document)
    await embed(store, document, passage(EAST))
    gone = revise(document, state=State.WITHDRAWN)
    await put(store, gone)
    assert await find_ids(store, asking(vector=near(EAST))) == []
    await put(store, revise(gone, state=State.CURRENT))
    assert await find_ids(store, asking(vector=near(EAST))) == ["a"]


@pytest.mark.parametrize("components", [[1.0, 0.0], [float("nan"), 0, 0, 0], [float("inf"), 0, 0, 0]])
async def test_a_vector_that_cannot_be_compared_is_refused(store: Store, components: list[float]) -> None:
    document = make_document("a")
    await put(store, document)
    with pytest.raises(InvalidInputError):
        await embed(store, document, EmbeddedPassage(0, 1, np.array(components, np.float32)))
    assert await store.get_unembedded(NOTES, MODEL.name, 10) == ["a"]


async def test_the_best_passage_counts_and_of_equals_the_first(store: Store) -> None:
    document = make_document("a", body="0123456789")
    await put(store, document)
    parts = [
        passage(NORTH, 0, 2),
        passage([1, 1, 0, 0], 2, 4),
        passage([1, 1, 0, 0], 4, 6),
        passage([0, 0, 1, 0], 6, 8),
    ]
    await embed(store, document, *parts)
    (found,) = (await store.find(asking(vector=near(EAST)))).candidates
    assert found.passage == (2, 4)
    assert found.cosine == pytest.approx(0.5**0.5, abs=1e-3)


async def test_cosines_reach_from_minus_one_to_one(store: Store) -> None:
    documents = [make_document(id) for id in ("ahead", "behind", "beside")]
    await put(store, *documents)
    for document, direction in zip(documents, (EAST, [-1.0, 0, 0, 0], NORTH), strict=True):
        await embed(store, document, passage(direction))
    found = await store.find(asking(vector=near(EAST)))
    assert [(each.id, each.cosine) for each in found.candidates] == [("ahead", 1.0), ("beside", 0.0), ("behind", -1.0)]


async def test_the_nearest_join_the_text_matches_and_each_carries_both_scores(store: Store) -> None:
    both, text, meaning = (
        make_document("both", "apple"),
        make_document("text", "apple apple"),
        make_document("meaning", "pear"),
    )
    await put(store, both, text, meaning, make_document("neither", "plum"))
    await embed(store, both, passage(NORTH))
    await embed(store, meaning, passage(EAST))
    found = await store.find(asking("apple", vector=near(EAST)))
    assert [each.id for each in found.candidates] == ["text", "both", "meaning"]
    assert [each.cosine for each in found.candidates] == [None, 0.0, 1.0]
    assert [each.lexical > 0 for each in found.candidates] == [True, True, False]
    assert [each.all_terms for each in found.candidates] == [True, True, False]
    assert found.total == 2


async def test_with_a_vector_alone_nothing_matches_by_text(store: Store) -> None:
    document = make_document("a", "apple", facets={"tags": ("x",)})
    await put(store, document)
    await embed(store, document, passage(EAST))
    found = await store.find(asking(vector=near(EAST), facets=("tags",)))
    assert [(each.id, each.lexical, each.all_terms) for each in found.candidates] == [("a", 0.0, False)]
    assert (found.total, found.facets) == (0, {"tags": ()})


async def test_depth_bounds_each_list_and_ties_of_nearness_go_by_id(store: Store) -> None:
    documents = [make_document(id, "apple" if id in "ab" else "pear") for id in "dbca"]
    await put(store, *documents)
    for document in documents:
        await embed(store, document, passage(EAST))
    found = await store.find(asking("pear", vector=near(EAST), depth=2))
    assert [each.id for each in found.candidates] == ["c", "d", "a", "b"]
    assert found.total == 2


async def test_a_text_match_below_the_depth_may_still_be_among_the_nearest(store: Store) -> None:
    first, second = make_document("first", "apple apple"), make_document("second", "apple pear")
    await put(store, first, second)
    await embed(store, second, passage(EAST))
    found = await store.find(asking("apple", vector=near(EAST), depth=1))
    assert [(each.id, each.cosine) for each in found.candidates] == [("first", None), ("second", 1.0)]
    assert found.candidates[1].lexical > 0


async def test_a_model_nobody_embedded_with_finds_nothing(store: Store) -> None:
    await put(store, make_document("a", "apple"))
    assert await find_ids(store, asking(vector=near(EAST, "unheard-of"))) == []
    assert await find_ids(store, asking("apple", vector=near(EAST, "unheard-of"))) == ["a"]
