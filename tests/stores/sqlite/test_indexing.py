"""What is derived may be damaged, outdated or put back: it is made anew from the truth."""

from __future__ import annotations

import shutil
from pathlib import Path
from zlib import crc32

import pytest

from refdesk.model import Collection, State
from refdesk.protocols import Store
from refdesk.stores.sqlite import indexing, open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.index import ANALYSIS_VERSION, encode_terms
from tests.stores.samples import MODEL, NOTES, asking, embed, find_ids, make_document, near, passage, put, revise

EAST = [1.0, 0, 0, 0]


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file with two documents, both embedded."""
    path = tmp_path / "a.sqlite3"
    async with open_store(path) as store:
        documents = [make_document("a", "apple"), make_document("b", "pear")]
        await put(store, *documents)
        for document in documents:
            await embed(store, document, passage(EAST))
    return path


def run_sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = Connection(path, 0)
    rows = connection.execute(statement)
    connection.close()
    return rows


@pytest.mark.parametrize(
    "damage",
    [
        "terms = x'0102030405'",
        "terms = x''",
        "terms = (SELECT terms FROM documents WHERE id = 'b')",
        f"analysis = {ANALYSIS_VERSION - 1}, terms = zeroblob(8), terms_check = {crc32(bytes(8))}",
    ],
)
async def test_analysed_text_that_cannot_be_used_is_made_anew_and_written_back(path: Path, damage: str) -> None:
    run_sql(path, f"UPDATE documents SET {damage} WHERE id = 'a'")  # noqa: S608
    async with open_store(path) as store:
        assert await find_ids(store, asking("apple")) == ["a"]
        assert await find_ids(store, asking("pear")) == ["b"]
    assert run_sql(path, "SELECT terms, analysis FROM documents WHERE id = 'a'") == [
        (encode_terms("", "apple"), ANALYSIS_VERSION)
    ]


async def test_of_what_is_superseded_no_analysed_text_is_kept_and_it_is_found_all_the_same(path: Path) -> None:
    old = revise(make_document("a", "apple"), state=State.SUPERSEDED)
    async with open_store(path) as store:
        await put(store, old)
        before = await store.find(asking("apple"))
    assert run_sql(path, "SELECT terms FROM documents WHERE id = 'a'") == [(b"",)]
    shutil.rmtree(path.with_name(f"{path.name}-index"), ignore_errors=True)
    async with open_store(path) as store:
        assert (await store.find(asking("apple"))).candidates == before.candidates
        assert [each.id for each in before.candidates] == ["a"]
        # Once it holds again, its analysed text is kept again.
        await put(store, revise(old, state=State.CURRENT))
        assert await find_ids(store, asking("apple")) == ["a"]
    assert run_sql(path, "SELECT terms FROM documents WHERE id = 'a'") == [(encode_terms("", "apple"),)]


async def test_writing_analysed_text_back_never_holds_up_a_search_inside_a_transaction(path: Path) -> None:
    run_sql(path, "UPDATE documents SET terms = x''")
    async with open_store(path) as store, store.transaction() as transaction:
        await transaction.put_documents([make_document("c", "apple")])
        assert await find_ids(store, asking("apple")) == ["a"]


async def test_writing_analysed_text_back_spares_what_was_written_meanwhile(path: Path) -> None:
    run_sql(path, "UPDATE documents SET terms = x''")
    async with open_store(path) as store:
        async with store.transaction() as transaction:
            assert await find_ids(store, asking("apple")) == ["a"]
            await transaction.put_documents([revise(make_document("a", "apple"), body="plum")])
        assert await find_ids(store, asking("plum")) == ["a"]
    assert run_sql(path, "SELECT terms FROM documents WHERE id = 'a'") == [(encode_terms("", "plum"),)]


async def test_a_damaged_vector_counts_as_none(path: Path) -> None:
    run_sql(path, "UPDATE vectors SET vector = x'00' WHERE document = (SELECT key FROM documents WHERE id = 'a')")
    async with open_store(path) as store:
        assert await find_ids(store, asking(vector=near(EAST))) == ["b"]


async def test_a_collection_put_back_to_an_earlier_state_is_indexed_anew(path: Path) -> None:
    async with open_store(path) as store:
        await put(store, make_document("c", "apple"))
        assert await find_ids(store, asking("apple")) == ["a", "c"]
        run_sql(path, "DELETE FROM documents WHERE id = 'c'; UPDATE collections SET changed = changed - 1")
        assert await find_ids(store, asking("apple")) == ["a"]


async def test_an_index_left_half_made_by_an_error_is_made_anew(path: Path) -> None:
    async with open_store(path) as store:
        assert await find_ids(store, asking("apple")) == ["a"]
        await put(store, make_document("c", "apple"), make_document("d", "apple"))
        run_sql(path, "UPDATE documents SET facets = 'not JSON' WHERE id = 'd'")
        with pytest.raises(ValueError):
            await find_ids(store, asking("apple"))
        run_sql(path, "UPDATE documents SET facets = '{}' WHERE id = 'd'")
        assert await find_ids(store, asking("apple")) == ["a", "c", "d"]
        assert await find_ids(store, asking(vector=near(EAST))) == ["a", "b"]


async def test_more_collections_than_are_kept_are_all_found(sqlite: Store) -> None:
    collections = [Collection("acme", f"t{number}") for number in range(indexing.MAX_COLLECTIONS + 3)]
    await put(sqlite, *(make_document("a", "apple", collection=each) for each in collections))
    for _ in range(2):
        for collection in collections:
            assert await find_ids(sqlite, asking("apple", collection=collection)) == ["a"]


async def test_each_write_adds_to_the_change_sequence_and_a_look_does_not(path: Path) -> None:
    async def get_change() -> object:
        return run_sql(path, "SELECT value FROM counters WHERE name = 'change'")

    before = await get_change()
    async with open_store(path) as store:
        await store.check()
        await find_ids(store, asking("apple"))
        assert await get_change() == before
        await put(store, make_document("x"), make_document("y"))
        ((first,),) = before  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        assert await get_change() == [(first + 2,)]
    assert MODEL.name in {row[0] for row in run_sql(path, "SELECT name FROM models")}
    assert NOTES.org in {row[0] for row in run_sql(path, "SELECT org FROM collections")}
