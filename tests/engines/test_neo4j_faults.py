"""A Neo4j that is not there, goes, comes back, answers late or not: the right error in time, and recovery."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import anyio
import httpx2
import pytest

from refdesk.errors import StoreError
from refdesk.protocols import Store
from refdesk.stores.neo4j import open_store, silence
from refdesk.stores.neo4j.connections import Limits
from refdesk.stores.neo4j.failures import BEHIND, BROKEN, READ_ONLY, SET_BACK, UNSURE
from tests.acceptance.processes import start
from tests.engines.neo4j import Neo4jServer, get_namespace, get_server, get_store_url, running
from tests.engines.neo4j_limits import HOUR, PATIENT, shortened
from tests.engines.patient_refdesk import MODULE
from tests.engines.servers import find_free_port
from tests.engines.tcp_faults import Fault, Proxy, open_proxy
from tests.stores.samples import NOTES, asking, find_ids, make_document, put

pytestmark = pytest.mark.engines

SHORT_SECONDS = 0.5
"""A limit for what never comes, however fast the machine is."""

BRIEF_SECONDS = 2.0
"""A limit for what never comes, beside which something else is to come; it is tried until that does."""

LATER = "bcdefghi"
"""What is written after a dump: more transactions than a server makes by itself when it starts."""

ROOM_BYTES = 100_000
"""What a disk has left before it is full; `MOST_WRITES` of 12 kB fill it by far."""

MOST_WRITES = 400
COMMIT_SECONDS = 15.0
"""A limit within which even a loaded machine has committed."""

LONGEST_SECONDS = 120.0
"""Far above the few seconds that an answer may take, so that a loaded machine fails no test: it ends a hanging one."""

CLIENT_SECONDS = 90.0
"""How long a client waits: far longer than the server lets a call take that nobody gives up."""


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a busy server be taken for silent by no test that does not say so."""
    monkeypatch.setattr(silence, "PROBE_SECONDS", HOUR)


@contextmanager
def paused(server: Neo4jServer) -> Generator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


async def write_through(store: Store, id: str, body: str = "apple") -> str | None:
    """Return why a document could not be written, or `None` when it was."""
    try:
        await put(store, make_document(id, body))
    except StoreError as error:
        return error.message
    return None


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
async def test_a_server_that_is_not_there_is_told_at_once_and_without_its_address(scheme: str) -> None:
    port = find_free_port()
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        async with open_store(f"{scheme}://zoe:secret@127.0.0.1:{port}", limits=PATIENT):
            pass
    assert not any(word in caught.value.message for word in ("127.0.0.1", str(port), "zoe", "secret"))


async def test_a_server_that_goes_and_comes_back_is_used_again(tmp_path: Path) -> None:
    with running() as server:
        async with open_store(server.get_url(get_namespace(tmp_path)), limits=PATIENT) as store:
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
    limits = replace(PATIENT)
    async with open_store(get_store_url(tmp_path), limits=limits) as store:
        await put(store, make_document("a", "apple"))
        with paused(get_server()), shortened(limits, SHORT_SECONDS):
            for attempt in (store.find(asking("apple")), store.check()):
                with pytest.raises(StoreError, match="too long"):
                    await attempt
        await put(store, make_document("b", "apple"))
        assert await find_ids(store, asking("apple")) == ["a", "b"]


@asynccontextmanager
async def store_through_proxy(folder: Path, limits: Limits = PATIENT) -> AsyncGenerator[tuple[Store, Proxy]]:
    async with (
        open_proxy(get_server().port) as proxy,
        open_store(get_store_url(folder, port=proxy.port), limits=limits) as store,
    ):
        yield store, proxy


async def spoil_commit(store: Store, proxy: Proxy, fault: Fault, limits: Limits | None = None) -> None:
    with ExitStack() as stack:
        async with store.transaction() as transaction:
            await transaction.put_documents([make_document("a")])
            proxy.fault = fault
            if limits is not None:
                stack.enter_context(shortened(limits, COMMIT_SECONDS))


async def spoil_statement(store: Store, proxy: Proxy, fault: Fault, limits: Limits) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        proxy.fault = fault
        with shortened(limits, SHORT_SECONDS):
            await transaction.put_documents([make_document("b")])


async def go_on_after_a_failure(store: Store, proxy: Proxy) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents([make_document("a")])
        proxy.hang_up()
        with pytest.raises(StoreError):
            await transaction.get_documents(NOTES, ["a"])


@pytest.mark.parametrize("fault", ["dropped", "half", "refused"])
async def test_a_commit_whose_answer_is_lost_is_told_as_unknown(tmp_path: Path, fault: Fault) -> None:
    limits = replace(PATIENT)
    async with store_through_proxy(tmp_path, limits) as (store, proxy):
        with pytest.raises(StoreError, match="unknown"):
            await spoil_commit(store, proxy, fault, limits)
        proxy.fault = "none"
        proxy.hang_up()
        # It was kept: only the answer was lost. Repeating it blindly would be refused.
        assert [each is not None for each in await store.get_documents(NOTES, ["a"])] == [True]


