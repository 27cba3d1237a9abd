"""Asks Salesforce with patience: a session, at most three tries, waits between them, and rest when it is down.

All of refdesk's requests only read, searching included, so each may be repeated safely.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from refdesk.toolsets.salesforce_knowledge.breaker import Breaker
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.tokens import Sessions
from refdesk.toolsets.salesforce_knowledge.transport import SHORT_WAIT, Reply, Request, Transport

if TYPE_CHECKING:
    from types import TracebackType

    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.transport import Usage

logger = logging.getLogger(__name__)

MAX_TRIES = 3
FIRST_WAIT = 0.25


@dataclass(slots=True)
class Tries:
    """How often something may still be asked. Several ways of asking the same share one."""

    left: int = MAX_TRIES

    def take(self) -> None:
        """Count one."""
        self.left -= 1


class SalesforceClient:
    """One org, as one user.

    Args:
        settings: Which org, and as whom.
        breaker: Shared by everything that asks this org.
        sleep: Waits that many seconds.
        chance: Where the jitter of waits comes from.
        now: A monotonic clock in seconds.
    """

    def __init__(
        self,
        settings: SalesforceSettings,
        *,
        breaker: Breaker | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: random.Random | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.breaker = breaker or Breaker(now)
        self._sleep = sleep
        self._chance = chance or random.Random()
        self._transport = Transport(settings.origin, settings.request_seconds)
        self.sessions = Sessions(settings, self._ask_openly, now)

    async def __aenter__(self) -> SalesforceClient:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, traceback)

    @property
    def usage(self) -> Usage | None:
        """What Salesforce last said about the allowance."""
        return self._transport.usage

    async def ask(self, request: Request, tries: Tries | None = None, keep: int = 0) -> Reply:
        """Return the answer to a request under `/services/data/vXX.0/`, signed in; an expired session is renewed once.

        Args:
            request: Its path is relative to the API version.
            tries: Shared with other ways of asking the same.
            keep: How many tries are left for those.

        Raises:
            AuthError: There is no session to be had.
            RefusedError: Salesforce refuses.
            UnreachableError: It cannot be reached, or not any more in this call.
        """
        tries = tries or Tries()
        renewed = False
        while True:
            session = await self.sessions.get()
            try:
                return await self._try(session.origin, self._place(request), tries, session.token)
            except RefusedError as refusal:
                if self._can_mend(refusal, tries) and not renewed:
                    self.sessions.drop(session)
                    renewed = True
                    continue
                await self._wait_or_raise(refusal, tries, keep)
            except UnreachableError as failure:
                await self._wait_or_raise(failure, tries, keep)

    async def ask_versions(self) -> Reply:
        """Return the API versions of the instance; needs no session and costs nothing."""
        return await self._ask_openly(self.settings.origin, Request("GET", "/services/data/"))

    async def _ask_openly(self, origin: str, request: Request) -> Reply:
        tries = Tries()
        while True:
            try:
                return await self._try(origin, request, tries, None)
            except (RefusedError, UnreachableError) as failure:
                await self._wait_or_raise(failure, tries, 0)

    def _can_mend(self, refusal: RefusedError, tries: Tries) -> bool:
        return refusal.status == 401 and not refusal.is_final and self.sessions.can_renew and tries.left > 0

    def _place(self, request: Request) -> Request:
        path = f"/services/data/{self.settings.api_version}/{request.path}"
        return Request(request.method, path, request.query, request.body, request.form, request.headers)

    async def _try(self, origin: str, request: Request, tries: Tries, token: str | None) -> Reply:
        self.breaker.check()
        tries.take()
        try:
            reply = await self._transport.send(origin, request, token)
        except UnreachableError:
            self.breaker.note_failure()
            raise
        except RefusedError as refusal:
            if refusal.is_limit and not refusal.is_passing:
                refusal.retry_after = self.breaker.note_limit(refusal.retry_after)
            else:
                self.breaker.note_answer()
            raise
        self.breaker.note_answer()
        return reply

    async def _wait_or_raise(self, failure: RefusedError | UnreachableError, tries: Tries, keep: int) -> None:
        """Return after the due pause when it is worth trying again, else raise the failure."""
        may_pass = isinstance(failure, UnreachableError) or failure.is_passing
        wait = self._get_wait(MAX_TRIES - tries.left, failure.retry_after)
        is_late = anyio.current_time() + wait >= anyio.current_effective_deadline()
        if not may_pass or tries.left <= keep or wait > SHORT_WAIT or is_late:
            raise failure
        logger.info("salesforce asked again", extra={"reason": str(failure), "seconds": round(wait, 3)})
        await self._sleep(wait)

    def _get_wait(self, tried: int, asked: float | None) -> float:
        """Return how long to wait: what Salesforce asks for, else exponential backoff with full jitter."""
        return asked if asked is not None else self._chance.uniform(0.0, FIRST_WAIT * 2 ** max(0, tried - 1))
