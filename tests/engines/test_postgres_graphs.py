"""Graphs are built beside everything else: nobody waits for a build, none is done twice, none is left half done.

A build is held up by a transaction that may still write vectors: it waits for that one's end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import psycopg
import pytest
from anyio.abc import TaskStatus
from psycopg import sql

from refdesk.core.keeping.moves import Move
from refdesk.errors import StoreError
from refdesk.model import EmbeddingModel
from refdesk.protocols import Store
from refdesk.stores.postgres import Limits, hnsw, open_store
from refdesk.stores.postgres.connections import Statement
from refdesk.stores.postgres.store import PostgresStore
from refdesk.stores.postgres.transactions import Session
from tests.engines.postgres import fetch, get_schema, get_server, get_store_url
from tests.engines.postgres_worker import running
from tests.stores.samples import MODEL, asking, embed, find_ids, make_document, near, passage, put

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

GRAPH = "vectors_of_model_1"
OTHER, OTHER_GRAPH = EmbeddingModel("other", 4), "vectors_of_model_2"
BY_GRAPH = Limits(exact_passages=0)
PATIENCE_SECONDS = 120
"""Against a hang: what waits for nobody is done whatever this is."""


def connect(folder: Path) -> psycopg.Connection:
    return get_server().connect(get_schema(folder))


def get_graphs(folder: Path) -> dict[str, bool]:
    """Return the graphs that there are, and whether searches can use each."""
    with connect(folder) as connection:
        rows = fetch(
            connection,
            "SELECT relname, indisvalid AND indisready FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
            "WHERE indrelid = 'vectors'::regclass AND NOT indisprimary ORDER BY relname",
        )
    return {str(name): bool(is_usable) for name, is_usable in rows}


def get_number(folder: Path) -> object:
    """Return the server's number of the graph: that of another build is another one."""
    with connect(folder) as connection:
        ((number,),) = fetch(connection, "SELECT to_regclass(%s)::oid", [GRAPH])
    return number


@contextmanager
def builds_held(folder: Path) -> Generator[None]:
    """Let no build go on for as long as the block runs."""
    with connect(folder) as connection, connection.transaction():
        connection.execute("LOCK TABLE vectors IN ROW EXCLUSIVE MODE")
        yield


async def wait_for_builds(folder: Path, count: int) -> None:
    """Return when so many builds are at work on the server, each far enough to leave a graph where it is ended."""
    with connect(folder) as connection, anyio.fail_after(PATIENCE_SECONDS):
        asked = "SELECT phase FROM pg_stat_progress_create_index WHERE relid = 'vectors'::regclass"
        while True:
            phases = [phase for (phase,) in fetch(connection, asked)]
            if len(phases) == count and "initializing" not in phases:
                return
            await anyio.sleep(0.01)


async def write(store: Store, *numbers: int, model: EmbeddingModel = MODEL) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        for number in numbers:
            document = make_document(f"d{number}", "apple")
            await put(store, document)
            assert await embed(store, document, passage((1, number, 0, 0)), model=model)


async def wait_for_graphs(folder: Path, *, task_status: TaskStatus[Store]) -> None:
    async with opened(folder) as store:
        task_status.started(store)
        await store.graphs.wait()


async def find_near(store: Store) -> set[str]:
    return set(await find_ids(store, asking(vector=near((1, 7, 0, 0)), depth=1000)))


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[PostgresStore]:
    async with open_store(get_store_url(folder), limits=BY_GRAPH) as store:
        assert isinstance(store, PostgresStore)
        yield store


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """That of a store with vectors and no graph, as after a load that was cut off."""
    async with opened(tmp_path) as store:
        await write(store, *range(20))
    with connect(tmp_path) as connection:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(GRAPH)))
    return tmp_path


async def test_everybody_writes_while_a_graph_is_built(folder: Path) -> None:
    async with opened(folder) as store, opened(folder) as another:
        with builds_held(folder):
            await wait_for_builds(folder, 1)
            await write(store, 20, 21)
            await write(another, 22)
            assert len(await find_near(store)) == 23
            assert get_graphs(folder) == {GRAPH: False}
        await store.graphs.wait()
        await write(store, 23)
        assert get_graphs(folder) == {GRAPH: True}
        assert await find_near(store) == {f"d{number}" for number in range(24)}


async def test_a_process_that_starts_during_a_build_serves_and_builds_no_second(folder: Path) -> None:
    async with opened(folder) as store:
        with builds_held(folder):
            await wait_for_builds(folder, 1)
            number = get_number(folder)
            async with opened(folder) as another:
                assert len(await find_near(another)) == 20
                assert await hnsw.build(another.connections) is False
        await store.graphs.wait()
        async with opened(folder) as another:
            await another.graphs.wait()
    assert get_graphs(folder) == {GRAPH: True}
    assert get_number(folder) == number


async def test_who_waits_for_the_build_of_another_process_goes_on_when_it_is_done(folder: Path) -> None:
    number = None
    async with anyio.create_task_group() as group:
        with running(("build", get_store_url(folder))) as (worker,):
            with builds_held(folder):
                await wait_for_builds(folder, 1)
                number = get_number(folder)
                store = await group.start(wait_for_graphs, folder)
                await write(store, 20)
            assert worker.wait(PATIENCE_SECONDS) == 0
    assert get_graphs(folder) == {GRAPH: True}
    assert get_number(folder) == number


