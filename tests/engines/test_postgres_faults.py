"""A bad network before PostgreSQL, and a server that stands still: every answer is bounded, and no write is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from refdesk.errors import StoreError
from refdesk.protocols import Store
from refdesk.stores.postgres import connections, open_store, pool
from refdesk.stores.postgres.connections import Scope, Statement
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import PostgresServer, get_server, get_store_url, running
from tests.engines.tcp_faults import FAULTS, Fault, open_proxy
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

HARMLESS = {"none", "sliced", "slow"}
LONGEST_SECONDS = 120
"""Far above the few seconds that an answer may take, so that a loaded machine fails no test: it ends a hanging one."""


@dataclass
class Writer:
    """Writes documents and knows which were acknowledged."""

    store: Store
    written: int = 0
    acknowledged: set[str] = field(default_factory=set[str])
    refusals: list[StoreError] = field(default_factory=list[StoreError])

    async def write(self) -> bool:
        """Return whether one more document was acknowledged."""
        id = f"d{self.written:03}"
        self.written += 1
        with anyio.fail_after(LONGEST_SECONDS):
            try:
                await put(self.store, make_document(id, "apple"))
            except StoreError as error:
                self.refusals.append(error)
                return False
        self.acknowledged.add(id)
        return True

    async def read(self) -> bool:
        """Return whether a search answered; if so, with everything that was acknowledged."""
        with anyio.fail_after(LONGEST_SECONDS):
            try:
                found = set(await find_ids(self.store, asking("apple", depth=1000)))
            except StoreError as error:
                self.refusals.append(error)
                return False
        assert self.acknowledged <= found
        return True

    async def recover(self) -> None:
        """Return when reads and writes succeed again, which is once attempts that were under way are given up."""
        with anyio.fail_after(LONGEST_SECONDS):
            while not await self.read():
                pass
        assert await self.write()


async def assert_nothing_is_lost(writer: Writer, folder: Path, server: PostgresServer | None = None) -> None:
    """Return when all that was acknowledged is there once, whole, for one who comes by another way."""
    async with open_store(get_store_url(folder, server)) as store:
        stored = await store.get_digests(NOTES)
        assert writer.acknowledged <= set(stored)
        assert sorted(stored) == sorted(await find_ids(store, asking("apple", depth=1000)))
        assert all([len(await store.get_revisions(NOTES, id)) == 1 for id in stored])


@asynccontextmanager
async def open_writer(url: str) -> AsyncGenerator[Writer]:
    async with open_store(url) as store:
        yield Writer(store)


@contextmanager
def quickly_silent() -> Generator[None]:
    """Have a server that says nothing be found silent soon, in the block alone: a slow machine would seem so, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "WATCH_SECONDS", 0.2)
        patch.setattr(connections, "PROBE_SECONDS", 0.5)
        patch.setattr(pool, "CONNECT_SECONDS", 0.7)
        yield


@pytest.mark.parametrize("fault", FAULTS)
async def test_answers_are_bounded_and_acknowledged_writes_kept_whatever_the_network_does(
    tmp_path: Path, fault: Fault
) -> None:
    url = get_store_url(tmp_path)
    async with (
        open_proxy(get_server().port) as proxy,
        open_writer(url.replace(str(get_server().port), str(proxy.port))) as writer,
    ):
        for _ in range(2):
            assert await writer.write()
            proxy.fault = fault
            with nullcontext() if fault in HARMLESS else quickly_silent():
                assert (await writer.write(), await writer.read()) == (fault in HARMLESS, fault in HARMLESS)
            proxy.fault = "none"
            await writer.recover()
        assert all(str(proxy.port) not in error.message for error in writer.refusals)
    await assert_nothing_is_lost(writer, tmp_path)


async def test_a_server_that_stands_still_is_given_up_and_found_again(tmp_path: Path) -> None:
    with running() as server:
        async with open_writer(get_store_url(tmp_path, server)) as writer:
            assert await writer.write()
            with standing_still(server), quickly_silent():
                assert not await writer.write()
                assert not await writer.read()
            await writer.recover()
        await assert_nothing_is_lost(writer, tmp_path, server)


async def test_a_server_that_was_restarted_is_used_again_at_once(tmp_path: Path) -> None:
    with running() as server:
        async with open_writer(get_store_url(tmp_path, server)) as writer:
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(writer.read)
            assert await writer.write()
            server.stop()
            assert not await writer.write()
            assert not await writer.read()
            server.start()
            assert await writer.write()
            assert await writer.read()
        await assert_nothing_is_lost(writer, tmp_path, server)


async def test_a_commit_whose_answer_is_lost_is_not_called_a_failure(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with (
        open_proxy(get_server().port) as proxy,
        open_writer(url.replace(str(get_server().port), str(proxy.port))) as writer,
    ):

        async def commit_unheard() -> None:
            async with writer.store.transaction() as transaction:
                await transaction.put_documents([make_document("unheard")])
                proxy.fault = "dropped"

        with anyio.fail_after(LONGEST_SECONDS), pytest.raises(StoreError, match="may have been written or not"):
            await commit_unheard()
    async with open_store(url) as store:
        assert [each is not None for each in await store.get_documents(NOTES, ["unheard"])] == [True]


@contextmanager
def standing_still(server: PostgresServer) -> Generator[None]:
    """Stop every process of the server as a machine does that hangs: connections are taken, nothing is answered."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


async def test_who_meets_a_silent_server_does_not_wait_as_long_as_for_a_busy_one(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    async with (
        open_proxy(get_server().port) as proxy,
        open_store(url.replace(str(get_server().port), str(proxy.port)), patience_seconds=3600) as store,
    ):
        await put(store, make_document("a", "apple"))
        proxy.fault = "dropped"
        with quickly_silent(), anyio.fail_after(LONGEST_SECONDS), pytest.raises(StoreError, match="lost"):
            await find_ids(store, asking("apple"))
        proxy.fault = "none"
        assert await find_ids(store, asking("apple")) == ["a"]


async def test_who_waits_for_a_busy_server_waits_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.01)
    url = get_store_url(tmp_path)
    async with open_store(url) as store, open_store(url) as other:
        async with anyio.create_task_group() as group, store.transaction() as transaction:
            await transaction.put_documents([make_document("first", "apple")])
            group.start_soon(put, other, make_document("second", "apple"))
            # The server was asked about many times by then.
            await anyio.sleep(0.3)
        assert await find_ids(store, asking("apple")) == ["first", "second"]


async def test_tables_that_a_newer_version_has_changed_are_said_to_be_that(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path)) as store:
        assert isinstance(store, PostgresStore)
        await store.connections.read(Scope(""), Statement("ALTER TABLE documents RENAME COLUMN texts TO packed"))
        with pytest.raises(StoreError, match="If a newer version has changed them, start this server anew"):
            await put(store, make_document("d", "apple"))
