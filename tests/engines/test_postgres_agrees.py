"""PostgreSQL answers as the embedded engine on the same data: the same set, the same first ones, as well ranked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.engines import answer, embed_by_hashing, get_ndcg, get_overlap, load
from benchmarks.quality import read_collection
from refdesk.core.clock import FixedClock
from refdesk.core.search.analysis import analyse
from refdesk.core.search.bm25 import idf
from refdesk.model import (
    BEST_FIRST,
    And,
    Collection,
    Document,
    Filter,
    FindRequest,
    HasAll,
    HasAny,
    Not,
    Overlaps,
    SortKey,
    TextQuery,
)
from refdesk.protocols import Store
from refdesk.stores.postgres import Limits, open_store
from refdesk.stores.postgres.lexical import FREQUENT_SHARE
from tests.engines.postgres import get_store_url
from tests.stores.conftest import open_sqlite
from tests.stores.samples import NOTES, NOW, asking, day, make_document, on, put
from tests.stores.walks import assert_same

pytestmark = pytest.mark.engines

QUESTIONS = 60
VOCABULARY = [f"word{rank}" for rank in range(3000)]
WEIGHTS = [1 / (rank + 2.7) for rank in range(len(VOCABULARY))]
FILTERS: tuple[Filter | None, ...] = (
    None,
    HasAll("tags", ("t1",)),
    And((HasAny("tags", ("T2", "t3")), Not(HasAll("ring", ("r1",))))),
    Not(Overlaps(("expires",), until=day(10))),
)


@dataclass(frozen=True)
class Pair:
    embedded: Store
    pruning: Store
    exact: Store
    words: list[set[str]]


@pytest.fixture(scope="module")
async def pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Pair]:
    folder, random = tmp_path_factory.mktemp("pair"), Random(11)
    documents = [draw_document(random, number) for number in range(800)]
    url = get_store_url(folder)
    async with (
        open_sqlite(folder, FixedClock(NOW)) as embedded,
        open_store(url) as exact,
        open_store(url, limits=Limits(ranked_documents=0)) as pruning,
    ):
        for store in (embedded, exact):
            await put(store, *documents)
        yield Pair(embedded, pruning, exact, [{*analyse(each.title), *analyse(each.body)} for each in documents])


def draw_document(random: Random, number: int) -> Document:
    return make_document(
        f"d{number:03}",
        " ".join(random.choices(VOCABULARY, WEIGHTS, k=random.randrange(5, 120))),
        title=" ".join(random.choices(VOCABULARY, WEIGHTS, k=6)),
        facets={"tags": tuple(f"t{random.randrange(5)}" for _ in range(2)), "ring": (f"r{number % 3}",)},
        date_ranges={"expires": on(random.randrange(20))} if number % 2 else {},
        modified_at=day(random.randrange(30)),
    )


def draw_request(random: Random) -> FindRequest:
    terms = tuple(dict.fromkeys(analyse(" ".join(random.choices(VOCABULARY, WEIGHTS, k=random.randrange(1, 6))))))
    order = random.choice([BEST_FIRST, (SortKey("all_terms", descending=True), *BEST_FIRST), (SortKey("modified"),)])
    return FindRequest(
        NOTES,
        TextQuery(terms),
        where=random.choice(FILTERS),
        depth=random.choice((10, 100)),
        order=order,
        facets=("tags", "ring"),
        title_contains=random.choice(VOCABULARY),
    )


async def test_answers_on_invented_data_are_the_embedded_ones(pair: Pair) -> None:
    random = Random(5)
    for _ in range(QUESTIONS):
        request = draw_request(random)
        assert_same(await pair.exact.find(request), await pair.embedded.find(request), request)


async def test_a_filter_lets_the_same_documents_pass(pair: Pair) -> None:
    for condition in FILTERS:
        request = FindRequest(NOTES, where=condition, depth=10_000, order=(SortKey("id"),))
        found, expected = await pair.exact.find(request), await pair.embedded.find(request)
        assert [each.id for each in found.candidates] == [each.id for each in expected.candidates]
        assert expected.candidates


async def test_leaving_frequent_terms_out_moves_nothing_that_scores_above_them(pair: Pair) -> None:
    random, pruned = Random(6), 0
    for _ in range(QUESTIONS):
        request = replace(draw_request(random), order=BEST_FIRST, title_contains=None)
        found, exact = await pair.pruning.find(request), await pair.exact.find(request)
        assert (found.total, found.facets) == (exact.total, exact.facets)
        assert len(found.candidates) == len(exact.candidates)
        assert request.text is not None
        bound = get_bound(request.text, pair.words)
        ids = [each.id for each in exact.candidates if each.lexical >= bound]
        assert [each.id for each in found.candidates][: len(ids)] == ids
        assert [each.lexical for each in found.candidates][: len(ids)] == [
            each.lexical for each in exact.candidates if each.lexical >= bound
        ]
        # Whoever wants no count gets as many documents for it.
        uncounted = await pair.pruning.find(replace(request, counts=False))
        assert len(uncounted.candidates) == len(exact.candidates)
        assert uncounted.facets == exact.facets
        pruned += found != exact
    # Were nothing ever left out, the test would show nothing.
    assert pruned


def get_bound(text: TextQuery, words: list[set[str]]) -> float:
    """Return what a document can score by frequent terms alone."""
    counts = [sum(term in held for held in words) for term in text.terms]
    return sum(idf(len(words), count) for count in counts if count * FREQUENT_SHARE > len(words))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["emanual", "xquad-en", "xquad-zh", pytest.param("cacm", marks=pytest.mark.soak)])
async def test_real_collections_are_ranked_alike_and_as_well(shared_data: Path, tmp_path: Path, name: str) -> None:
    judged, place = read_collection(shared_data / "retrieval" / name), Collection("acme", name)
    vectors = await embed_by_hashing(judged, QUESTIONS)
    async with (
        open_sqlite(tmp_path, FixedClock(NOW)) as embedded,
        open_store(get_store_url(tmp_path)) as postgres,
    ):
        for store in (embedded, postgres):
            await load(store, place, judged, vectors)
        expected, found = [await answer(store, place, judged, vectors) for store in (embedded, postgres)]
    assert len(expected.rankings) == min(QUESTIONS, len(judged.queries))
    assert get_overlap(expected, found) >= 0.9
    assert get_ndcg(judged, found) == pytest.approx(get_ndcg(judged, expected), abs=0.01)
    assert [set(ranking) for ranking in found.rankings] == [set(ranking) for ranking in expected.rankings]


async def test_a_word_that_occurs_hundreds_of_times_scores_as_in_the_embedded_engine(tmp_path: Path) -> None:
    counts = (1, 2, 254, 255, 256, 257, 700, 5000)
    documents = [make_document(f"d{count:04}", "pump " * count + "valve " * (count % 3)) for count in counts]
    async with open_sqlite(tmp_path, FixedClock(NOW)) as embedded, open_store(get_store_url(tmp_path)) as store:
        for each in (embedded, store):
            await put(each, *documents)
        request = asking("pump valve", order=BEST_FIRST)
        expected = [(each.id, each.lexical) for each in (await embedded.find(request)).candidates]
        found = [(each.id, each.lexical) for each in (await store.find(request)).candidates]
    assert [id for id, _ in found] == [id for id, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-6)
