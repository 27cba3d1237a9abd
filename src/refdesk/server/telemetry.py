"""OpenTelemetry in a server: finds the trace that a message is part of, and sends metrics."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from refdesk.app import Desk
    from refdesk.core.background.health import Health
    from refdesk.server.metrics import Metrics
    from refdesk.telemetry import Telemetry

TRACEPARENT = "traceparent"
"""The name in W3C Trace Context, as a header and in `_meta` (SEP-414)."""

FLUSH_SECONDS = 0.75
"""How long a process that ends waits for its last metrics to be sent."""


def find_traceparent(context: ServerRequestContext[Any, Any]) -> str | None:
    """Return the trace that a message says it is part of: in its `_meta`, or else in the header of its request."""
    said: object = (context.meta or {}).get(TRACEPARENT)
    if said is None and isinstance(headers := getattr(context.request, "headers", None), Mapping):
        said = cast("Mapping[str, str]", headers).get(TRACEPARENT)
    return said if isinstance(said, str) else None


@asynccontextmanager
async def sending_own_metrics(desk: Desk) -> AsyncGenerator[None]:
    """Count the desk's calls and send its metrics during the block, if the settings name a receiver."""
    if desk.telemetry is None:
        yield
        return
    from refdesk.server.metrics import Metrics
    from refdesk.server.probes import HealthCheck

    metrics, check = Metrics(), HealthCheck(desk)
    desk.listeners.append(metrics.count)
    async with check.run(), sending_metrics(desk.telemetry, metrics, check.measure):
        yield


@asynccontextmanager
async def sending_metrics(
    telemetry: Telemetry | None, metrics: Metrics, measure: Callable[[], Awaitable[Health]]
) -> AsyncGenerator[None]:
    """Send metrics whenever they are due during the block, and once more at its end."""
    if telemetry is None or not telemetry.sends_metrics:
        yield
        return

    async def send() -> None:
        families = metrics.collect(await measure())
        await anyio.to_thread.run_sync(telemetry.send_metrics, families, abandon_on_cancel=True)

    async def keep_sending() -> None:
        while True:
            await anyio.sleep(telemetry.interval_seconds)
            await send()

    async with anyio.create_task_group() as group:
        group.start_soon(keep_sending)
        try:
            yield
        finally:
            group.cancel_scope.cancel()
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await send()