@pytest.mark.parametrize("fault", ["dropped", "half", "refused"])
async def test_a_transaction_that_breaks_before_its_commit_leaves_nothing(tmp_path: Path, fault: Fault) -> None:
    limits = replace(PATIENT)
    async with store_through_proxy(tmp_path, limits) as (store, proxy):
        with pytest.raises(StoreError) as caught:
            await spoil_statement(store, proxy, fault, limits)
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


async def tell_why_not(attempt: Callable[[], Awaitable[object]]) -> str:
    try:
        await attempt()
    except StoreError as error:
        return error.message
    return ""


async def test_an_older_dump_under_a_running_refdesk_is_told_and_nothing_answers_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr(silence, "PROBE_SECONDS", BRIEF_SECONDS)
    with running() as server:
        url, data, dump = server.get_url(get_namespace(tmp_path)), server.folder / "data", server.folder / "dump"
        async with open_store(url, limits=PATIENT) as store:
            await put(store, make_document("a", "apple"))
            server.stop()
            copytree(data, dump)
            server.start()
            for id in LATER:
                await put(store, make_document(id, "apple"))
            assert await find_ids(store, asking("apple")) == ["a", *LATER]
            server.stop()
            rmtree(data)
            copytree(dump, data)
            server.start()
            # On a slow machine it may first seem to be silent.
            while await tell_why_not(store.check) != BEHIND:
                pass
            # What others write lets the server give what this process asked for: its state after a later transaction.
            while await tell_why_not(store.get_change_mark) != SET_BACK:
                for _ in LATER:
                    server.query("CREATE (:Other)")
            assert await tell_why_not(lambda: store.find(asking("apple"))) == SET_BACK
            assert await write_through(store, "c") == SET_BACK
        async with open_store(url, limits=PATIENT) as store:
            await put(store, make_document("b", "pear"))
            assert await find_ids(store, asking("apple")) == ["a"]
            assert await find_ids(store, asking("pear")) == ["b"]


async def test_a_database_that_is_read_only_says_so_and_goes_on_answering(tmp_path: Path) -> None:
    with running() as server:
        async with open_store(server.get_url(), limits=PATIENT) as store:
            await put(store, make_document("a", "apple"))
            server.stop()
            server.start("server.databases.default_to_read_only=true")
            assert await write_through(store, "b") == READ_ONLY
            assert await tell_why_not(store.check) == READ_ONLY
            assert await find_ids(store, asking("apple")) == ["a"]


async def test_a_full_disk_is_told_and_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with running("db.tx_log.preallocate=false") as server:
        kept, told = list[str](), ""
        async with open_store(server.get_url(), limits=PATIENT) as store:
            await put(store, make_document("a", "apple"))
            files = [path for path in (server.folder / "data").rglob("*") if path.is_file()]
            server.limit_files(max(path.stat().st_size for path in files) + ROOM_BYTES)
            while not told and len(kept) < MOST_WRITES:
                id = f"d{len(kept)}"
                told = await write_through(store, id, "apple " * 2_000) or ""
                kept += [] if told else [id]
            assert told == UNSURE
            assert await write_through(store, "c") == BROKEN
            server.kill()
            server.start()
            found = await store.get_documents(NOTES, ["a", *kept])
            assert [each is not None for each in found] == [True] * (len(kept) + 1)
            assert await write_through(store, "c") is None


async def test_a_constraint_of_another_application_is_told_as_such(tmp_path: Path) -> None:
    server = get_server()
    # Nothing but this test writes a mood, so the constraint is in nobody's way.
    server.query("CREATE CONSTRAINT others_mood FOR (d:Document) REQUIRE d.mood IS UNIQUE")
    try:
        async with open_store(get_store_url(tmp_path), limits=PATIENT) as store:
            await put(store, make_document("a", "apple"))
            space = get_namespace(tmp_path)
            server.query("MATCH (d:Document {space: $space}) SET d.mood = 'good'", space=space)
            thing = "{space: $space, org: 'acme', toolset: 'notes', id: 'b', mood: 'good'}"
            server.query(f"CREATE (:Thing {thing})", space=space)  # pyright: ignore[reportArgumentType]
            assert "another application" in (await write_through(store, "b") or "")
            assert await write_through(store, "c") is None
    finally:
        server.query("DROP CONSTRAINT others_mood")


async def test_a_place_that_was_removed_is_told(tmp_path: Path) -> None:
    async with open_store(get_store_url(tmp_path), limits=PATIENT) as store:
        get_server().query("MATCH (r:Refdesk {name: $name}) DELETE r", name=f"space {get_namespace(tmp_path)}")
        assert "somebody removed it" in await tell_why_not(store.get_change_mark)
        assert "somebody removed it" in await tell_why_not(store.check)


