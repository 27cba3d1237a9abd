"""Brief transactions of one org in line share a commit: each is undone alone, and none is answered before it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from refdesk.errors import StoreError
from refdesk.model import Metadata, MetadataKey
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.connections import Scope, Statement
from refdesk.stores.postgres.store import PostgresStore
from refdesk.stores.postgres.transactions import MOST_SHARING
from tests.engines.postgres import get_store_url
from tests.stores.samples import NOTES, make_document, put

pytestmark = pytest.mark.engines

END_OTHERS = Statement(
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
    "WHERE state <> 'idle' AND usename = current_user AND pid <> pg_backend_pid()"
)
"""Ends the connections that are in a transaction."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[PostgresStore]:
    async with open_store(get_store_url(tmp_path)) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


@dataclass
class Call:
    """A brief transaction that writes one record, or fails, when it is told to."""

    store: PostgresStore
    name: str
    fails_by: type[Exception] | None = None
    is_refused: bool = False
    is_brief: bool = True
    entered: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    outcome: str = ""

    @property
    def key(self) -> MetadataKey:
        return MetadataKey("acme", "job", self.name)

    async def run(self) -> None:
        with self.scope:
            try:
                await self._write()
                self.outcome = "stored"
            except (StoreError, ZeroDivisionError) as error:
                self.outcome = type(error).__name__

    async def _write(self) -> None:
        async with self.store.transaction() as transaction:
            if self.is_brief:
                await transaction.expect([], [self.key])
            assert await transaction.get_metadata(self.key) is None
            self.entered.set()
            await self.go.wait()
            await transaction.put_metadata([Metadata(self.key, {})])
            if self.is_refused:
                await transaction._session.send(Scope("acme"), Statement("SELECT nothing"))  # pyright: ignore[reportPrivateUsage]
            if self.fails_by is not None:
                raise self.fails_by


async def list_names(store: PostgresStore) -> set[str]:
    return {record.key.name for record in await store.list_metadata("job", org="acme")}


