"""The session with Salesforce: obtained on first use, shared by all callers, replaced when it has expired.

Two OAuth grants work without a person: client credentials, and a signed assertion (JWT bearer, RFC 7523). Both run as
one configured user and give no refresh token; a new session is simply requested again.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
import jwt

from refdesk.toolsets.salesforce_knowledge.configuration import check_session_url
from refdesk.toolsets.salesforce_knowledge.failures import AuthError, RefusedError, SalesforceError, UnreachableError
from refdesk.toolsets.salesforce_knowledge.transport import Request

if TYPE_CHECKING:
    from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
    from refdesk.toolsets.salesforce_knowledge.transport import Reply

logger = logging.getLogger(__name__)

TOKEN_PATH = "/services/oauth2/token"
JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_SECONDS = 180
"""How long an assertion is valid; Salesforce accepts a few minutes at most."""

REFUSAL_SECONDS = 30.0
"""How long refused credentials are not tried again: Salesforce locks out users who try too often."""

_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")
_ADVICE = {
    "invalid_client_id": "it does not know the client id",
    "invalid_client": "it does not accept the client id and secret",
    "invalid_app_access": "the user may not use the app",
    "invalid_assertion": "it does not accept the signature",
    "app_not_found": "it has no such app",
    "inactive_user": "the user is not active",
    "inactive_org": "the org is locked or closed",
    "invalid_grant": "the flow is not enabled, the user not approved, or the key not the right one",
    "unsupported_grant_type": "the app does not allow this way of signing in",
    "unauthorized_client": "the app does not allow this way of signing in",
}
_MAY_BE_TIME = frozenset({"invalid_grant", "invalid_assertion"})

Send = Callable[[str, Request], Awaitable["Reply"]]


@dataclass(frozen=True, slots=True)
class Session:
    """A token and the address of the org that it is for."""

    token: str = field(repr=False)
    origin: str


class Sessions:
    """Provides the current session.

    Args:
        settings: The settings, with the credentials.
        send: Sends a request to an origin, without a token, with retries as needed.
        now: A monotonic clock in seconds.
        wall_clock: Seconds since 1970, for assertions.
    """

    def __init__(
        self,
        settings: SalesforceSettings,
        send: Send,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._send = send
        self._now = now
        self._wall_clock = wall_clock
        self._session: Session | None = None
        self._refusal: tuple[float, AuthError] | None = None
        self._lock = anyio.Lock()
        if settings.access_token:
            self._session = Session(settings.access_token, settings.origin)

    @property
    def can_renew(self) -> bool:
        """Whether an expired session can be renewed."""
        return not self._settings.access_token

    def drop(self, session: Session) -> None:
        """Make the next call get a new session, unless it has been replaced already."""
        if self.can_renew and self._session is session:
            self._session = None

    async def get(self) -> Session:
        """Return the session. However many callers ask at once, one request is made, and all get its outcome.

        Raises:
            AuthError: Salesforce refuses the credentials, now or a moment ago.
            RefusedError: It refuses for another reason, such as a limit.
            UnreachableError: It does not answer.
        """
        if self._session is not None:
            return self._session
        async with self._lock:
            if self._session is None:
                self._session = await self._sign_in()
            return self._session

    async def _sign_in(self) -> Session:
        if self._refusal is not None and self._now() < self._refusal[0]:
            earlier = self._refusal[1]
            raise AuthError(earlier.message, details=earlier.details)
        try:
            session = await self._request()
        except AuthError as error:
            self._refusal = self._now() + REFUSAL_SECONDS, error
            raise
        self._refusal = None
        logger.info("signed in to salesforce")
        return session

    async def _request(self) -> Session:
        request = Request("POST", TOKEN_PATH, form=await self._build_form())
        try:
            reply = await self._send(self._settings.origin, request)
        except RefusedError as refusal:
            if refusal.is_limit:
                raise
            raise _explain(refusal, is_signed=self._settings.has_key) from None
        return self._read(reply.data)

    async def _build_form(self) -> dict[str, str]:
        settings = self._settings
        if settings.has_key:
            return {"grant_type": JWT_GRANT, "assertion": await self._sign()}
        return {
            "grant_type": "client_credentials",
            "client_id": settings.client_id or "",
            "client_secret": settings.client_secret or "",
        }

    async def _sign(self) -> str:
        """Return an assertion for the org's own address, which is the audience that External Client Apps accept."""
        settings = self._settings
        claims = {
            "iss": settings.client_id,
            "sub": settings.username,
            "aud": settings.origin,
            "exp": int(self._wall_clock()) + ASSERTION_SECONDS,
        }
        try:
            key = await anyio.Path(cast("str", settings.private_key_file)).read_bytes()
            return await anyio.to_thread.run_sync(lambda: jwt.encode(claims, key, algorithm="RS256"))
        except (OSError, ValueError, TypeError, jwt.PyJWTError):
            raise AuthError(
                "refdesk's private key for Salesforce cannot be read: whoever runs refdesk must set "
                "REFDESK_SALESFORCE_PRIVATE_KEY_FILE to an RSA key in PEM."
            ) from None

    def _read(self, data: object) -> Session:
        answer = cast("dict[str, object]", data) if isinstance(data, dict) else {}
        token, address = answer.get("access_token"), answer.get("instance_url", self._settings.origin)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise UnreachableError("it signed refdesk in without giving a token", is_answered=True)
        origin = check_session_url(address, self._settings)
        if origin is None:
            raise SalesforceError(
                "Salesforce named an address for the session that is not one of its own, so it is not used. Check "
                "REFDESK_SALESFORCE_INSTANCE_URL."
            )
        return Session(token, origin)


def _explain(refusal: RefusedError, *, is_signed: bool) -> AuthError:
    code = next((code for code in refusal.codes if code in _ADVICE), None)
    reason = _ADVICE.get(code or "", "it refused to sign refdesk in")
    if is_signed and code in _MAY_BE_TIME:
        reason += ", or the clock of this machine is wrong, since an assertion is valid for minutes only"
    details: dict[str, object] = {"status": refusal.status}
    if refusal.codes:
        details["salesforceErrorCodes"] = list(refusal.codes)
    return AuthError(
        f"Salesforce does not sign refdesk in: {reason}. Whoever runs refdesk must mend that; see `refdesk doctor`.",
        details=details,
    )
