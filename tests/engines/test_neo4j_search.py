"""Neo4j's own indexes: hostile words, vectors through the index, filters that leave little, what is kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from refdesk.core.clock import FixedClock
from refdesk.model import (
    Collection,
    EmbeddedPassage,
    EmbeddingModel,
    FindRequest,
    HasAll,
    HasAny,
    Not,
    Overlaps,
    TextQuery,
    VectorQuery,
)
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.neo4j import open_store
from refdesk.stores.neo4j.address import parse_address
from refdesk.stores.neo4j.cache import DocumentCache
from refdesk.stores.neo4j.connections import Database, Limits, Rows, Runner
from refdesk.stores.neo4j.migrations import VectorIndexes
from refdesk.stores.neo4j.search import Searcher
from tests.engines.neo4j import get_namespace, get_server, get_store_url
from tests.stores.samples import NOTES, NOW, asking, embed, find_ids, get_ids, make_document, passage, put, revise

pytestmark = pytest.mark.engines

SERVER = (5, 26)
WIDE = EmbeddingModel("wide", 16)
HOSTILE_TERMS = [
    '"',
    "\\",
    'a" OR scope:"b',
    '") OR terms:("pear',
    "pear*",
    "pe?r",
    "/p.*/",
    "pear~",
    "[a TO z]",
    "{a TO z}",
    "*:*",
    "NOT",
    "AND",
    "-pear",
    "+pear",
    "pear^9",
    "&&",
    "||",
    "scope:*",
    "\\u0070\\u0065\\u0061\\u0072",
    "(((((",
    "",
    " ",
    "\n",
    "\ud800",
    "pear\x00",
]


@dataclass
class Recorder:
    """Runs statements and remembers them."""

    runner: Runner
    statements: list[str] = field(default_factory=list[str])

    async def run(self, statement: str, **parameters: object) -> Rows:
        self.statements.append(statement)
        return await self.runner.run(statement, **parameters)


@dataclass
class Bench:
    """A store, a reference with the same documents, and a searcher that is never to compare everything unasked."""

    store: Store
    reference: MemoryStore
    recorder: Recorder
    searcher: Searcher
    namespace: str

    async def fill(self, documents: int, random: Random, collection: Collection = NOTES) -> None:
        for number in range(documents):
            facets = {"n": (str(number % 20),)}
            document = make_document(f"d{number:03}", f"apple {number}", facets=facets, collection=collection)
            spread = random.choices(range(-4, 5), k=WIDE.dimensions)
            vector = np.array(spread, np.float32) / np.float32(np.linalg.norm(spread) or 1)
            for store in (self.store, self.reference):
                async with store.transaction() as transaction:
                    await transaction.put_documents([document])
                    passages = [EmbeddedPassage(0, 5, vector)]
                    await transaction.put_vectors(
                        document.collection, document.id, WIDE, document.text_digest, passages
                    )
        # Until the index answers, everything is compared.
        get_server().query("CALL db.awaitIndexes(300)")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    url, namespace = get_store_url(tmp_path), get_namespace(tmp_path)
    database = Database(parse_address(url), Limits())
    recorder = Recorder(database)
    searcher = Searcher(recorder, namespace, SERVER, VectorIndexes(database, SERVER), exact_below=10)
    async with open_store(url, clock=FixedClock(NOW)) as store:
        yield Bench(store, MemoryStore(FixedClock(NOW)), recorder, searcher, namespace)
    await database.close()


def draw_request(random: Random, **changes: object) -> FindRequest:
    direction = np.array([random.gauss(0, 1) for _ in range(WIDE.dimensions)], np.float32)
    unit = direction / np.float32(np.linalg.norm(direction))
    return replace(asking("apple", vector=VectorQuery(unit, WIDE.name), depth=5), **changes)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("term", HOSTILE_TERMS)
async def test_nothing_in_a_word_is_syntax(tmp_path: Path, term: str) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, make_document("a", "pear"), make_document("b", "pears and plums"))
        alone = await store.find(replace(asking(), text=TextQuery((term,))))
        assert (alone.candidates, alone.total) == ((), 0)
        beside = await store.find(replace(asking(), text=TextQuery((term, "pear"), ())))
        assert sorted(get_ids(beside)) == ["a", "b"]
        phrase = await store.find(replace(asking(), text=TextQuery((), ((term, "pear"),))))
        assert phrase.total == 0


@pytest.mark.parametrize("text", ["'", "\\", "=", "tags=x", "$w0", "}) RETURN d //", "\ud800", "`", "x' OR true"])
async def test_nothing_in_a_filter_is_syntax(tmp_path: Path, text: str) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, make_document("a", "pear", facets={"tags": ("x",)}))
        for where in (
            HasAll("tags", (text,)),
            HasAll(text, ("x",)),
            HasAny("tags", (text,)),
            HasAny(text, ("x",)),
            Overlaps((text,)),
        ):
            assert await find_ids(store, asking("pear", where=where)) == []
            assert await find_ids(store, asking("pear", where=Not(where))) == ["a"]
        assert await find_ids(store, asking(where=HasAny("tags", (text, "x")))) == ["a"]


async def test_facets_that_read_alike_are_told_apart(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, make_document("a", facets={"a=b": ("c",)}), make_document("b", facets={"a": ("b=c",)}))
        assert await find_ids(store, asking(where=HasAll("a=b", ("c",)))) == ["a"]
        assert await find_ids(store, asking(where=HasAll("a", ("b=c",)))) == ["b"]


async def test_a_question_of_more_words_than_lucene_takes_is_answered(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        await put(store, make_document("a", "pear"), make_document("b", "plum"))
        words = tuple(f"w{number}" for number in range(1500))
        found = await store.find(replace(asking(), text=TextQuery((*words, "plum"))))
        assert get_ids(found) == ["b"]


async def test_large_collections_are_searched_through_the_vector_index(bench: Bench) -> None:
    random = Random(1)
    await bench.fill(60, random)
    # The first search learns how large the collection is.
    await bench.searcher.find(asking("apple"))
    for _ in range(10):
        request = draw_request(random, effort=50)
        found, expected = await bench.searcher.find(request), await bench.reference.find(request)
        assert get_ids(found) == get_ids(expected)
        assert [each.cosine for each in found.candidates] == pytest.approx(
            [each.cosine for each in expected.candidates]
        )
    assert any("db.index.vector.queryNodes" in statement for statement in bench.recorder.statements)
    assert not any("vector.similarity.cosine" in statement for statement in bench.recorder.statements)


async def test_a_filter_that_leaves_little_falls_back_to_comparing_what_is_left(bench: Bench) -> None:
    random = Random(2)
    await bench.fill(60, random)
    await bench.searcher.find(asking("apple"))
    for number in range(5):
        request = draw_request(random, where=HasAll("n", (str(number),)), text=None, depth=3)
        assert get_ids(await bench.searcher.find(request)) == get_ids(await bench.reference.find(request))
    assert any("vector.similarity.cosine" in statement for statement in bench.recorder.statements)


async def test_the_index_is_asked_for_more_where_a_filter_leaves_some_and_that_is_remembered(bench: Bench) -> None:
    random = Random(4)
    await bench.fill(120, random)
    await bench.searcher.find(asking("apple"))
    some = HasAny("n", ("1", "2", "3", "4", "5"))
    asked = list[int]()
    for _ in range(2):
        bench.recorder.statements.clear()
        request = draw_request(random, where=some, text=None, depth=6)
        assert get_ids(await bench.searcher.find(request)) == get_ids(await bench.reference.find(request))
        asked.append(sum("db.index.vector.queryNodes" in each for each in bench.recorder.statements))
        assert not any("vector.similarity.cosine" in each for each in bench.recorder.statements)
    assert asked == [2, 1]


async def test_another_orgs_vectors_take_no_place_in_the_answer(bench: Bench) -> None:
    random = Random(3)
    await bench.fill(40, random, Collection("zenith", "notes"))
    await bench.fill(15, random)
    await bench.searcher.find(asking("apple"))
    for _ in range(5):
        request = draw_request(random, text=None)
        found = await bench.searcher.find(request)
        assert len(found.candidates) == 5
        assert get_ids(found) == get_ids(await bench.reference.find(request))


async def test_vectors_without_a_direction_are_neither_near_nor_far(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        nowhere, east = make_document("nowhere"), make_document("east")
        await put(store, nowhere, east)
        await embed(store, nowhere, EmbeddedPassage(0, 1, np.zeros(4, np.float32)))
        await embed(store, east, passage([1, 0, 0, 0]))
        for direction, cosines in (([1, 0, 0, 0], [1.0, 0.0]), ([-1, 0, 0, 0], [0.0, -1.0]), ([0] * 4, [0.0, 0.0])):
            query = VectorQuery(np.array(direction, np.float32), "small")
            found = await store.find(replace(asking(), vector=query))
            assert [each.cosine for each in found.candidates] == cosines


async def test_what_is_remembered_of_a_document_goes_with_its_version(bench: Bench) -> None:
    document = make_document("a", "apple", title="Old")
    await put(bench.store, document)
    assert [each.lexical > 0 for each in (await bench.searcher.find(asking("apple"))).candidates] == [True]
    bench.recorder.statements.clear()
    await bench.searcher.find(asking("apple"))
    assert len(bench.recorder.statements) == 1
    await put(bench.store, revise(document, body="pear"))
    assert (await bench.searcher.find(asking("apple"))).total == 0
    assert get_ids(await bench.searcher.find(asking("pear"))) == ["a"]


async def test_a_small_memory_only_costs_time(bench: Bench) -> None:
    await put(bench.store, *(make_document(f"d{number}", "apple") for number in range(5)))
    cache = DocumentCache(bench.recorder, bench.namespace, most=2)
    tags = {f"d{number}": (number + 1, 0) for number in range(5)}
    for _ in range(2):
        assert sorted(await cache.get_rows(NOTES, tags)) == sorted(tags)
    assert len(bench.recorder.statements) == 2


async def test_a_question_finds_what_was_committed_a_moment_ago(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        for number in range(20):
            await put(store, make_document(f"d{number:02}", "apple"))
            assert len(await find_ids(store, asking("apple"))) == number + 1
