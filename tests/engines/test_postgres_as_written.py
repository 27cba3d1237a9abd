"""The first part of PostgreSQL's list by words: what `plainto_tsquery('simple', …)` matches, found by keyed hashes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import psycopg
import pytest

from refdesk.core.search.analysis import parse_query
from refdesk.model import BEST_FIRST, Document, FindRequest, HasAll, InState, SortKey, State
from refdesk.protocols import Store
from refdesk.stores.postgres import Limits, indexing, open_store
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.stores.samples import NOTES, make_document, put, revise

pytestmark = pytest.mark.engines

MATCH = "SELECT (to_tsvector('simple', %s) || to_tsvector('simple', %s)) @@ plainto_tsquery('simple', %s)"
TEXT = (
    "refund Refunds REFUND straße STRASSE İstanbul 退款 政策 退款政策 mother-in-law in-law law v1.2.3 1.5 -7 +49 e.g. "
    "https://example.com/a/b?c=d example.com /etc/passwd ann@example.com don't don’t l'été ete été 🔥 🔥🔥 a.b a_b "
    "a&b & | !not <b> <b>bold</b> &amp; (x) x:y* the of and 10,000 C++ C# it's naïve naïve ﬁne 2026-01-05 12:30 "
    "50% \\ ' '' \" :* foo\u00a0bar zero\u200bwidth ไทย देवनागरी अ مرحبا"
)
WORDS = TEXT.split(" ")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_store(get_store_url(tmp_path)) as opened:
        yield opened


@pytest.fixture
def connect(tmp_path: Path) -> psycopg.Connection:
    return get_server().connect(get_schema(tmp_path), role="refdesk")


def asking(query: str, **changes: object) -> FindRequest:
    values: dict[str, object] = {
        "collection": NOTES,
        "text": parse_query(query, quotes_bind=True),
        "as_written": query,
        "depth": 1000,
    }
    return FindRequest(**(values | changes))  # pyright: ignore[reportArgumentType]


async def find_as_written(store: Store, request: FindRequest) -> list[str]:
    """Return the ids of those that are marked; they are the first."""
    candidates = (await store.find(request)).candidates
    marks = [candidate.as_written for candidate in candidates]
    assert marks == sorted(marks, reverse=True)
    return [candidate.id for candidate in candidates if candidate.as_written]


def match(connection: psycopg.Connection, documents: list[Document], query: str) -> set[str]:
    """Return the ids of those that PostgreSQL's own operator matches."""
    return {each.id for each in documents if fetch(connection, MATCH, (each.title, each.body, query)) == [(True,)]}


async def test_what_is_marked_is_exactly_what_the_operator_of_postgresql_matches(
    store: Store, connect: psycopg.Connection
) -> None:
    random, found = Random(5), 0
    texts = [(" ".join(random.choices(WORDS, k=2)), " ".join(random.choices(WORDS, k=25))) for _ in range(60)]
    documents = [make_document(f"d{number:02}", body, title) for number, (title, body) in enumerate(texts)]
    await put(store, *documents)
    queries = [*WORDS, *(" ".join(random.choices(WORDS, k=random.choice([2, 2, 3]))) for _ in range(150))]
    with connect as connection:
        for query in queries:
            expected = match(connection, documents, query)
            # A part in double quotes must occur as a phrase; that stands above.
            if not parse_query(query, quotes_bind=True).phrases:
                assert set(await find_as_written(store, asking(query))) == expected, query
                found += len(expected)
    assert found > 1000


async def test_words_as_they_are_written_come_before_better_scores(store: Store) -> None:
    await put(
        store,
        make_document("stems", "Refunded, refunding: refunds of a refunded refund policy " * 3, "Refunding policies"),
        make_document(
            "exact", "Far down in a long text about other things it says which refunds. " + "Other words. " * 60
        ),
    )
    request = asking("which refunds")
    assert [each.id for each in (await store.find(request)).candidates] == ["exact", "stems"]
    without = asking("which refunds", as_written=None)
    assert [(each.id, each.as_written) for each in (await store.find(without)).candidates] == [
        ("stems", False),
        ("exact", False),
    ]


