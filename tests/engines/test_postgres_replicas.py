"""Searches on a standby that streams from the primary: nobody misses what was written, whoever is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from refdesk.errors import ConfigurationError, StoreError
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store, pool, replicas
from tests.engines.postgres import DATABASE, ROLE, PostgresServer, fetch
from tests.engines.tcp_faults import open_proxy
from tests.stores.samples import asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

WAIT_SECONDS = 120


@dataclass
class Pair:
    """A primary, which acknowledges what the standby has, too, and its standby."""

    primary: PostgresServer
    standby: PostgresServer

    def ask(self, server: PostgresServer, statement: str) -> object:
        with server.connect() as connection:
            return fetch(connection, statement)[0][0]

    @property
    def is_behind(self) -> bool:
        """Whether the standby lacks anything."""
        written = self.ask(self.primary, "SELECT pg_current_wal_lsn()")
        return self.ask(self.standby, f"SELECT pg_last_wal_replay_lsn() < '{written}'") is True

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        async with open_store(self.primary.get_url(), read=[self.standby.get_url()]) as store:
            yield store


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Generator[Pair]:
    # A standby that works is not passed over because the machine is slow.
    monkeypatch.setattr(replicas, "PATIENCE_SECONDS", WAIT_SECONDS)
    servers: list[PostgresServer] = []
    try:
        servers.append(PostgresServer())
        servers[0].start()
        servers.append(servers[0].copy_as_standby())
        servers[1].start()
        yield Pair(*servers)
    finally:
        for server in reversed(servers):
            server.remove()


async def wait_until_level(pair: Pair) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        while pair.is_behind:  # noqa: ASYNC110 - what is waited for happens in other processes
            await anyio.sleep(0.02)


async def test_a_standby_searches_and_goes_on_while_the_primary_is_gone(pair: Pair) -> None:
    async with pair.open() as store:
        await put(store, make_document("first", "apple pie"))
        await wait_until_level(pair)
        assert await find_ids(store, asking("apple")) == ["first"]
        pair.primary.kill()
        assert await find_ids(store, asking("apple")) == ["first"], "only the standby can have answered"
        with pytest.raises(StoreError):
            await put(store, make_document("second", "apple tart"))
        pair.primary.start()
        await put(store, make_document("second", "apple tart"))


async def test_what_is_stored_is_found_at_once_by_every_server_while_the_standby_is_behind(pair: Pair) -> None:
    async with pair.open() as store, pair.open() as other:
        await put(store, make_document("first", "apple pie"))
        await wait_until_level(pair)
        pair.ask(pair.standby, "SELECT pg_wal_replay_pause()::text")
        await put(store, make_document("second", "apple tart"))
        assert pair.is_behind
        for each in (store, other):
            assert sorted(await find_ids(each, asking("apple"))) == ["first", "second"]
        (node,) = await store.list_nodes()
        assert (node.problem, " 0 bytes" in node.holds) == (None, False)
        pair.ask(pair.standby, "SELECT pg_wal_replay_resume()::text")
        while True:  # a server also writes by itself
            await wait_until_level(pair)
            (node,) = await store.list_nodes()
            if node.holds == "replica: 0 bytes behind":
                break


async def test_a_balancer_before_standbys_gives_no_answer_of_one_that_is_behind(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each call connects anew, so that a balancer has the next standby answer it.
    monkeypatch.setattr(pool, "LIFETIME_SECONDS", -1.0)
    both = Pair(pair.primary, pair.primary.copy_as_standby())
    try:
        both.standby.start()
        async with open_proxy(pair.standby.port, both.standby.port) as balancer:
            url = pair.standby.get_url(port=balancer.port)
            async with open_store(pair.primary.get_url(), read=[url]) as store:
                await put(store, make_document("first", "apple pie"))
                await wait_until_level(both)
                pair.ask(both.standby, "SELECT pg_wal_replay_pause()::text")
                await put(store, make_document("second", "apple tart"))
                await wait_until_level(pair)
                for _ in range(4):
                    assert sorted(await find_ids(store, asking("apple"))) == ["first", "second"]
    finally:
        both.standby.remove()


async def test_the_primary_searches_where_the_standby_is_gone(pair: Pair) -> None:
    async with pair.open() as store:
        await put(store, make_document("first", "apple pie"))
        pair.standby.kill()
        assert await find_ids(store, asking("apple")) == ["first"]
        (node,) = await store.list_nodes()
        assert node.problem is not None
        assert str(pair.standby.port) in node.problem
        assert "postgres" not in node.problem, "no secret, no role"


async def test_standbys_that_do_not_answer_are_asked_at_once(pair: Pair) -> None:
    asked: list[int] = []
    are_both_asked = anyio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The one whose turn it is hangs up at once; of the others none does so before all of them have been asked.
        del reader
        port = writer.get_extra_info("sockname")[1]
        asked.append(port)
        if len(set(asked)) == 3:
            are_both_asked.set()
        if port != asked[0]:
            await are_both_asked.wait()
        writer.close()

    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(await asyncio.start_server(stay_silent, "127.0.0.1", 0)) for _ in range(3)
        ]
        urls = [f"postgresql://refdesk@127.0.0.1:{each.sockets[0].getsockname()[1]}/refdesk" for each in servers]
        async with open_store(pair.primary.get_url(), read=urls, patience_seconds=WAIT_SECONDS) as store:
            await put(store, make_document("first", "apple pie"))
            with anyio.fail_after(WAIT_SECONDS / 2):
                assert await find_ids(store, asking("apple")) == ["first"]


async def test_a_standby_takes_the_place_of_its_primary(pair: Pair) -> None:
    both = f"127.0.0.1:{pair.primary.port},127.0.0.1:{pair.standby.port}"
    url = f"postgresql://refdesk@{both}/refdesk?target_session_attrs=read-write"
    async with open_store(url, read=[pair.standby.get_url()]) as store:
        with pair.primary.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        await put(store, make_document("first", "apple pie"))
        pair.primary.kill()
        pair.ask(pair.standby, "SELECT pg_promote()")
        with pair.standby.connect() as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        await put(store, make_document("second", "apple tart"))
        assert sorted(await find_ids(store, asking("apple"))) == ["first", "second"]


async def test_of_several_servers_a_store_is_on_the_one_that_takes_writes(pair: Pair) -> None:
    both = f"127.0.0.1:{pair.standby.port},127.0.0.1:{pair.primary.port}"
    url = f"postgresql://{ROLE}@{both}/{DATABASE}"
    async with open_store(url) as store:
        pair.ask(pair.standby, "SELECT pg_wal_replay_pause()::text")
        await put(store, make_document("first", "apple pie"))
        assert await find_ids(store, asking("apple")) == ["first"]
        pair.primary.kill()
        with pytest.raises(StoreError, match="None of the servers that REFDESK_STORE names takes writes"):
            await find_ids(store, asking("apple"))
        pair.primary.start()
        assert await find_ids(store, asking("apple")) == ["first"]


@pytest.mark.parametrize("wanted", ["any", "prefer-standby"])
async def test_a_url_that_may_lead_a_store_to_a_standby_is_refused(wanted: str) -> None:
    url = f"postgresql://{ROLE}@127.0.0.1:1,127.0.0.1:2/{DATABASE}?target_session_attrs={wanted}"
    with pytest.raises(ConfigurationError, match=f"target_session_attrs={wanted}: leave that out"):
        async with open_store(url):
            pass
