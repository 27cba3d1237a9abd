"""One key at full speed: other orgs are served meanwhile, and an answer in time waits for no thread."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.core.context import Context
from refdesk.core.operations import Operation
from refdesk.model import Principal
from refdesk.server.calls import Caller
from tests.server import echo
from tests.server.echo import GetInput, Said, make_settings

ALL = frozenset({"echo:read"})


@asynccontextmanager
async def open_with(home: Path, operation: Operation, **chosen: object) -> AsyncGenerator[Desk]:
    toolset = replace(echo.NESTED, listed=(operation,), templates=())
    async with open_desk(make_settings(home, **chosen), [toolset]) as desk:
        yield desk


async def test_a_flood_of_one_org_lets_each_of_the_others_requests_pass(tmp_path: Path) -> None:
    """Every answer waits until it is told to come, so that it can be said who is worked on."""
    at_work: list[tuple[str, anyio.Event]] = []

    async def wait(context: Context, asked: GetInput) -> Said:
        end = anyio.Event()
        at_work.append((context.principal.org, end))
        await end.wait()
        return Said(said=asked.id, by=context.principal.agent)

    operation = replace(echo.GET, handler=wait)
    async with open_with(tmp_path, operation) as desk, anyio.create_task_group() as group:
        await desk.get_base()
        flood, good = (Caller(desk, Principal(org, "ann", ALL), "test") for org in ("flood", "good"))
        for _ in range(60):
            group.start_soon(flood.run, operation, {"id": "x"})
        for number in range(30):
            group.start_soon(good.run, operation, {"id": "y"})
            await anyio.wait_all_tasks_blocked()
            while not (mine := [each for each in at_work if each[0] == "good"]):
                at_work.pop(0)[1].set()
                await anyio.wait_all_tasks_blocked()
            others = [each for each in at_work if each[0] == "flood"]
            assert len(others) <= (16 if number == 0 else 15 - number if number < 14 else 1)
            at_work.remove(mine[0])
            mine[0][1].set()
            if others:
                at_work.remove(others[0])
                others[0][1].set()
            await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("transport", ["handlers", "rest"])
async def test_an_answer_in_time_waits_for_no_thread(tmp_path: Path, transport: str) -> None:
    may_end = threading.Event()

    async def hang(context: Context, asked: GetInput) -> Said:
        await anyio.to_thread.run_sync(may_end.wait)
        return Said(said=asked.id, by=context.principal.agent)

    operation = replace(echo.GET, handler=hang)
    async with open_with(tmp_path, operation, request_timeout_seconds=0.05, concurrent_requests=1) as desk:
        for _ in range(3):
            if transport == "handlers":
                with pytest.raises(errors.WorldError, match="No answer within"):
                    await Caller(desk, Principal("a", "ann", ALL), "test").run(operation, {"id": "x"})
            else:
                await ask_over_rest(desk)
        may_end.set()


async def ask_over_rest(desk: Desk) -> None:
    from tests.server.conftest import open_http

    async with open_http(desk, Principal("a", "ann", ALL)) as client:
        answer: httpx2.Response = await client.get("/echo/items/x")
    assert answer.status_code == 500
    assert "No answer within" in answer.json()["error"]["message"]
