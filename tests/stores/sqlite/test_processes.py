"""Several processes on one file: each sees the others' commits, none loses one, none gets in the way."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from refdesk.protocols import Store
from refdesk.stores.sqlite import open_store
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.migrations import load_migrations
from tests.stores.samples import NOTES, asking, embed, find_ids, make_document, near, passage, put, revise
from tests.stores.sqlite.processes import Worker, running
from tests.stores.sqlite.worker import COUNTER

EAST, NORTH = [1.0, 0, 0, 0], [0, 1.0, 0, 0]


@pytest.fixture
def other(tmp_path: Path, sqlite: Store) -> Generator[Worker]:
    """Another process on the file of `sqlite`."""
    with running(1, "obey", tmp_path / "store.sqlite3") as (worker,):
        yield worker


async def test_a_search_finds_what_another_process_has_just_written(sqlite: Store, other: Worker) -> None:
    assert await find_ids(sqlite, asking("apple")) == []
    for number in range(5):
        assert other.order("put", id=f"d{number}", body=f"apple {'pear ' * number}") == "done"
        assert len(await find_ids(sqlite, asking("apple"))) == number + 1
        assert [each is not None for each in await sqlite.get_documents(NOTES, [f"d{number}"])] == [True]
    other.order("put", id="d0", body="plum")
    assert await find_ids(sqlite, asking("plum")) == ["d0"]
    assert "d0" not in await find_ids(sqlite, asking("apple"))


async def test_another_process_finds_what_was_written_here(sqlite: Store, other: Worker) -> None:
    document = make_document("mine", "apple")
    await put(sqlite, document)
    assert other.order("find", text="apple") == ["mine"]
    await put(sqlite, revise(document, body="pear"))
    assert other.order("find", text="apple") == []
    assert other.order("find", text="pear") == ["mine"]


async def test_what_another_process_withdraws_is_found_no_more(sqlite: Store, other: Worker) -> None:
    await put(sqlite, make_document("a", "apple"), make_document("b", "apple"))
    assert await find_ids(sqlite, asking("apple")) == ["a", "b"]
    other.order("withdraw", id="a")
    assert await find_ids(sqlite, asking("apple")) == ["b"]


async def test_vectors_of_another_process_count_at_the_next_search(sqlite: Store, other: Worker) -> None:
    documents = [make_document("a", "apple"), make_document("b", "pear")]
    await put(sqlite, *documents)
    for document in documents:
        await embed(sqlite, document, passage(EAST))
    assert await find_ids(sqlite, asking(vector=near(EAST), depth=1)) == ["a"]
    assert other.order("embed", id="a", direction=NORTH) is True
    assert await find_ids(sqlite, asking(vector=near(EAST), depth=1)) == ["b"]
    assert await find_ids(sqlite, asking(vector=near(NORTH), depth=1)) == ["a"]
    assert other.order("remove_model") == 2
    assert await find_ids(sqlite, asking(vector=near(EAST))) == []
    assert other.order("embed", id="b", direction=NORTH) is True
    assert await find_ids(sqlite, asking(vector=near(EAST))) == ["b"]


async def test_a_reworded_document_of_another_process_loses_its_vectors_here(sqlite: Store, other: Worker) -> None:
    document = make_document("a", "apple")
    await put(sqlite, document)
    await embed(sqlite, document, passage(EAST))
    assert await find_ids(sqlite, asking(vector=near(EAST))) == ["a"]
    other.order("put", id="a", body="pear")
    assert await find_ids(sqlite, asking(vector=near(EAST))) == []


async def test_four_processes_that_count_together_lose_no_count(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with running(4, "increment", path, "25") as workers:
        assert [worker.hear() for worker in workers] == ["done"] * 4
        assert [worker.finish() for worker in workers] == [0] * 4
    async with open_store(path) as store:
        record = await store.get_metadata(COUNTER)
    assert record is not None
    assert record.value == {"n": 100}


def test_processes_that_start_together_on_no_file_make_one_schema(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.sqlite3"
    with running(6, "look", path) as workers:
        assert [worker.hear() for worker in workers] == ["done"] * 6
        assert [worker.finish() for worker in workers] == [0] * 6
    connection = Connection(path, 0)
    applied = [(each.number, each.name) for each in load_migrations()]
    assert connection.execute("SELECT number, name FROM migrations") == applied
    connection.close()
