"""Tells open pages that something changed, so that they show it without being loaded again.

A page keeps one stream of events (HTML, section 9.2) open while somebody looks at it. An event says that something
changed, not what: the page requests itself again, as the same visitor, and shows what has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from starlette.responses import StreamingResponse

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response

    from refdesk.app import Desk
    from refdesk.core.operations import Call
    from refdesk.server.console.visits import Visit

POLL_SECONDS = 2.0
"""How soon a write of another process is noticed."""

FRESH_SECONDS = 0.2
"""How long the store's mark, once read by one stream, also serves the others."""

LIFE_SECONDS = 300.0
"""How long a stream lasts; browsers open the next by themselves."""

MOST_OF_AGENT = 20
"""Most streams of one agent of an org; any more are opened again later."""

CHANGED, ALIVE = b"data: changed\n\n", b": alive\n\n"
LATER = b"retry: 60000\n\n"


@dataclass(slots=True)
class Changes:
    """Looks for changes on behalf of all streams of one server."""

    desk: Desk
    _open: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _poke: anyio.Event = field(default_factory=anyio.Event)
    _mark: tuple[float, str] = (0.0, "")

    def __post_init__(self) -> None:
        self.desk.listeners.append(self._note_call)

    @property
    def is_served(self) -> bool:
        """Whether pages hear of changes: not if reads are audited, since each record of one is itself a change."""
        return not self.desk.settings.audit_reads

    async def follow(self, visit: Visit) -> Response:
        """Answer with a stream of events."""
        who = visit.caller.principal
        return StreamingResponse(
            self._tell((who.org, who.agent)), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _tell(self, holder: tuple[str, str]) -> AsyncGenerator[bytes]:
        if not self.is_served or self._open.get(holder, 0) >= MOST_OF_AGENT:
            yield LATER
            return
        self._open[holder] = self._open.get(holder, 0) + 1
        try:
            mark, ends = await self._read_mark(), anyio.current_time() + LIFE_SECONDS
            yield ALIVE
            while anyio.current_time() < ends:
                with anyio.move_on_after(POLL_SECONDS):
                    await self._poke.wait()
                now = await self._read_mark()
                yield ALIVE if now == mark else CHANGED
                mark = now
        finally:
            self._open[holder] -= 1
            if not self._open[holder]:
                del self._open[holder]

    async def _read_mark(self) -> str:
        """Return a mark that differs once anything in the store, or the work in progress, has changed."""
        at, mark = self._mark
        if anyio.current_time() - at < FRESH_SECONDS:
            await anyio.sleep(FRESH_SECONDS)
            at, mark = self._mark
        if anyio.current_time() - at >= FRESH_SECONDS:
            self._mark = anyio.current_time(), mark
            try:
                bases = (await self.desk.get_base()).each()
                marks = [await each.knowledge_base.store.get_change_mark() for each in bases]
            except errors.RefdeskError:
                return mark
            self._mark = anyio.current_time(), " ".join([*marks, *self.desk.list_work()])
        return self._mark[1]

    def _note_call(self, call: Call) -> None:
        if call.transport != "console":
            self._poke.set()
            self._poke = anyio.Event()