async def test_what_a_killed_build_leaves_is_dropped_and_built_anew_by_the_next(folder: Path) -> None:
    with builds_held(folder), running(("build", get_store_url(folder))) as (worker,):
        await wait_for_builds(folder, 1)
        number = get_number(folder)
        worker.kill()
        worker.wait(PATIENCE_SECONDS)
        # The server notices within seconds that nobody waits for it any more.
        await wait_for_builds(folder, 0)
    assert get_graphs(folder) == {GRAPH: False}
    async with opened(folder) as store:
        await store.graphs.wait()
        assert get_graphs(folder) == {GRAPH: True}
        assert get_number(folder) != number
        assert len(await find_near(store)) == 20


async def test_what_a_build_leaves_whose_process_ends_is_built_anew_by_the_next(folder: Path) -> None:
    with builds_held(folder):
        async with opened(folder):
            await wait_for_builds(folder, 1)
        await wait_for_builds(folder, 0)
    assert get_graphs(folder) == {GRAPH: False}
    async with opened(folder) as store:
        await store.graphs.wait()
    assert get_graphs(folder) == {GRAPH: True}


async def test_the_graph_of_a_new_model_waits_for_a_build_and_its_vectors_do_not(folder: Path) -> None:
    async with opened(folder) as store:
        with builds_held(folder):
            await wait_for_builds(folder, 1)
            await write(store, 30, model=OTHER)
            assert get_graphs(folder) == {GRAPH: False}
        await store.graphs.wait()
    assert get_graphs(folder) == {GRAPH: True, OTHER_GRAPH: True}


async def test_the_graph_of_a_new_model_is_built_beside_writes_where_many_vectors_are_read_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(folder) as store:
        await store.graphs.wait()
        monkeypatch.setattr(hnsw, "MOST_BYTES_AT_ONCE", 0)
        await write(store, 30, model=OTHER)
        assert get_graphs(folder) == {GRAPH: True}
        await store.graphs.wait()
    assert get_graphs(folder) == {GRAPH: True, OTHER_GRAPH: True}


async def test_vectors_of_a_model_are_removed_during_a_build_and_its_graph_after_it(folder: Path) -> None:
    async with opened(folder) as store:
        with builds_held(folder):
            await wait_for_builds(folder, 1)
            with anyio.fail_after(PATIENCE_SECONDS):
                async with store.transaction() as transaction:
                    assert await transaction.remove_vectors(MODEL.name) == 20
        await store.graphs.wait()
    assert get_graphs(folder) == {}


async def test_a_move_does_not_stop_writes_for_a_build(folder: Path) -> None:
    async with opened(folder) as store:
        with builds_held(folder):
            await wait_for_builds(folder, 1)
            with pytest.raises(StoreError, match="being built"):
                async with store.moves.stand_still():
                    pass
            await write(store, 20)
        await store.graphs.wait()
        async with store.moves.stand_still():
            pass


async def test_a_move_begins_once_a_build_that_is_soon_done_is_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, hold = anyio.Event(), hnsw.hold

    async def hold_noted(session: Session) -> bool:
        if not (is_held := await hold(session)):
            refused.set()
        return is_held

    async with opened(folder) as store:
        monkeypatch.setattr(hnsw, "hold", hold_noted)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                with builds_held(folder):
                    await wait_for_builds(folder, 1)
                    group.start_soon(store.moves.begin, Move("elsewhere", phase="catching up"))
                    await refused.wait()
        await put(store, make_document("new"))
        assert [change.what for change in await store.moves.read_changes(1)] != []
        await store.moves.cancel()


async def test_a_graph_is_built_in_memory_by_one_process_for_as_long_as_its_client_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Statement(
        "SELECT current_setting('max_parallel_maintenance_workers'), setting::bigint, "
        "current_setting('client_connection_check_interval') FROM pg_settings WHERE name = 'maintenance_work_mem'"
    )
    with connect(folder) as connection:
        connection.execute("UPDATE embeddings SET passages = 200000")
    async with opened(folder) as store:
        send, during = store.connections.send, list[object]()

        async def look_and_send(connection: object, *statements: Statement, **options: object) -> object:
            if "CREATE INDEX" in str(statements[0].text):
                during.append(await send(connection, asked))  # pyright: ignore[reportArgumentType]
            return await send(connection, *statements, **options)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(store.connections, "send", look_and_send)
        await store.graphs.wait()
    assert during == [[[("0", hnsw.get_building_bytes(200_000, MODEL.dimensions) // 1024, "5s")]]]


def test_memory_for_a_graph_is_what_its_nodes_take_up_to_a_limit() -> None:
    assert 100_000 * (720 + 768) < hnsw.get_building_bytes(100_000, 384) < 200 * 2**20
    assert hnsw.get_building_bytes(10**7, 384) == hnsw.MOST_BUILDING_BYTES
