from __future__ import annotations

from datetime import timedelta

from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock
from refdesk.core.search.retrieval import FUSED, NEAREST, SearchRequest, SearchResult, search
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.model import Document, HasAll, SortKey
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from tests.core.fakes import NOTES, NOW, ScriptedEmbedder, make_document


async def fill(store: Store, *documents: Document) -> Semantics:
    """Put documents, give them vectors, and return what embeds questions."""
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
    semantics = Semantics(store, HashingEmbedder())
    await Indexer(store, semantics, FixedClock(NOW)).run_once()
    return semantics


def ids(result: SearchResult) -> list[str]:
    return [hit.document.id for hit in result.hits]


async def test_without_text_the_newest_come_first() -> None:
    store = MemoryStore()
    days = {"old": -1, "b": 0, "a": 0}
    await fill(store, *(make_document(id, modified_at=NOW + timedelta(days=d)) for id, d in days.items()))
    result = await search(store, None, SearchRequest(NOTES))
    assert (ids(result), result.total, result.semantic) == (["a", "b", "old"], 3, "off")
    assert ids(await search(store, None, SearchRequest(NOTES, text=" \n"))) == ["a", "b", "old"]


async def test_text_of_signs_alone_matches_nothing() -> None:
    store = MemoryStore()
    await fill(store, make_document("a", "?!"))
    assert await search(store, None, SearchRequest(NOTES, text="?! ***")) == SearchResult((), 0)


async def test_stop_words_alone_still_search() -> None:
    store = MemoryStore()
    await fill(store, make_document("a", "To be or not to be."), make_document("b", "Nothing."))
    assert ids(await search(store, None, SearchRequest(NOTES, text="to be"))) == ["a"]


async def test_pages_follow_one_another_without_gap_or_overlap() -> None:
    store = MemoryStore()
    semantics = await fill(store, *(make_document(f"{n:03}", f"apple {'pie ' * (n % 7)}") for n in range(FUSED + 50)))
    for is_semantic in (False, True):
        whole = await search(store, semantics, SearchRequest(NOTES, text="apple", semantic=is_semantic, limit=999))
        pages = [
            await search(store, semantics, SearchRequest(NOTES, text="apple", semantic=is_semantic, offset=n, limit=90))
            for n in range(0, FUSED + 50, 90)
        ]
        assert [id for page in pages for id in ids(page)] == ids(whole)
        assert {page.total for page in pages} == {whole.total} == {FUSED + 50}


async def test_meaning_adds_documents_that_share_no_word_and_no_more_than_the_nearest() -> None:
    store = MemoryStore()
    others = (make_document(f"{n:03}", f"gateway{n}x") for n in range(NEAREST + 50))
    semantics = await fill(store, make_document("words", "gateways gateways"), *others)
    lexical = await search(store, semantics, SearchRequest(NOTES, text="gateways"))
    fused = await search(store, semantics, SearchRequest(NOTES, text="gateways", semantic=True, limit=500))
    assert ids(lexical) == ["words"]
    assert ids(fused)[0] == "words"
    assert len(fused.hits) == fused.total == NEAREST
    assert fused.semantic == "used"
    assert all(hit.cosine is not None for hit in fused.hits)


async def test_scores_fall_along_the_list_and_an_unrelated_question_scores_low() -> None:
    store = MemoryStore()
    semantics = await fill(store, *(make_document(f"{n}", f"refund policy number {n}") for n in range(20)))
    asked = SearchRequest(NOTES, text="refund policy", semantic=True)
    scores = [hit.score for hit in (await search(store, semantics, asked)).hits]
    assert scores == sorted(scores, reverse=True)
    assert 0.0 < scores[-1] <= scores[0] <= 1.0
    stray = await search(store, semantics, SearchRequest(NOTES, text="zebra xylophone", semantic=True))
    assert max(hit.score for hit in stray.hits) < 0.5 < scores[0]


async def test_filters_and_facets_hold_for_both_sides() -> None:
    store = MemoryStore()
    semantics = await fill(
        store,
        make_document("a", "apple", facets={"tags": ("Red",)}),
        make_document("b", "apple", facets={"tags": ("green",)}),
    )
    request = SearchRequest(NOTES, text="apple", where=HasAll("tags", ("RED",)), semantic=True, facets=("tags",))
    result = await search(store, semantics, request)
    assert ids(result) == ["a"]
    assert [(count.value, count.count) for count in result.facets["tags"]] == [("Red", 1)]


async def test_another_order_sorts_the_text_matches_alone() -> None:
    store = MemoryStore()
    semantics = await fill(store, make_document("b", "apple"), make_document("a", "apple"), make_document("c", "pear"))
    request = SearchRequest(NOTES, text="apple", semantic=True, order=(SortKey("id"),))
    result = await search(store, semantics, request)
    assert (ids(result), result.semantic) == (["a", "b"], "off")


async def test_search_answers_by_words_while_the_model_loads_or_fails_and_says_so() -> None:
    store = MemoryStore()
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a", "apple")])
    request = SearchRequest(NOTES, text="apple", semantic=True)
    for embedder, status in (
        (ScriptedEmbedder("scripted", is_ready=False), "loading"),
        (ScriptedEmbedder("scripted", is_down=True), "unavailable"),
    ):
        result = await search(store, Semantics(store, embedder), request)
        assert (ids(result), result.semantic) == (["a"], status)
    assert (await search(store, None, request)).semantic == "unavailable"