def watch_commits(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    send, seen = store.connections.send, list[str]()

    async def watched(connection: object, *statements: Statement, **options: object) -> object:
        seen.extend(str(each.text) for each in statements if str(each.text) == "COMMIT")
        return await send(connection, *statements, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(store.connections, "send", watched)
    return seen


async def line_up(group: anyio.abc.TaskGroup, *calls: Call) -> None:
    """Have the first be within its transaction, and the others stand in line behind it."""
    for call in calls:
        group.start_soon(call.run)
        await (call.entered.wait() if call is calls[0] else wait_all_tasks_blocked())


async def test_those_in_line_share_a_commit_and_none_is_answered_before(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [Call(store, f"call {number}") for number in range(4)]
    commits = watch_commits(store, monkeypatch)
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        for call in calls:
            await call.entered.wait()
            assert [each.outcome for each in calls] == [""] * 4
            assert await list_names(store) == set()
            commits.clear()  # of what has just been read
            call.go.set()
    assert [call.outcome for call in calls] == ["stored"] * 4
    assert commits == ["COMMIT"]
    assert await list_names(store) == {call.name for call in calls}


async def test_so_many_share_a_commit_at_most(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [Call(store, f"call {number}") for number in range(MOST_SHARING + 2)]
    commits = watch_commits(store, monkeypatch)
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        for call in calls:
            call.go.set()
    assert {call.outcome for call in calls} == {"stored"}
    assert len(commits) == 2
    assert len(await list_names(store)) == MOST_SHARING + 2


@pytest.mark.parametrize("which", range(3))
async def test_one_that_fails_is_undone_alone(store: PostgresStore, which: int) -> None:
    calls = [Call(store, f"call {number}") for number in range(3)]
    calls[which].fails_by = ZeroDivisionError
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        for call in calls:
            call.go.set()
    others = [call for call in calls if call is not calls[which]]
    assert calls[which].outcome == "ZeroDivisionError"
    assert [call.outcome for call in others] == ["stored"] * 2
    assert await list_names(store) == {call.name for call in others}


@pytest.mark.parametrize("which", range(3))
async def test_one_whose_statement_the_server_refuses_is_undone_alone(store: PostgresStore, which: int) -> None:
    calls = [Call(store, f"call {number}", is_refused=number == which) for number in range(3)]
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        for call in calls:
            call.go.set()
    others = [call for call in calls if call is not calls[which]]
    assert calls[which].outcome == "StoreError"
    assert await list_names(store) == {call.name for call in others}


@pytest.mark.parametrize("which", [1, 2])
async def test_one_that_is_cancelled_within_its_turn_is_undone_alone(store: PostgresStore, which: int) -> None:
    calls = [Call(store, f"call {number}") for number in range(3)]
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        for call in calls:
            await call.entered.wait()
            if call is calls[which]:
                call.scope.cancel()
            else:
                call.go.set()
    others = [call for call in calls if call is not calls[which]]
    assert [call.outcome for call in others] == ["stored"] * 2
    assert await list_names(store) == {call.name for call in others}


async def test_who_is_followed_by_nobody_after_all_commits(store: PostgresStore) -> None:
    first, second = Call(store, "first"), Call(store, "second")
    async with anyio.create_task_group() as group:
        await line_up(group, first, second)
        first.go.set()
        await checkpoint()
        second.scope.cancel()
    assert (first.outcome, second.outcome) == ("stored", "")
    assert await list_names(store) == {"first"}


async def test_one_that_is_not_brief_begins_when_those_before_are_committed(store: PostgresStore) -> None:
    calls = [Call(store, "first"), Call(store, "second"), Call(store, "long", is_brief=False), Call(store, "last")]
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        calls[0].go.set()
        calls[1].go.set()
        await calls[2].entered.wait()
        assert await list_names(store) == {"first", "second"}
        calls[2].go.set()
        calls[3].go.set()
    assert {call.outcome for call in calls} == {"stored"}


async def test_when_the_connection_is_lost_all_of_them_learn_it_and_nothing_is_stored(store: PostgresStore) -> None:
    calls = [Call(store, f"call {number}") for number in range(3)]
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        calls[0].go.set()
        calls[1].go.set()
        await calls[2].entered.wait()
        await store.connections.read(Scope(""), END_OTHERS)
        calls[2].go.set()
    assert [call.outcome for call in calls] == ["StoreError"] * 3
    assert await list_names(store) == set()


async def test_when_it_is_lost_in_the_midst_those_before_learn_it_and_those_behind_go_on(store: PostgresStore) -> None:
    calls = [Call(store, f"call {number}") for number in range(3)]
    async with anyio.create_task_group() as group:
        await line_up(group, *calls)
        calls[0].go.set()
        await calls[1].entered.wait()
        await store.connections.read(Scope(""), END_OTHERS)
        calls[1].go.set()
        calls[2].go.set()
    assert [call.outcome for call in calls] == ["StoreError", "StoreError", "stored"]
    assert await list_names(store) == {"call 2"}


async def test_writers_of_an_org_whose_connections_are_ended_again_and_again_all_have_an_answer(
    store: PostgresStore,
) -> None:
    outcomes = list[str]()

    async def write(writer: int) -> None:
        for number in range(20):
            call = Call(store, f"{writer} {number}")
            call.go.set()
            await call.run()
            outcomes.append(f"{call.name} {call.outcome}")

    async def end_others() -> None:
        while True:
            await store.connections.read(Scope(""), END_OTHERS)

    async with anyio.create_task_group() as group:
        group.start_soon(end_others)
        async with anyio.create_task_group() as writers:
            for writer in range(12):
                writers.start_soon(write, writer)
        group.cancel_scope.cancel()
    assert {outcome.split()[2] for outcome in outcomes} <= {"stored", "StoreError"}
    kept = await list_names(store)
    assert {outcome.removesuffix(" stored") for outcome in outcomes if outcome.endswith(" stored")} <= kept
    last = Call(store, "last")
    last.go.set()
    await last.run()
    assert last.outcome == "stored"


async def test_what_is_expected_takes_one_round_trip_and_its_writes_go_with_the_commit(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, make_document("first", "apple"))
    send, trips = store.connections.send, list[int]()

    async def counted(connection: object, *statements: Statement, **options: object) -> object:
        trips.append(len(statements))
        return await send(connection, *statements, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(store.connections, "send", counted)
    document, key = make_document("second", "apple"), MetadataKey("acme", "job", "n")
    async with store.transaction() as transaction:
        await transaction.expect([document], [key])
        assert await transaction.get_metadata(key) is None
        await transaction.put_documents([document])
        await transaction.put_metadata([Metadata(key, {})])
    assert len(trips) == 2
    monkeypatch.undo()
    assert await store.get_documents(NOTES, ["second"]) == [document]


async def test_who_is_cancelled_while_others_finish_waits_for_the_commit(store: PostgresStore) -> None:
    calls = [Call(store, "first"), Call(store, "second"), Call(store, "third", fails_by=KeyError)]

    async def run_all() -> None:
        async with anyio.create_task_group() as group:
            await line_up(group, *calls)
            for call in calls:
                call.go.set()

    with pytest.raises(ExceptionGroup):
        await run_all()
    assert [call.outcome for call in calls] == ["stored", "stored", ""]
    assert await list_names(store) == {"first", "second"}
