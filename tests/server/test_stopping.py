"""A server that is told to stop still answers what it was asked."""

from __future__ import annotations

from pathlib import Path

import anyio
from pydantic import BaseModel

from refdesk.app import open_desk
from refdesk.core.context import Context
from refdesk.core.operations import READS, Operation, Route, Toolset
from tests.server.echo import make_settings
from tests.server.transports import serve

WORK_SECONDS = 0.7
"""Longer than any stream of events that is cut off at a stop would last, and shorter than the server waits."""


class Nothing(BaseModel):
    pass


async def test_a_call_in_progress_whose_answer_is_a_stream_is_answered(tmp_path: Path) -> None:
    stopping = anyio.Event()

    async def work(context: Context, asked: Nothing) -> Nothing:
        context.report(1, 2, "One")
        await stopping.wait()
        await anyio.sleep(WORK_SECONDS)
        return asked

    operation = Operation(
        name="work",
        title="Work",
        description="Works.",
        input=Nothing,
        output=Nothing,
        handler=work,
        scopes=frozenset(),
        effects=READS,
        route=Route("POST", "/work"),
    )
    toolset = Toolset("echo", "Works.", (operation,))
    async with open_desk(make_settings(tmp_path), [toolset], in_background=False) as desk:
        desk.stop_listeners.append(stopping.set)
        async with serve(desk) as reach, reach.connect("http legacy") as client:

            async def stop(progress: float, total: float | None, message: str | None) -> None:
                reach.stop()

            # The client reads answers by what tools say of themselves, and asks for that once.
            await client.list_tools()
            answer = await client.call_tool("work", {}, progress_callback=stop)
    assert answer.is_error is False
