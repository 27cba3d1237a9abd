"""A Neo4j that is not there, goes, comes back, answers late or not: the right error in time, and recovery."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from refdesk.errors import StoreError
from refdesk.protocols import Store
from refdesk.stores.neo4j import open_store
from refdesk.stores.neo4j.connections import Limits
from tests.engines.neo4j import Neo4jServer, get_namespace, get_server, get_store_url, running
from tests.engines.servers import find_free_port
from tests.engines.tcp_faults import Fault, Proxy, open_proxy
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

QUICK = Limits(connect=2.0, statement=2.0, patience=2.0)


@contextmanager
def paused(server: Neo4jServer) -> Generator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


async def write_through(store: Store, id: str) -> str | None:
    """Return why a document could not be written, or `None` when it was."""
    try:
        await put(store, make_document(id, "apple"))
    except StoreError as error:
        return error.message
    return None


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
async def test_a_server_that_is_not_there_is_told_at_once_and_without_its_address(scheme: str) -> None:
    port = find_free_port()
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        async with open_store(f"{scheme}://zoe:secret@127.0.0.1:{port}", limits=QUICK):
            pass
    assert not any(word in caught.value.message for word in ("127.0.0.1", str(port), "zoe", "secret"))


async def test_a_server_that_goes_and_comes_back_is_used_again(tmp_path: Path) -> None:
    with running() as server:
        async with open_store(server.get_url(get_namespace(tmp_path))) as store:
            await put(store, make_document("a", "apple"))
            server.kill()
            for attempt in (store.check(), store.find(asking("apple")), put(store, make_document("b"))):
                with pytest.raises(StoreError, match="cannot be reached"):
                    await attempt
            server.start()
            await store.check()
            await put(store, make_document("c", "apple"))
            assert await find_ids(store, asking("apple")) == ["a", "c"]


async def test_a_server_that_hangs_is_given_up_in_time_and_used_again_later(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url) as patient:
        # What a server does for the first time takes it seconds.
        await patient.check()
        await put(patient, make_document("a", "apple"))
        assert await find_ids(patient, asking("apple")) == ["a"]
        async with open_store(url, limits=QUICK) as store:
            with paused(get_server()):
                for attempt in (store.find(asking("apple")), store.check()):
                    with pytest.raises(StoreError):
                        await attempt
            await put(store, make_document("b", "apple"))
            assert await find_ids(patient, asking("apple")) == ["a", "b"]


@asynccontextmanager
async def store_through_proxy(folder: Path) -> AsyncGenerator[tuple[Store, Proxy]]:
    async with open_store(get_store_url(folder / "warm")) as store:
        # What a server does for the first time takes it seconds.
        await put(store, make_document("a"))
    async with (
        open_proxy(get_server().port) as proxy,
        open_store(get_store_url(folder, port=proxy.port), limits=QUICK) as store,
    ):
        yield store, proxy


async def spoil_commit(store: Store, proxy: Proxy, fault: Fault) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        proxy.fault = fault


async def spoil_statement(store: Store, proxy: Proxy, fault: Fault) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        proxy.fault = fault
        await transaction.put_documents([make_document("b")])


async def go_on_after_a_failure(store: Store, proxy: Proxy) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        proxy.hang_up()
        with pytest.raises(StoreError):
            await transaction.get_documents(NOTES, ["a"])


@pytest.mark.parametrize("fault", ["dropped", "half", "refused"])
async def test_a_commit_whose_answer_is_lost_is_told_as_unknown(tmp_path: Path, fault: Fault) -> None:
    async with store_through_proxy(tmp_path) as (store, proxy):
        with pytest.raises(StoreError, match="unknown"):
            await spoil_commit(store, proxy, fault)
        proxy.fault = "none"
        proxy.hang_up()
        # It was kept: only the answer was lost. Repeating it blindly would be refused.
        assert [each is not None for each in await store.get_documents(NOTES, ["a"])] == [True]


@pytest.mark.parametrize("fault", ["dropped", "half", "refused"])
async def test_a_transaction_that_breaks_before_its_commit_leaves_nothing(tmp_path: Path, fault: Fault) -> None:
    async with store_through_proxy(tmp_path) as (store, proxy):
        with pytest.raises(StoreError) as caught:
            await spoil_statement(store, proxy, fault)
        assert "unknown" not in caught.value.message
        proxy.fault = "none"
        proxy.hang_up()
        assert await store.get_documents(NOTES, ["a", "b"]) == [None, None]
        assert await write_through(store, "c") is None


async def test_reads_and_new_transactions_survive_connections_that_died_meanwhile(tmp_path: Path) -> None:
    async with store_through_proxy(tmp_path) as (store, proxy):
        await put(store, make_document("a", "apple"))
        proxy.hang_up()
        assert await find_ids(store, asking("apple")) == ["a"]
        proxy.hang_up()
        assert await write_through(store, "b") is None


async def test_a_failed_statement_ends_its_transaction_though_the_error_is_caught(tmp_path: Path) -> None:
    async with store_through_proxy(tmp_path) as (store, proxy):
        with pytest.raises(StoreError, match="Repeat all of it"):
            await go_on_after_a_failure(store, proxy)
        assert await store.get_documents(NOTES, ["a"]) == [None]


async def test_a_user_is_signed_in_and_a_wrong_password_told_without_repeating_it(tmp_path: Path) -> None:
    with running(has_auth=True) as server:
        server.set_password("right horse/battery")
        async with open_store(server.get_url(scheme="neo4j", user="neo4j:right%20horse%2Fbattery")) as store:
            await put(store, make_document("a"))
        with pytest.raises(StoreError, match="password") as caught:
            async with open_store(server.get_url(user="neo4j:wrong-secret")):
                pass
        assert "secret" not in caught.value.message


async def test_a_database_that_the_server_does_not_have_is_told() -> None:
    url = get_server().get_url().replace("?", "/nobodys?")
    with pytest.raises(StoreError, match="a database that the server does not have"):
        async with open_store(url):
            pass