async def test_a_user_is_signed_in_and_a_wrong_password_told_without_repeating_it(tmp_path: Path) -> None:
    with running(has_auth=True) as server:
        assert "changed first" in await tell_why_not_open(server.get_url(user="neo4j:neo4j"))
        server.set_password("right horse/battery")
        url = server.get_url(scheme="neo4j", user="neo4j:right%20horse%2Fbattery")
        async with open_store(url, limits=PATIENT) as store:
            await put(store, make_document("a"))
        told = [await tell_why_not_open(server.get_url(user="neo4j:wrong-secret")) for _ in range(4)]
        assert "refused the user or the password" in told[0]
        assert "lets this user in no more for some seconds" in told[3]
        assert not [each for each in told if "secret" in each]


async def tell_why_not_open(url: str) -> str:
    """Return why no store is opened there."""
    with pytest.raises(StoreError) as caught:
        async with open_store(url, limits=PATIENT):
            pass
    return caught.value.message


async def test_a_database_that_the_server_does_not_have_is_told() -> None:
    url = get_server().get_url().replace("?", "/nobodys?")
    with pytest.raises(StoreError, match="a database that the server does not have"):
        async with open_store(url):
            pass


def store_note(client: httpx2.Client) -> httpx2.Response:
    return client.post("/knowledge", json={"title": "Note", "body": "Words."})


async def count_refusals(store: Store) -> int:
    """Return how many of five calls at once, three of which write, learn that the server does not answer."""
    refused = list[str]()

    async def ask(number: int) -> None:
        with pytest.raises(StoreError) as caught:
            await (put(store, make_document(f"n{number}")) if number < 3 else store.find(asking("apple")))
        refused.append(caught.value.message)

    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(ask, number)
    return sum("stopped answering" in message for message in refused)


async def test_who_meets_a_silent_server_does_not_wait_as_long_as_for_a_busy_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(get_store_url(tmp_path), limits=PATIENT) as store:
        await put(store, make_document("a", "apple"))
        assert await find_ids(store, asking("apple")) == ["a"]
        with monkeypatch.context() as patched, paused(get_server()):
            patched.setattr(silence, "WATCH_SECONDS", 0.2)
            patched.setattr(silence, "PROBE_SECONDS", 0.5)
            assert await count_refusals(store) == 5
        await put(store, make_document("b", "apple"))
        assert await find_ids(store, asking("apple")) == ["a", "b"]


async def test_a_commit_that_a_silent_server_swallows_is_told_as_unknown_and_the_store_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with store_through_proxy(tmp_path) as (store, proxy):
            monkeypatch.setattr(silence, "PROBE_SECONDS", COMMIT_SECONDS)
            with pytest.raises(StoreError, match="unknown"):
                await spoil_commit(store, proxy, "dropped")
    monkeypatch.setattr(silence, "PROBE_SECONDS", HOUR)
    async with open_store(get_store_url(tmp_path), limits=PATIENT) as store:
        assert [each is not None for each in await store.get_documents(NOTES, ["a"])] == [True]


async def test_who_waits_for_a_busy_server_waits_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = get_store_url(tmp_path)
    async with open_store(url, limits=PATIENT) as store, open_store(url, limits=PATIENT) as other:
        monkeypatch.setattr(silence, "WATCH_SECONDS", 0.05)
        async with anyio.create_task_group() as group, store.transaction() as transaction:
            await transaction.put_documents([make_document("first", "apple")])
            group.start_soon(put, other, make_document("second", "apple"))
            # The server was asked whether it answers by then.
            await anyio.sleep(0.5)
        assert await find_ids(store, asking("apple")) == ["first", "second"]


async def test_a_desk_answers_ends_and_goes_on_although_its_database_stands_still(tmp_path: Path) -> None:
    url = get_store_url(tmp_path)
    serve = ["-m", MODULE, "serve", "--no-auth", "--port", "0", "--toolset", "knowledge"]
    with (
        start(serve, tmp_path, REFDESK_STORE=url, REFDESK_EMBEDDER="hashing") as desk,
        httpx2.Client(base_url=desk.read_log("listening")["url"], timeout=CLIENT_SECONDS) as client,
        ThreadPoolExecutor() as pool,
    ):
        assert store_note(client).status_code == 200
        with paused(get_server()):
            calls = [pool.submit(store_note, client) for _ in range(3)]
            calls.append(pool.submit(client.post, "/knowledge/search", json={"query": "words"}))
            # Those who ask for the health are not kept as long as those who call.
            assert "has not answered" in client.get("/health").text
            assert client.get("/ready").status_code == 503
            assert [call.result().json()["error"]["code"] for call in calls] == ["STORE_UNAVAILABLE"] * 4
        assert store_note(client).status_code == 200
        with paused(get_server()):
            last = pool.submit(store_note, client)
            assert client.get("/health").status_code == 503
            desk.process.send_signal(signal.SIGTERM)
            assert desk.process.wait(timeout=LONGEST_SECONDS) == 0
            assert last.exception() is not None or last.result().status_code >= 500
