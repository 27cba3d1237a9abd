"""The Salesforce client: sessions, at most three attempts with backoff, and a circuit breaker.

All of refdesk's requests, including searches, only read, so each may be repeated safely.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from refdesk.core.retrying import Budget, RetryPolicy
from refdesk.toolsets.salesforce_knowledge.breaker import Breaker
from refdesk.toolsets.salesforce_knowledge.configuration import NEWEST_VERSION
from refdesk.toolsets.salesforce_knowledge.failures import RefusedError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.rows import get_field, get_items
from refdesk.toolsets.salesforce_knowledge.tokens import Sessions
from refdesk.toolsets.salesforce_knowledge.transport import SHORT_WAIT, Reply, Request, Transport

if TYPE_CHECKING:
    from types import TracebackType

    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.transport import Usage

MAX_TRIES = 3
FIRST_WAIT = 0.25


class SalesforceClient:
    """One org, as one user.

    Args:
        settings: Which org, and as whom.
        breaker: The circuit breaker shared by everything that calls this org.
        sleep: Waits that many seconds.
        chance: The source of jitter for waits.
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
        self._policy = RetryPolicy(MAX_TRIES, FIRST_WAIT, SHORT_WAIT, sleep=sleep, chance=chance or random.Random())
        self._transport = Transport(settings.origin, settings.request_seconds)
        self._version = settings.api_version
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
        """The API usage that Salesforce last reported."""
        return self._transport.usage

    async def ask(self, request: Request, tries: Budget | None = None, keep: int = 0) -> Reply:
        """Return the answer to a request under `/services/data/vXX.0/`, signed in; an expired session is renewed once.

        Args:
            request: The request; its path is relative to the API version.
            tries: The budget of tries, shared with other ways of asking the same.
            keep: How many tries to leave for those.

        Raises:
            AuthError: No session can be obtained.
            RefusedError: Salesforce refuses.
            UnreachableError: It cannot be reached, at least within this call.
        """
        tries = tries or Budget(MAX_TRIES)
        version = await self.get_version()
        session = await self.sessions.get()

        async def attempt() -> Reply:
            return await self._try(session.origin, _place(request, version), session.token)

        try:
            return await self._policy.call(attempt, retries_on=_may_pass, budget=tries, reserve=keep)
        except RefusedError as refusal:
            if not self._can_mend(refusal, tries):
                raise
        self.sessions.drop(session)
        session = await self.sessions.get()
        return await self._policy.call(attempt, retries_on=_may_pass, budget=tries, reserve=keep)

    async def get_version(self) -> str:
        """Return the API version to use, such as `v68.0`: the configured one, else the newest that the org offers.

        If the org does not say which it offers, this is the newest known, and the org is asked again next time.

        Raises:
            UnreachableError: It cannot be reached.
        """
        if self._version is None:
            try:
                offered = await self.list_versions()
            except (RefusedError, UnreachableError) as failure:
                if isinstance(failure, UnreachableError) and not failure.is_answered:
                    raise
                return f"v{NEWEST_VERSION}.0"
            known = [number for number in offered if number <= NEWEST_VERSION]
            self._version = f"v{max(known, default=NEWEST_VERSION)}.0"
        return self._version

    async def list_versions(self) -> list[int]:
        """Return the numbers of the API versions that the org offers; needs no session and costs nothing.

        Raises:
            RefusedError: Salesforce refuses.
            UnreachableError: It cannot be reached.
        """
        reply = await self._ask_openly(self.settings.origin, Request("GET", "/services/data/"))
        found = [get_field(each, "version") for each in get_items(reply.data)]
        return [int(text[:-2]) for text in found if isinstance(text, str) and re.fullmatch(r"\d{1,3}\.0", text)]

    async def _ask_openly(self, origin: str, request: Request) -> Reply:
        return await self._policy.call(lambda: self._try(origin, request, None), retries_on=_may_pass)

    def _can_mend(self, refusal: RefusedError, tries: Budget) -> bool:
        return refusal.status == 401 and not refusal.is_final and self.sessions.can_renew and tries.left > 0

    async def _try(self, origin: str, request: Request, token: str | None) -> Reply:
        self.breaker.check()
        try:
            reply = await self._transport.send(origin, request, token)
        except UnreachableError:
            self.breaker.note_failure()
            raise
        except RefusedError as refusal:
            if refusal.is_limit and not refusal.is_passing:
                refusal.retry_after = self.breaker.note_limit(refusal)
            else:
                self.breaker.note_answer()
            raise
        self.breaker.note_answer()
        return reply


def _place(request: Request, version: str) -> Request:
    path = f"/services/data/{version}/{request.path}"
    return Request(request.method, path, request.query, request.body, request.form, request.headers)


def _may_pass(failure: Exception) -> bool:
    return isinstance(failure, UnreachableError) or (isinstance(failure, RefusedError) and failure.is_passing)
