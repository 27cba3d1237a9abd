"""Who calls over HTTP, said anew by every request: an API key, never a session.

Everything needs a key except the few pages that show nothing private. A key that is missing, unknown, expired or
revoked costs the same work and gets the same answer.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers

from refdesk import errors
from refdesk.server.replies import reply_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from refdesk.app import Desk
    from refdesk.core.keys import ApiKey
    from refdesk.core.operations import ErrorFormat
    from refdesk.model import Principal

logger = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/", "/docs", "/health", "/openapi.json"})
OPEN_FOLDERS = ("/assets/", "/.well-known/")
"""Nothing is under the second: clients look there for a sign-in page, and must learn that there is none."""

WINDOW = timedelta(minutes=1)
MOST_FAILURES = 600
"""Of one source in a `WINDOW`. A key cannot be guessed; this keeps a broken client from filling the log."""

MOST_SOURCES = 10_000

_REFUSED = (
    "Send a valid API key in the header `Authorization: Bearer refdesk_…`: there was none, or it is unknown, expired "
    "or revoked. Whoever runs this server makes keys with `refdesk keys create`."
)
_STATE = "refdesk.principal"


@dataclass(slots=True)
class FailureLimit:
    """Counts the keys that this process refused, by where they came from."""

    _counts: dict[str, tuple[datetime, int]] = field(default_factory=dict[str, tuple[datetime, int]])

    def count(self, source: str, now: datetime) -> int:
        """Count one more failure and return how many there were in this window."""
        since, count = self._counts.pop(source, (now, 0))
        since, count = (since, count + 1) if now - since < WINDOW else (now, 1)
        while len(self._counts) >= MOST_SOURCES:
            del self._counts[next(iter(self._counts))]
        self._counts[source] = since, count
        return count


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Passes on requests whose caller is known, and tells the application who it is.

    Attributes:
        anonymous: Who callers without a key are; `None` refuses them. A key that is sent always counts.
        get_error_format: Returns the form of errors at an address.
    """

    app: ASGIApp
    desk: Desk
    anonymous: Principal | None
    get_error_format: Callable[[Scope], ErrorFormat]
    failures: FailureLimit = field(default_factory=FailureLimit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            try:
                await self._identify(scope)
            except errors.RefdeskError as error:
                await reply_error(error, self.get_error_format(scope))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _identify(self, scope: Scope) -> None:
        sent = Headers(scope=scope).getlist("authorization")
        if not sent and (self.anonymous is not None or is_open(scope["path"])):
            scope[_STATE] = self.anonymous
            return
        key = await self._find_key(_read_secret(sent), scope)
        scope[_STATE] = key.principal
        # The SDK ties each session to this user, so that nobody else can use it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=key.id, scopes=list(key.scopes)))

    async def _find_key(self, secret: str, scope: Scope) -> ApiKey:
        base = await self.desk.get_base()
        try:
            return await base.keys.find(secret)
        except errors.UnauthenticatedError:
            source = str((scope.get("client") or ("",))[0])
            failures = self.failures.count(source, base.keys.clock.now())
        if (pad := base.knowledge_base.scratchpad) is not None:
            # Behind a balancer, one source meets many processes.
            failures = max(failures, await pad.count(f"refused:{source}", WINDOW.total_seconds()) or 0)
        if failures == 1 or failures == MOST_FAILURES:
            logger.warning("key refused", extra={"source": source, "path": scope["path"], "failures": failures})
        if failures > MOST_FAILURES:
            raise errors.LimitExceededError(
                "Too many requests from there came without a valid API key; wait a minute.",
                retry_after_seconds=WINDOW.total_seconds(),
            )
        raise errors.UnauthenticatedError(_REFUSED)


def is_open(path: str) -> bool:
    """Return whether an address may be read without a key, because it shows nothing private."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def find_caller(request: Request) -> Principal | None:
    """Return who sent a request, or `None` when nobody said so, which only open addresses allow."""
    return request.scope.get(_STATE)


def get_caller(request: Request) -> Principal:
    """Return who sent a request.

    Raises:
        UnauthenticatedError: Nobody said so.
    """
    caller = find_caller(request)
    if caller is None:
        raise errors.UnauthenticatedError(_REFUSED)
    return caller


def _read_secret(sent: list[str]) -> str:
    """Return the key of the one bearer header, or an empty text, which is no key."""
    scheme, _, secret = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    return secret.strip(" ") if scheme.lower() == "bearer" else ""
