"""Progress of a call: its handler's reports, and heartbeats in between, go to the client that asked for them.

Clients extend their deadlines while a call reports progress, so a call with nothing to report sends heartbeats.
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
"""Sends the amount of work done, the total if it is known, and what is being done."""

HEARTBEAT_SECONDS = 5.0
"""After this long without a report, the client is notified that the call is still being worked on."""

MOST_WAITING = 64
"""Most reports that wait for a slow client; further ones are dropped, since later reports make up for them."""

STILL = "Still being worked on"

FLUSH_SECONDS = 1.0
"""How long an answer waits for earlier reports to be sent."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far a call has got."""

    done: float = 0.0
    total: float | None = None
    message: str = ""


@asynccontextmanager
async def reporting(send: Send, heartbeat: float = HEARTBEAT_SECONDS) -> AsyncGenerator[Report]:
    """Yield the function that a call reports to; on exit, its reports have been sent unless the client does not read.

    As the protocol requires, each notification reports more progress than the one before; others are not sent.
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
    """Return a number between this one and the next whole number, which is reserved for real progress."""
    return told + (math.floor(told) + 1 - told) / 2
