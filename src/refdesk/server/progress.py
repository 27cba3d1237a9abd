"""Progress of a call: what its handler reports goes to the client that asked for it, and so does that it goes on.

Clients extend their own deadlines while a call reports, so a call that has nothing to say says that much.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream

    from refdesk.core.context import Report

Send: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends the work done, all the work where it is known, and what is being done."""

HEARTBEAT_SECONDS = 5.0
"""After so long without a report a client hears that the call is still being worked on."""

MOST_WAITING = 64
"""Reports that wait for a slow client; further ones are dropped, since the next says as much."""

STILL = "Still being worked on"

FLUSH_SECONDS = 1.0
"""How long an answer waits for the reports before it."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far a call is."""

    done: float = 0.0
    total: float | None = None
    message: str = ""


@asynccontextmanager
async def reporting(send: Send, heartbeat: float = HEARTBEAT_SECONDS) -> AsyncGenerator[Report]:
    """Yield what a call reports to; on leaving, what it reported has been sent, or the client does not read.

    Every notification has more done than the one before it, as the protocol wants; what would not, is not sent.
    """
    put, take = anyio.create_memory_object_stream[Step](MOST_WAITING)

    def report(done: float, total: float | None = None, message: str = "") -> None:
        try:
            put.send_nowait(Step(done, total, message))
        except (anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    sent = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_send_all, take, send, heartbeat, sent)
        try:
            yield report
        finally:
            put.close()
            with anyio.move_on_after(FLUSH_SECONDS):
                await sent.wait()
            group.cancel_scope.cancel()


async def _send_all(take: MemoryObjectReceiveStream[Step], send: Send, heartbeat: float, sent: anyio.Event) -> None:
    last, told = Step(), -1.0
    async with take:
        while True:
            step: Step | None = None
            with anyio.move_on_after(heartbeat):
                try:
                    step = await take.receive()
                except anyio.EndOfStream:
                    break
            last = step or last
            done = step.done if step is not None else _get_next(max(told, 0.0))
            if done > told:
                told = done
                await send(done, last.total, last.message or STILL)
    sent.set()


def _get_next(told: float) -> float:
    """Return a number between this one and the next whole one, which is kept for a step that is really done."""
    return told + (math.floor(told) + 1 - told) / 2
