"""The Tasks extension: what takes long goes on as a task, whoever is connected, through the SDK's client."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import Field

from refdesk.app import Desk, open_desk
from refdesk.core.background.leases import Holder
from refdesk.core.background.tasks import MOST_WORKING, Task, TaskLog
from refdesk.core.clock import FixedClock
from refdesk.core.context import Context
from refdesk.core.operations import Effects, Operation, Route, Toolset
from refdesk.errors import ConflictError, StoreError
from refdesk.model import JsonValue, Principal
from refdesk.server import mcp
from refdesk.server.tasks import EXTENSION
from refdesk.stores.sqlite import open_store
from tests.core.fakes import NOW
from tests.server.conftest import connect
from tests.server.echo import READER, Said, make_settings
from tests.server.transports import MODERN, serve


class Asked(Said):
    said: str = "x"
    by: str = "y"


class TaskResult(types.Result):
    """What a call is answered with that has become a task."""

    result_type: Literal["task"] = Field("task", alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str


@dataclass
class Tool:
    """A tool that waits until it may go on, and counts how often it was begun and went through."""

    may_go_on: anyio.Event = field(default_factory=anyio.Event)
    begun: list[str] = field(default_factory=list[str])
    is_through: list[str] = field(default_factory=list[str])

    async def __call__(self, context: Context, asked: Asked) -> Said:
        self.begun.append(asked.said)
        context.report(1, 2, "Waiting")
        if asked.said == "broken":
            raise ZeroDivisionError
        await self.may_go_on.wait()
        self.is_through.append(asked.said)
        if asked.said == "refused":
            raise ConflictError("Not so.")
        return Said(said=asked.said, by=context.principal.agent)


def keep(asked: Asked) -> dict[str, JsonValue]:
    return {"said": asked.said, "by": "kept"}


def make_toolset(tool: Tool, *, is_repeatable: bool = True) -> Toolset:
    operation = Operation(
        name="wait_for_it",
        title="Wait",
        description="Waits.",
        input=Asked,
        output=Said,
        handler=tool,
        scopes=frozenset({"echo:read"}),
        effects=Effects(read_only=False, idempotent=is_repeatable),
        route=Route("POST", "/wait"),
        keep=keep,
    )
    return Toolset("echo", "Waits.", (operation,))


class TakesTasks(ClientExtension):
    """A client that asks again and again until a task has ended, as hosts do."""

    identifier = EXTENSION

    def __init__(self, tool: Tool | None = None) -> None:
        self.tool = tool
        self.seen: list[dict[str, Any]] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.resolve)]

    async def resolve(self, found: TaskResult, context: ClaimContext) -> types.CallToolResult:
        while True:
            shown = await ask(context.session, "tasks/get", found.task_id)
            self.seen.append(shown)
            if self.tool is not None:
                self.tool.may_go_on.set()
            if shown["status"] == "completed":
                return types.CallToolResult.model_validate(shown["result"])
            assert shown["status"] == "working", shown
            await anyio.sleep(0.01)


class Params(types.RequestParams):
    task_id: str


class Asking(types.Request[Params, str]):
    pass


class Anything(types.Result, extra="allow"):
    pass


async def ask(session: Any, method: str, task_id: str) -> dict[str, Any]:  # noqa: ANN401 - the SDK's session
    answer = await session.send_request(Asking(method=method, params=Params(task_id=task_id)), Anything)
    return cast("dict[str, Any]", answer.model_dump(mode="json", by_alias=True))


@pytest.fixture
def tool() -> Tool:
    return Tool()


@asynccontextmanager
async def open_on(folder: Path, toolset: Toolset) -> AsyncGenerator[Desk]:
    settings = make_settings(folder, store=f"sqlite:///{folder / 'desk.sqlite3'}")
    async with open_desk(settings, [toolset], in_background=False) as desk:
        yield desk


@pytest.fixture
async def desk(tmp_path: Path, tool: Tool) -> AsyncGenerator[Desk]:
    async with open_on(tmp_path, make_toolset(tool)) as opened:
        yield opened


@pytest.mark.parametrize("transport", [f"http {MODERN}", f"stdio {MODERN}"])
async def test_a_client_that_takes_tasks_gets_the_outcome_of_what_takes_long(
    desk: Desk, tool: Tool, transport: str
) -> None:
    host = TakesTasks(tool)
    async with serve(desk) as reach, reach.connect(transport, extensions=[host]) as client:
        result = await client.call_tool("wait_for_it", {"said": "hello"})
    assert result.structured_content == {"said": "hello", "by": "tester"}
    first = host.seen[0]
    assert (first["status"], first["statusMessage"]) == ("working", "Waiting")
    assert (first["ttlMs"], first["pollIntervalMs"]) == (3_600_000, 1_000)
    assert tool.begun == ["hello"]


@pytest.mark.parametrize("transport", ["http legacy", f"http {MODERN}", "stdio legacy"])
async def test_all_others_are_answered_when_it_is_through(desk: Desk, tool: Tool, transport: str) -> None:
    tool.may_go_on.set()
    async with serve(desk) as reach, reach.connect(transport) as client:
        result = await client.call_tool("wait_for_it", {"said": "hello"})
    assert result.structured_content == {"said": "hello", "by": "tester"}


async def test_what_is_through_in_a_moment_is_no_task(desk: Desk, tool: Tool) -> None:
    tool.may_go_on.set()
    host = TakesTasks()
    async with serve(desk) as reach, reach.connect(f"http {MODERN}", extensions=[host]) as client:
        assert not (await client.call_tool("wait_for_it", {})).is_error
        assert (await client.call_tool("wait_for_it", {"said": 1})).is_error
    assert host.seen == []
    assert await (await desk.get_base()).knowledge_base.store.list_metadata("task") == []


async def test_an_error_of_the_tool_is_the_tasks_result(desk: Desk, tool: Tool) -> None:
    async with serve(desk) as reach, reach.connect(f"http {MODERN}", extensions=[TakesTasks(tool)]) as client:
        result = await client.call_tool("wait_for_it", {"said": "refused"})
    assert result.is_error
    assert result.meta is not None
    assert result.meta["refdesk/code"] == "CONFLICT"


async def begin(client: Client, said: str = "hello") -> str:
    found = await client.session.call_tool("wait_for_it", {"said": said}, allow_claimed=True)
    assert isinstance(found, TaskResult)
    return found.task_id


async def test_a_task_is_cancelled_and_again_without_harm(desk: Desk, tool: Tool) -> None:
    async with serve(desk) as reach, reach.connect(f"http {MODERN}", extensions=[TakesTasks()]) as client:
        id = await begin(client)
        for _ in range(2):
            answer = await ask(client.session, "tasks/cancel", id)
            assert not {"taskId", "status", "result"} & set(answer)
        shown = await ask(client.session, "tasks/get", id)
    assert shown["status"] == "cancelled"
    assert (tool.begun, tool.is_through) == (["hello"], [])


async def test_a_task_is_its_callers_alone(desk: Desk, tool: Tool) -> None:
    messages: list[str] = []
    async with serve(desk) as reach, reach.connect(f"http {MODERN}", extensions=[TakesTasks()]) as client:
        id = await begin(client)
        others = [replace(READER, agent="another"), replace(READER, org="others")]
        for principal, asked in [(others[0], id), (others[1], id), (READER, "01930000-0000-7000-8000-000000000001")]:
            async with _connect(desk, principal) as other:
                for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                    with pytest.raises(MCPError) as caught:
                        await ask(other.session, method, asked)
                    messages.append(f"{caught.value.code} {caught.value}")
        assert (await ask(client.session, "tasks/get", id))["status"] == "working"
    assert len(set(messages)) == 1
    assert messages[0].startswith("-32602")


@asynccontextmanager
async def _connect(desk: Desk, principal: Principal) -> AsyncGenerator[Client]:
    server = mcp.build_server(desk, mcp.identify_local(principal, is_agent_known=True))
    async with Client(server, mode=MODERN, extensions=[TakesTasks()]) as client:
        yield client


async def test_who_has_not_declared_the_extension_is_told_to(desk: Desk) -> None:
    async with connect(desk, MODERN) as client:
        with pytest.raises(MCPError, match=EXTENSION) as caught:
            await ask(client.session, "tasks/get", "x")
    assert caught.value.code == -32021


@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_what_a_process_left_behind_is_taken_over_or_said_to_be_interrupted(
    tmp_path: Path, tool: Tool, is_repeatable: bool
) -> None:
    async with open_store(tmp_path / "desk.sqlite3") as store:
        gone = TaskLog(store, FixedClock(NOW), Holder(process=2**22 + 1))
        task = await gone.create(READER, "wait_for_it", keep(Asked(said="left", by="secret")))
    tool.may_go_on.set()
    async with open_on(tmp_path, make_toolset(tool, is_repeatable=is_repeatable)) as desk:
        adapter = mcp.Adapter(desk, mcp.identify_local(READER, is_agent_known=True))
        async with Client(adapter.build_server(), mode=MODERN, extensions=[TakesTasks()]) as client:
            assert (await ask(client.session, "tasks/get", task.id))["status"] == "working"
            await adapter.tasks.take_over()
            with anyio.fail_after(120):
                while (shown := await ask(client.session, "tasks/get", task.id))["status"] == "working":
                    await anyio.lowlevel.checkpoint()
    assert tool.begun == ["left"] * is_repeatable
    assert shown["status"] == ("completed" if is_repeatable else "failed")
    assert "interrupted" in str(shown.get("error")) or is_repeatable


async def test_a_store_that_fails_meanwhile_costs_no_outcome(
    desk: Desk, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []
    change = TaskLog._change  # pyright: ignore[reportPrivateUsage] - what every write of a task that runs goes through

    async def fail_at_first(log: TaskLog, task: Task, **changes: object) -> bool:
        name = "finish" if "outcome" in changes else "renew"
        if failed.count(name) < 3:
            failed.append(name)
            raise StoreError("The store is away.")
        return await change(log, task, **changes)

    monkeypatch.setattr(TaskLog, "_change", fail_at_first)
    adapter = mcp.Adapter(desk, mcp.identify_local(READER, is_agent_known=True))
    adapter.tasks.at_once = adapter.tasks.renew_seconds = 0.01
    async with Client(adapter.build_server(), mode=MODERN, extensions=[TakesTasks()]) as client:
        id = await begin(client)
        with anyio.fail_after(120):
            while failed.count("renew") < 3:
                await anyio.lowlevel.checkpoint()
            tool.may_go_on.set()
            while (shown := await ask(client.session, "tasks/get", id))["status"] == "working":
                await anyio.lowlevel.checkpoint()
    assert shown["result"]["structuredContent"] == {"said": "hello", "by": "tester"}
    assert failed.count("finish") == 3
    assert tool.begun == ["hello"]


async def test_an_agent_has_a_bounded_number_of_tasks(desk: Desk) -> None:
    base = (await desk.get_base()).knowledge_base
    log = TaskLog(base.store, base.clock)
    for _ in range(MOST_WORKING):
        await log.create(READER, "wait_for_it", {})
    async with serve(desk) as reach, reach.connect(f"http {MODERN}", extensions=[TakesTasks()]) as client:
        result = await client.call_tool("wait_for_it", {"said": "one more"})
    assert result.is_error
    assert result.meta is not None
    assert result.meta["refdesk/code"] == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(("era", "is_declared"), [("legacy", False), ("auto", True)])
async def test_the_extension_is_declared_where_it_is_served(desk: Desk, era: str, is_declared: bool) -> None:
    async with connect(desk, era) as client:
        assert client.server_capabilities is not None
        assert (EXTENSION in (client.server_capabilities.extensions or {})) == is_declared
