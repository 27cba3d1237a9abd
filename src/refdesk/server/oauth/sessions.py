"""Keeps people signed in to the console as long as the issuer allows, by renewing their access tokens.

The refresh tokens (RFC 6749, section 6) stay in the memory of this process. A browser is given a random name for its
session instead, and keeps the access token, which is checked with every request as usual. So when this process ends,
people only have to sign in again, and nothing that is kept anywhere else outlives an access token.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from refdesk import errors
from refdesk.server.oauth.code_flow import SignInError

if TYPE_CHECKING:
    from refdesk.protocols import Clock
    from refdesk.server.oauth.code_flow import CodeFlow, SignedIn
    from refdesk.server.oauth.issuer import Grant

logger = logging.getLogger(__name__)

LEAD = timedelta(seconds=30)
"""How long before it expires an access token is renewed, though never in the first three quarters of its life."""

AFTER_FAILURE = timedelta(seconds=10)
"""How long an issuer that did not answer is not asked again for the same session."""

UNUSED = timedelta(hours=12)
"""How long without a request before a session is forgotten."""

MOST_SESSIONS = 10_000
"""Most sessions in this process; beyond that, those unused for longest are forgotten."""

_FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Session:
    """A person's session; it changes only under its lock."""

    now: SignedIn
    renew_at: datetime
    used_at: datetime
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def keep_refresh(self, grant: Grant | None) -> None:
        """Keep the refresh token of a grant whose access token is not checked yet: the one before it may be used up."""
        if grant is not None and grant.refresh is not None:
            self.now = replace(self.now, grant=replace(self.now.grant, refresh=grant.refresh))


@dataclass(slots=True)
class SignInSessions:
    """The sessions of people who signed in through one flow and for whom the issuer gave a refresh token."""

    flow: CodeFlow
    clock: Clock
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the console over TLS only."""
        return urlsplit(self.flow.client.base).scheme == "https"

    def open(self, person: SignedIn) -> str | None:
        """Return the name of a new session; `None` if the issuer gave no refresh token."""
        if person.grant.refresh is None:
            return None
        now, name = self.clock.now(), secrets.token_urlsafe(32)
        self._forget_unused(now)
        self._sessions[name] = _Session(person, _find_renewal(person, now), now)
        return name

    async def find_token(self, name: str) -> str | None:
        """Return the access token of a session, renewed if it is time to; `None` if there is no such session.

        While the issuer does not answer, the previous token is returned. When the issuer ends the session, it ends.
        """
        session = self._sessions.pop(name, None)
        if session is None or self.clock.now() >= session.used_at + UNUSED:
            return None
        self._sessions[name], session.used_at = session, self.clock.now()
        if not self._is_due(session) or (session.lock.locked() and self._opens(session)):
            return session.now.grant.access
        # A browser that goes away must not cancel a renewal: a refresh token may work only once. Time is bounded.
        with anyio.CancelScope(shield=True):
            async with session.lock:
                if self._is_due(session):
                    await self._renew(name, session)
        return session.now.grant.access if name in self._sessions else None

    async def close(self, name: str) -> None:
        """Forget a session, and have the issuer revoke its refresh token."""
        session = self._sessions.pop(name, None)
        if session is None:
            return
        with anyio.CancelScope(shield=True):
            async with session.lock:
                try:
                    await self.flow.give_back(session.now.grant.refresh or "")
                except errors.WorldError as error:
                    logger.warning("refresh token not given back", extra={"reason": error.message})

    async def _renew(self, name: str, session: _Session) -> None:
        try:
            found = await self.flow.renew(session.now.grant.refresh or "")
        except SignInError as error:
            logger.warning("sign-in not renewed", extra={"problem": error.problem, "reason": error.reason})
            if error.problem == "unreachable":
                session.keep_refresh(error.grant)
                session.renew_at = self.clock.now() + AFTER_FAILURE
            else:
                self._sessions.pop(name, None)
            return
        if _get_holder(found) != _get_holder(session.now):
            logger.warning("sign-in not renewed", extra={"problem": "refused", "reason": "It names somebody else now."})
            self._sessions.pop(name, None)
            return
        session.now, session.renew_at = found, _find_renewal(found, self.clock.now())

    def _is_due(self, session: _Session) -> bool:
        return self.clock.now() >= session.renew_at

    def _opens(self, session: _Session) -> bool:
        return self.clock.now().timestamp() < session.now.caller.expires

    def _forget_unused(self, now: datetime) -> None:
        """Forget sessions that nobody used for long and, beyond the limit, the least recently used ones."""
        for name, session in list(self._sessions.items()):
            if len(self._sessions) < MOST_SESSIONS and now < session.used_at + UNUSED:
                break
            del self._sessions[name]


def _find_renewal(person: SignedIn, now: datetime) -> datetime:
    left = person.caller.expires - now.timestamp()
    lead = min(LEAD.total_seconds(), max(0.0, left) / 4)
    try:
        return datetime.fromtimestamp(person.caller.expires - lead, UTC)
    except (OverflowError, ValueError, OSError):
        return _FAR


def _get_holder(person: SignedIn) -> tuple[str, str]:
    return person.caller.principal.org, person.caller.principal.agent
