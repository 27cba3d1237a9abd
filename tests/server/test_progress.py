"""Long calls report how far they are, over every transport and in both eras; ordinary ones pay nothing for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
import pytest
from pydantic import BaseModel
from starlette.applications import Starlette

from refdesk.app import open_desk
from refdesk.core.context import Context
from refdesk.core.operations import Effects, Operation, Route, Toolset
from refdesk.server import http, mcp
from refdesk.server.progress import reporting
from tests.server.echo import READER, make_settings
from tests.server.test_eras import MODERN_META
from tests.server.test_messages import ACCEPT, OPEN, call
from tests.server.transports import TRANSPORTS, Reach, serve


class Nothing(BaseModel):
    pass


class Seen:
    """What a client was notified of, and a step that waits until it was."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float | None, str | None]] = []
        self.changed = anyio.Event()

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.steps.append((progress, total, message))
        self.changed.set()


class Walk:
    """An operation that goes on once its client knows of its first step."""

    def __init__(self) -> None:
        self.seen = Seen()

    async def __call__(self, context: Context, asked: Nothing) -> Nothing:
        context.report(1, 3, "One")
        await self.seen.changed.wait()
        context.report(2, 3, "Two")
        context.report(2, 3, "No further")
        context.report(3, 3, "Three")
        return asked


@pytest.fixture
def walk() -> Walk:
    return Walk()


def make_toolset(walk: Walk) -> Toolset:
    operation = Operation(
        name="walk",
        title="Walk",
        description="Walks.",
        input=Nothing,
        output=Nothing,
        handler=walk,
        scopes=frozenset(),
        effects=Effects(read_only=False, idempotent=True),
        route=Route("POST", "/walk"),
    )
    return Toolset("echo", "Walks.", (operation,))


@pytest.fixture
async def reach(walk: Walk, tmp_path: Path) -> AsyncGenerator[Reach]:
    async with open_desk(make_settings(tmp_path), [make_toolset(walk)]) as desk, serve(desk) as at:
        yield at


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_hears_of_each_step_while_the_call_goes_on(reach: Reach, walk: Walk, transport: str) -> None:
    async with reach.connect(transport) as client:
        with anyio.fail_after(120):
            result = await client.call_tool("walk", {}, progress_callback=walk.seen.note)
    assert not result.is_error
    assert walk.seen.steps == [(1, 3, "One"), (2, 3, "Two"), (3, 3, "Three")]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_who_does_not_ask_is_told_nothing(reach: Reach, walk: Walk, transport: str) -> None:
    walk.seen.changed.set()
    async with reach.connect(transport) as client:
        assert not (await client.call_tool("walk", {})).is_error
    assert walk.seen.steps == []


async def test_an_answer_is_a_stream_only_where_its_request_needs_one(reach: Reach, walk: Walk) -> None:
    walk.seen.changed.set()
    plain = call(name="walk", arguments={})
    asking = call(name="walk", arguments={}, _meta={"progressToken": 7})
    async with httpx2.AsyncClient(base_url=reach.url) as web:
        opened = await web.post("/mcp", json=OPEN, headers=ACCEPT)
        session = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        assert opened.headers["content-type"].startswith("application/json")
        kinds = {
            "one body": (plain, session),
            "a stream": (asking, session),
            "one body, for who reads no streams": (asking, {**session, "accept": "application/json"}),
        }
        found = {name: await web.post("/mcp", json=body, headers=headers) for name, (body, headers) in kinds.items()}
    assert {name: answer.headers["content-type"].split(";")[0] for name, answer in found.items()} == {
        "one body": "application/json",
        "a stream": "text/event-stream",
        "one body, for who reads no streams": "application/json",
    }
    assert '"progressToken":7' in found["a stream"].text


async def test_a_call_that_has_nothing_to_say_still_shows_that_it_goes_on() -> None:
    sent: list[tuple[float, float | None, str | None]] = []
    third = anyio.Event()

    async def send(done: float, total: float | None, message: str | None) -> None:
        sent.append((done, total, message))
        if len(sent) == 4:
            third.set()

    async with reporting(send, heartbeat=0.001) as report:
        report(1, 2, "The long part")
        with anyio.fail_after(120):
            await third.wait()
        report(2, 2, "The end")
    numbers = [done for done, _, _ in sent]
    assert numbers == sorted(set(numbers))
    assert sent[-1] == (2, 2, "The end")
    assert {message for _, _, message in sent[:-1]} <= {"The long part", "Still being worked on"}


async def test_a_client_that_does_not_read_holds_up_nothing() -> None:
    async def send(done: float, total: float | None, message: str | None) -> None:
        del done, total, message
        await anyio.sleep_forever()

    async with reporting(send, heartbeat=1000) as report:
        for step in range(1000):
            report(step)


class Unlisted(mcp.Adapter):
    """An adapter that must not be asked for its list."""

    async def list_tools(
        self, context: mcp.RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        raise AssertionError


async def test_no_call_lists_all_tools_first(walk: Walk, tmp_path: Path) -> None:
    walk.seen.changed.set()
    message = call(name="walk", arguments={"x": 1}, _meta=MODERN_META)
    headers = {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "walk"}
    async with open_desk(make_settings(tmp_path), [make_toolset(walk)]) as desk:
        gate = http.build_app(desk, READER, make_adapter=Unlisted)
        assert isinstance(gate.app, Starlette)
        transport = httpx2.ASGITransport(app=gate)
        async with (
            gate.app.router.lifespan_context(gate.app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8350") as web,
        ):
            answer = await web.post("/mcp", json=message, headers=headers)
    assert answer.json()["result"]["resultType"] == "complete"
