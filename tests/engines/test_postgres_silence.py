"""A network that swallows everything: all who wait when PostgreSQL is found silent learn it then; nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import psycopg
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from refdesk.core.writing.quotas import Quota, read_usage, spend
from refdesk.errors import StoreError
from refdesk.model import Metadata, MetadataKey
from refdesk.stores.postgres import connections, open_store, pool
from refdesk.stores.postgres.connections import Statement
from refdesk.stores.postgres.silence import Silence
from refdesk.stores.postgres.store import PostgresStore
from tests.engines.postgres import get_server, get_store_url
from tests.engines.tcp_faults import Proxy, open_proxy
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

LONGEST_SECONDS = 120.0
"""Far above what anything takes: it ends a hanging test."""

NEVER = 3600.0
QUOTA = Quota("notes", per_org=1000, per_agent=1000)


@dataclass
class Hole:
    """A store behind a proxy, whose looks whether the server answers end when the test says so.

    Attributes:
        looks: How often it was looked.
        connects: How many connections were made or tried.
    """

    store: PostgresStore
    proxy: Proxy
    may_look: anyio.Event = field(default_factory=anyio.Event)
    looks: int = 0
    connects: int = 0

    async def knock(self, _seconds: float) -> bool:
        self.looks += 1
        await self.may_look.wait()
        return False

    async def write(self, name: str, *, is_brief: bool) -> None:
        key, document = MetadataKey("acme", "job", name), make_document(name, "apple")
        async with self.store.transaction() as transaction:
            if is_brief:
                await transaction.expect([document], [key])
            await transaction.get_metadata(key)
            await transaction.put_documents([document])
            await transaction.put_metadata([Metadata(key, {})])

    async def read(self) -> None:
        await find_ids(self.store, asking("apple"))


@pytest.fixture
async def hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Hole]:
    url = get_store_url(tmp_path)
    async with (
        open_proxy(get_server().port) as proxy,
        open_store(url.replace(str(get_server().port), str(proxy.port)), patience_seconds=NEVER) as store,
    ):
        assert isinstance(store, PostgresStore)
        await put(store, make_document("first", "apple"))
        opened = Hole(store, proxy)
        yield opened
        proxy.fault = "none"
        opened.may_look.set()


def darken(hole: Hole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Swallow every answer from now on; whoever waits for one looks at once whether the server answers others."""
    monkeypatch.setattr(connections, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(pool, "CONNECT_SECONDS", NEVER)
    monkeypatch.setattr(hole.store.connections.pool.silence, "_knock", hole.knock)
    connect = hole.store.connections.pool._connect  # pyright: ignore[reportPrivateUsage]

    async def counted() -> object:
        hole.connects += 1
        return await connect()

    monkeypatch.setattr(hole.store.connections.pool, "_connect", counted)
    hole.proxy.fault = "dropped"


async def refused(call: Callable[[], Awaitable[None]], refusals: list[str]) -> None:
    with pytest.raises(StoreError) as caught:
        await call()
    refusals.append(caught.value.message)


@pytest.mark.parametrize("is_brief", [True, False])
@pytest.mark.parametrize("writers", [6, 10])
async def test_all_writers_of_an_org_learn_at_once_that_the_server_is_silent(
    hole: Hole, monkeypatch: pytest.MonkeyPatch, writers: int, *, is_brief: bool
) -> None:
    refusals = list[str]()
    darken(hole, monkeypatch)
    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as group:
            for number in range(writers):
                group.start_soon(refused, lambda n=number: hole.write(f"w{n}", is_brief=is_brief), refusals)
            await until_looking(hole)
            hole.may_look.set()
    assert len(refusals) == writers
    assert all("lost" in message for message in refusals)
    # Else each would have waited for the one before and found it out anew.
    assert (hole.looks, hole.connects) == (1, 0)
    assert hole.store.connections.pool.silence._waiting == {}  # pyright: ignore[reportPrivateUsage]


async def test_who_waits_for_a_connection_learns_it_with_those_who_have_one(
    hole: Hole, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, readers = list[str](), pool.MOST_CONNECTIONS
    async with anyio.create_task_group() as group:
        for _ in range(readers):
            group.start_soon(hole.read)
    darken(hole, monkeypatch)
    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as group:
            for _ in range(2 * readers):
                group.start_soon(refused, hole.read, refusals)
            await until_looking(hole)
            hole.may_look.set()
    assert len(refusals) == 2 * readers
    assert hole.looks == 1


async def test_those_who_left_the_commit_to_another_learn_it_though_he_asks_nothing(
    hole: Hole, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, entered, go = list[str](), anyio.Event(), anyio.Event()

    async def hold() -> None:
        key = MetadataKey("acme", "job", "holder")
        async with hole.store.transaction() as transaction:
            await transaction.expect([], [key])
            await transaction.get_metadata(key)
            entered.set()
            await go.wait()
            await transaction.put_metadata([Metadata(key, {})])

    async def lead(may_end: anyio.Event) -> None:
        key = MetadataKey("acme", "job", "leader")
        async with hole.store.transaction() as transaction:
            await transaction.expect([], [key])
            await transaction.get_metadata(key)
            await may_end.wait()
            await transaction.put_metadata([Metadata(key, {})])

    may_end = anyio.Event()
    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(refused, lambda: lead(may_end), refusals)
            await wait_all_tasks_blocked()
            group.start_soon(refused, hold, refusals)
            await wait_all_tasks_blocked()
            may_end.set()
            await entered.wait()
            # A connection for the one who will look.
            await hole.read()
            darken(hole, monkeypatch)
            group.start_soon(refused, hole.read, refusals)
            await until_looking(hole)
            hole.may_look.set()
            while len(refusals) < 2:  # noqa: ASYNC110 - the reader, and the one who left
                await anyio.sleep(0.01)
            go.set()
    assert len(refusals) == 3
    hole.proxy.fault = "none"
    monkeypatch.undo()
    kept = await hole.store.list_metadata("job", org="acme")
    assert kept == []


async def test_who_commits_for_others_that_left_cuts_nothing_off(hole: Hole, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals, asked = list[str](), list[object]()
    entered, may_end, scope = anyio.Event(), anyio.Event(), anyio.CancelScope()

    async def cancel(*_: object, **__: object) -> None:
        asked.append(None)

    monkeypatch.setattr(psycopg.AsyncConnection, "_try_cancel", cancel)

    async def write(name: str) -> None:
        key = MetadataKey("acme", "job", name)
        async with hole.store.transaction() as transaction:
            await transaction.expect([], [key])
            await transaction.get_metadata(key)
            entered.set()
            await may_end.wait()
            await transaction.put_metadata([Metadata(key, {})])

    async def give_way() -> None:
        with scope:
            await write("second")

    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(refused, lambda: write("first"), refusals)
            await entered.wait()
            group.start_soon(give_way)
            await wait_all_tasks_blocked()
            # The first leaves its commit to the second, who goes away; so it comes back to the first, in the dark.
            send = hole.store.connections.send

            async def darkened(connection: object, *statements: Statement, **options: object) -> object:
                if [str(each.text) for each in statements] == ["COMMIT"]:
                    darken(hole, monkeypatch)
                    hole.may_look.set()
                return await send(connection, *statements, **options)  # pyright: ignore[reportArgumentType]

            monkeypatch.setattr(hole.store.connections, "send", darkened)
            may_end.set()
            await checkpoint()
            scope.cancel()
    assert len(refusals) == 1
    assert "may have been written or not" in refusals[0]
    assert asked == []


async def test_a_search_asks_a_silent_primary_no_second_time_where_no_standby_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, port = get_store_url(tmp_path), str(get_server().port)
    async with (
        open_proxy(get_server().port) as proxy,
        open_proxy(get_server().port) as standby,
        open_store(
            url.replace(port, str(proxy.port)), patience_seconds=NEVER, read=[url.replace(port, str(standby.port))]
        ) as store,
    ):
        assert isinstance(store, PostgresStore)
        hole, refusals = Hole(store, proxy), list[str]()
        await put(store, make_document("first", "apple"))
        await hole.read()
        darken(hole, monkeypatch)
        hole.may_look.set()
        standby.fault = "refused"
        standby.hang_up()
        with anyio.fail_after(LONGEST_SECONDS):
            await refused(hole.read, refusals)
        assert hole.looks == 1


async def until_looking(hole: Hole) -> None:
    """Return when somebody looks, and everybody else waits."""
    while not hole.looks:  # noqa: ASYNC110 - what is waited for is a timer
        await anyio.sleep(0.01)
    await wait_all_tasks_blocked()


async def test_who_is_heard_meanwhile_is_not_silent() -> None:
    answered, may_look = list[bool](), anyio.Event()

    async def knock(_seconds: float) -> bool:
        await may_look.wait()
        return False

    silence = Silence(knock)

    async def ask() -> None:
        answered.append(await silence.is_answering(NEVER))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await wait_all_tasks_blocked()
        with silence.watched():
            silence.hear()
            may_look.set()
            await wait_all_tasks_blocked()
    assert answered == [True]


@pytest.mark.parametrize("writers", [6, 10])
async def test_what_ten_writers_stored_around_black_holes_is_there_and_counted(tmp_path: Path, writers: int) -> None:
    url, acknowledged, is_over = get_store_url(tmp_path), set[str](), anyio.Event()
    async with (
        open_proxy(get_server().port) as proxy,
        open_store(url.replace(str(get_server().port), str(proxy.port))) as store,
    ):

        async def write(writer: int) -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                id = f"d{writer}-{number}"
                try:
                    async with store.transaction() as transaction:
                        await transaction.expect([make_document(id, "apple")], [])
                        await spend(transaction, QUOTA, "acme", f"agent-{writer}")
                        await transaction.put_documents([make_document(id, "apple")])
                except StoreError:
                    continue
                acknowledged.add(id)

        async def write_some(count: int) -> None:
            wanted = len(acknowledged) + count
            while len(acknowledged) < wanted:  # noqa: ASYNC110 - others write
                await anyio.sleep(0.01)

        with anyio.fail_after(LONGEST_SECONDS):
            async with anyio.create_task_group() as group:
                for writer in range(writers):
                    group.start_soon(write, writer)
                for _ in range(4):
                    await write_some(20)
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(connections, "WATCH_SECONDS", 0.1)
                        patch.setattr(connections, "PROBE_SECONDS", 0.2)
                        patch.setattr(pool, "CONNECT_SECONDS", 0.3)
                        proxy.fault = "dropped"
                        await anyio.sleep(0.5)
                    proxy.fault = "none"
                    # An answer that was swallowed is not sent again.
                    proxy.hang_up()
                await write_some(20)
                is_over.set()
        usage = await read_usage(store, QUOTA, "acme", "agent-0")
        stored = set(await store.get_digests(NOTES))
    assert acknowledged <= stored
    assert usage.org == len(stored)