async def test_frequent_words_as_they_are_written_are_found_where_frequent_terms_make_no_candidates(
    tmp_path: Path,
) -> None:
    documents = [make_document(f"d{number:03}", f"printers jam {number}") for number in range(100)]
    async with open_store(get_store_url(tmp_path), limits=Limits(ranked_documents=0)) as pruning:
        await put(pruning, *documents, make_document("rare", "printer zebra"))
        found = await pruning.find(asking("printers 42 zebra", depth=5))
        assert found.candidates[0].id == "rare"
        assert await find_as_written(pruning, asking("printers jam", depth=200)) == [each.id for each in documents]


async def test_filters_and_orgs_hold_for_words_as_they_are_written(store: Store) -> None:
    elsewhere = NOTES.__class__("zenith", NOTES.toolset)
    await put(
        store,
        make_document("a", "refund policy", facets={"tags": ("x",)}),
        make_document("b", "refund policy", facets={"tags": ("y",)}),
        make_document("c", "refund policy", collection=elsewhere),
    )
    assert await find_as_written(store, asking("refund", where=HasAll("tags", ("x",)))) == ["a"]
    assert await find_as_written(store, asking("refund", where=InState((State.CURRENT,)))) == ["a", "b"]
    assert await find_as_written(store, asking("refund", collection=elsewhere)) == ["c"]


async def test_a_new_version_is_found_as_it_is_written_now(store: Store) -> None:
    document = make_document("a", "old wording")
    await put(store, document)
    await put(store, revise(document, body="new wording"))
    assert await find_as_written(store, asking("old wording")) == []
    assert await find_as_written(store, asking("new wording")) == ["a"]


async def test_a_word_that_is_its_own_term_has_one_key(store: Store, connect: psycopg.Connection) -> None:
    await put(store, make_document("a", "gamma printer delta printers kappa"), make_document("b", "printers kappa"))
    keys = "SELECT (cardinality(terms), cardinality(others), cardinality(inflected))::text FROM entries ORDER BY id"
    with connect as connection:
        connection.execute("SELECT set_config('refdesk.org', 'acme', false), set_config('refdesk.any', '{0}', false)")
        # Beside the number of all entries there is one for "printers", and in the second "printer" is written nowhere.
        assert fetch(connection, keys) == [("(4,2,)",), ("(2,2,1)",)]
    assert await find_as_written(store, asking("printer")) == ["a"]
    assert await find_as_written(store, asking("printers")) == ["a", "b"]
    assert [each.id for each in (await store.find(asking("printer"))).candidates] == ["a", "b"]


async def test_a_word_as_it_is_written_that_is_no_term_of_a_text_makes_no_match(store: Store) -> None:
    # PostgreSQL parts "it's" into "it" and "s"; the analysis knows no term "s" there.
    await put(store, make_document("a", "it's kappa"), make_document("b", "s kappa"))
    found = await store.find(asking("s", as_written=None))
    assert ([each.id for each in found.candidates], found.total) == (["b"], 1)
    assert set(await find_as_written(store, asking("s"))) == {"a", "b"}


async def test_a_text_of_more_words_than_postgresql_takes_at_once_is_stored_and_found(store: Store) -> None:
    words = [f"w{number:05x}-{number:05}" for number in range(100_000)]
    await put(
        store,
        make_document("longest", " ".join(words)),
        make_document("long", "\n".join(words[:12_000])),
        make_document("unbroken", "x" * 3 * indexing.PIECE),
    )
    assert await find_as_written(store, asking(words[0])) == ["long", "longest"]
    assert await find_as_written(store, asking(words[11_999])) == ["long", "longest"]


async def test_words_that_cannot_be_stored_are_not_found_and_harm_nothing(store: Store) -> None:
    await put(store, make_document("a", "null"))
    for query in ("null\x00", "null \ud800", "", "   ", "x" * 2000, "'" * 2000):
        assert await find_as_written(store, asking(query)) == []


async def test_another_order_stands_within_what_is_written_so(store: Store) -> None:
    await put(store, make_document("b", "refunds", title="b"), make_document("a", "refunds", title="a"))
    titles = asking("refunds", order=(SortKey("title", descending=True), SortKey("id")))
    assert await find_as_written(store, titles) == ["b", "a"]
    assert await find_as_written(store, asking("refunds", order=BEST_FIRST)) == ["a", "b"]
