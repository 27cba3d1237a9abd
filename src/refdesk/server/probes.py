"""Probes for machines: whether the server is healthy and ready for requests, and its metrics.

None of them waits for a storage engine longer than `MOST_SECONDS`. An engine that does not answer may block a check
much longer, and sometimes its thread too; so a check runs as a task of its own, at most one at a time, and whoever asks
waits for it only that long. An engine that answers is there, however long it takes to count what it holds: then the
counts of the check before are shown.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response
from starlette.routing import Route

from refdesk import errors
from refdesk.core.background.health import Health
from refdesk.core.clock import SystemClock
from refdesk.core.operations import NESTED
from refdesk.server.calls import Caller
from refdesk.server.credentials import IDENTIFY_SECONDS, find_caller, is_keyless
from refdesk.server.metrics import Metrics
from refdesk.server.replies import reply, reply_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskGroup
    from starlette.requests import Request

    from refdesk.app import Desk

logger = logging.getLogger(__name__)

MOST_SECONDS = IDENTIFY_SECONDS

COUNTING_SECONDS = 1.0
"""How long new counts are waited for once every engine has answered."""

LONGEST_COUNTING_SECONDS = 30.0
"""An engine that has been counting for longer is taken to answer no more."""

METRICS_SCOPE = "metrics:read"

SILENT = f"The store has not answered for {MOST_SECONDS:g} seconds. See whether it runs and can be reached."

COUNTING = "What waits to be embedded is still being counted."

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class _Look:
    """One health check of a desk, and its result."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answered_at: float = 0.0
    done: anyio.Event = field(default_factory=anyio.Event)
    found: Health | None = None

    def note_answer(self) -> None:
        """Note that every engine has answered."""
        self.answered_at = anyio.current_time()
        self.answered.set()

    @property
    def is_counting(self) -> bool:
        """Whether every engine has answered, and not too long ago to be still there."""
        return self.answered.is_set() and anyio.current_time() < self.answered_at + LONGEST_COUNTING_SECONDS


@dataclass(slots=True)
class HealthCheck:
    """Checks the health of a desk, once for all who ask at the same time.

    Attributes:
        most_seconds: How long a caller waits for the engines.
        counting_seconds: How long a caller waits for new counts after that.
    """

    desk: Desk
    most_seconds: float = MOST_SECONDS
    counting_seconds: float = COUNTING_SECONDS
    _group: TaskGroup | None = None
    _running: _Look | None = None
    _last: Health | None = None  # with counts

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Allow checks to run until the context ends."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            self._group = None
            group.cancel_scope.cancel()

    async def measure(self) -> Health:
        """Return the health of the desk; `failing` if it cannot be determined within `most_seconds`."""
        if self._group is None:
            return _fail("The server is shutting down.")
        if self._running is None:
            self._running = _Look()
            self._group.start_soon(self._look, self._running)
        look = self._running
        with anyio.move_on_after(self.most_seconds):
            await look.answered.wait()
        if look.is_counting:
            with anyio.move_on_after(self.counting_seconds):
                await look.done.wait()
        if look.found is not None:
            return look.found
        if look.is_counting:
            return self._last or Health("degraded", (COUNTING,), {}, SystemClock().now())
        return _fail(SILENT)

    async def _look(self, look: _Look) -> None:
        try:
            look.found = await self.desk.get_health(look.note_answer)
        except Exception:
            # Whoever asks is told; everything else goes on.
            logger.exception("looking at the health broke")
            look.found = _fail("Looking at the health ended by a bug; see the server's log.")
        finally:
            self._running = None
            self._last = look.found if look.found is not None and look.found.backlog is not None else None
            look.note_answer()
            look.done.set()


def _fail(reason: str) -> Health:
    return Health("failing", (reason,), {}, SystemClock().now())


@dataclass(frozen=True, slots=True)
class Probes:
    """The addresses of the probes."""

    check: HealthCheck
    metrics: Metrics = field(default_factory=Metrics)

    def build_routes(self) -> list[Route]:
        """Return their routes."""
        return [
            Route("/health", self._tell_health),
            Route("/ready", self._tell_readiness),
            Route("/metrics", self._tell_metrics),
        ]

    async def get_shown(self, request: Request) -> Health:
        """Return the health as far as a caller may see it: counts span all orgs, so they need `admin`, or a desk
        without keys."""
        found, caller = await self.check.measure(), find_caller(request)
        is_trusted = caller is not None and (is_keyless(request.scope) or "admin" in caller.scopes)
        return found if is_trusted else found.without_counts()

    async def _tell_health(self, request: Request) -> Response:
        found = await self.get_shown(request)
        return reply(found.to_json(), 503 if found.status == "failing" else 200)

    async def _tell_readiness(self, _: Request) -> Response:
        found = await self.check.measure()
        is_ready = found.status != "failing"
        return reply({"ready": is_ready, "problems": list(found.problems)}, 200 if is_ready else 503)

    async def _tell_metrics(self, request: Request) -> Response:
        caller = find_caller(request)
        if caller is None or not (is_keyless(request.scope) or caller.scopes & {METRICS_SCOPE, "admin"}):
            error = errors.PermissionDeniedError(f"This needs the scope {METRICS_SCOPE}.")
            if caller is not None:
                await Caller(self.check.desk, caller, "rest").record_refusal("metrics", error)
            return reply_error(error, NESTED)
        return Response(self.metrics.render(await self.check.measure()), media_type=METRICS_TYPE)
