"""How often each agent and each org may send requests: at a steady rate, and in bursts of a few seconds' worth.

The generic cell rate algorithm (ITU-T I.371): all that is kept of a caller is the instant up to which it has used its
rate. A caller that is slightly too fast is slowed down; one that goes on is refused, and each refusal is delayed just
as long, so that a caller at full speed costs little. In addition, servers that share a scratchpad count the requests of
each minute together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server.limits.sessions import PROTOCOL_VERSION, SESSION_ID
from refdesk.server.protocol_errors import LIMITED
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from refdesk.app import Desk
    from refdesk.core.operations import ErrorFormat
    from refdesk.model import Principal

BURST_SECONDS = 5.0
LONGEST_PAUSE = 0.5
"""Longest delay, in seconds, of a request that comes too early; one that would have to wait longer is refused."""

MINUTE = 60.0
MOST_REMEMBERED = 20_000

REFUSE_NEXT = "refdesk.refuse_next"
"""The key in a request's scope for a function that counts one more request of its caller, and returns why that may not
be served, or `None`. Only requests that are subject to a caller's rate have it."""


@dataclass(slots=True)
class Tally:
    """How much of its rate each caller has used, as far as this process knows."""

    now: Callable[[], float] = anyio.current_time
    _used_until: dict[str, float] = field(default_factory=dict[str, float])

    def take(self, key: str, a_minute: int) -> float:
        """Count a request, and return how many seconds too early it comes; one that is to be refused is not counted."""
        now, every = self.now(), MINUTE / a_minute
        used = max(self._used_until.pop(key, now), now) + every
        early = max(0.0, used - now - max(BURST_SECONDS, every))
        self._used_until[key] = used if early <= LONGEST_PAUSE else used - every
        while len(self._used_until) > MOST_REMEMBERED:
            del self._used_until[next(iter(self._used_until))]
        return early


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Passes on the requests of callers that keep to their rates.

    Attributes:
        find_caller: Returns whose key a request carries; `None` for requests without one, which other limits apply to.
        is_mcp: Returns whether a request carries a protocol message.
        pause: Waits for a number of seconds.
    """

    app: ASGIApp
    desk: Desk
    find_caller: Callable[[Scope], Principal | None]
    is_mcp: Callable[[Scope], bool]
    get_error_format: Callable[[Scope], ErrorFormat] = lambda _: NESTED
    tally: Tally = field(default_factory=Tally)
    pause: Callable[[float], Awaitable[None]] = anyio.sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        caller = self.find_caller(scope) if scope["type"] == "http" else None
        refusal = await self._find_refusal(caller) if caller is not None else None
        if refusal is not None and not self._is_said_by_protocol(scope):
            await reply_error(refusal, self.get_error_format(scope))(scope, receive, send)
            return
        if refusal is not None:
            scope[LIMITED] = refusal
        elif caller is not None:
            scope[REFUSE_NEXT] = partial(self._find_refusal, caller)
        await self.app(scope, receive, send)

    def _is_said_by_protocol(self, scope: Scope) -> bool:
        names = {name for name, _ in scope["headers"]}
        is_open = {SESSION_ID.encode(), PROTOCOL_VERSION.encode()} & names or b"session_id=" in scope["query_string"]
        return bool(is_open) and scope["method"] == "POST" and self.is_mcp(scope)

    async def _find_refusal(self, caller: Principal) -> errors.LimitExceededError | None:
        settings = self.desk.settings
        rates = ((f"rate:{caller.org}:{caller.agent}", settings.agent_rate), (f"rate:{caller.org}", settings.org_rate))
        early = max(self.tally.take(key, rate) for key, rate in rates)
        if early > 0:
            await self.pause(min(early, LONGEST_PAUSE))
        if early > LONGEST_PAUSE:
            return _refuse(early)
        pad = (await self.desk.get_base()).knowledge_base.scratchpad
        if pad is not None:
            for key, rate in rates:
                if (await pad.count(key, MINUTE) or 0) > rate:
                    await self.pause(LONGEST_PAUSE)
                    return _refuse(MINUTE)
        return None


def _refuse(seconds: float) -> errors.LimitExceededError:
    return errors.LimitExceededError(
        f"You ask more often than one caller may; try again in {seconds:.0f} seconds, and ask less often.",
        retry_after_seconds=seconds,
        details={"retryAfterSeconds": max(1, round(seconds))},
    )
