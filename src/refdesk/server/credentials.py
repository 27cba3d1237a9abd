"""HTTP authentication, on every request: an API key or an access token, never a session.

Every address needs one, except the few pages that show nothing private. A key or token that is missing, unknown,
expired, revoked or made for somebody else gets the same answer, and counts as the same failure. Only whoever is known,
but in no org here, gets another: a client that is answered 401 signs in again, which would change nothing.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers

from refdesk import errors
from refdesk.core.keys import PREFIX
from refdesk.core.writing.audit import Actor
from refdesk.model import SHARED_ORG
from refdesk.server.limits.attempts import WINDOW, Attempts
from refdesk.server.limits.connections import claim
from refdesk.server.limits.proxies import TrustedProxies
from refdesk.server.limits.sessions import CREDENTIAL, Credential
from refdesk.server.orgs import ORG_HEADER, OrglessError, require_org
from refdesk.server.replies import CHALLENGE, reply_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from refdesk.app import Desk
    from refdesk.core.keys import ApiKey, KeyRing
    from refdesk.core.operations import ErrorFormat
    from refdesk.model import Principal
    from refdesk.server.limits.connections import Holder
    from refdesk.server.oauth.callers import TokenCaller
    from refdesk.server.oauth.tokens import TokenCheck
    from refdesk.server.revocation import Revocation

logger = logging.getLogger(__name__)

SESSION_HEADER = "x-salesforce-token"
"""Carries the help-desk session with which a request is to be answered."""

OPEN_PATHS = frozenset(
    {
        *("/", "/docs", "/health", "/openapi.json", "/ready"),
        "/console/sign-in",
    }
)
ALWAYS_OPEN = "/.well-known/"
"""Clients look there to find out where to sign in, even with a token that is no longer valid, and must get an answer,
or learn that there is no such place."""

IDENTIFY_SECONDS = 2.0
"""How long an address that needs no credential waits to identify the owner of one that is sent, so that it answers even
while a store does not."""

OPEN_FOLDERS = ("/assets/", "/console/sign-in/", ALWAYS_OPEN)

MOST_FAILURES = 600
"""Most failures of one source in a `WINDOW`. A key cannot be guessed; this keeps a broken client from filling the
log."""

_REFUSED = (
    "Send a valid API key in the header `Authorization: Bearer refdesk_…`: there was none, or it is unknown, expired "
    "or revoked. Whoever runs this server makes keys with `refdesk keys create`."
)
_REFUSED_WITH_SIGN_IN = (
    "Sign in where `resource_metadata` in the header `WWW-Authenticate` says, or send a valid API key, in the header "
    "`Authorization: Bearer …`: there was neither, or it is unknown, expired, revoked or not for this server."
)
_STATE = "refdesk.principal"
_KEYLESS = "refdesk.keyless"


class _RefusedTooOftenError(errors.LimitExceededError):
    """Too many keys and tokens from one address were refused."""


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Passes on authenticated requests, with the caller attached.

    Attributes:
        anonymous: Who callers without a key act as; `None` refuses them. A key that is sent is always checked.
        get_error_format: Returns the form of errors at an address.
        proxies: The proxies that are believed about where requests come from.
        failures: How often each source was refused lately.
        reasons: The same for each reason, so that the log has every reason of a source, though not every refusal.
        name_address: Returns the address of a request as the log may name it: without the parts that a caller filled
            in.
        revocation: Ends connections that outlast their credential; `None` if none can.
        tokens: Checks access tokens; `None` if no issuer is configured, so that only keys are accepted.
    """

    app: ASGIApp
    desk: Desk
    anonymous: Principal | None
    get_error_format: Callable[[Scope], ErrorFormat]
    tokens: TokenCheck | None = None
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    failures: Attempts = field(default_factory=Attempts)
    reasons: Attempts = field(default_factory=Attempts)
    name_address: Callable[[Scope], str] = lambda _: ""
    revocation: Revocation | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            try:
                await self._identify(scope)
            except errors.RefdeskError as error:
                reply = reply_error(error, self.get_error_format(scope))
                if isinstance(error, _RefusedTooOftenError):
                    reply.headers["www-authenticate"] = CHALLENGE
                await reply(scope, receive, send)
                return
            if self.revocation is not None:
                await self.revocation.serve(self.app, scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _identify(self, scope: Scope) -> None:
        sent = Headers(scope=scope).getlist("authorization")
        if scope["path"].startswith(ALWAYS_OPEN) or (
            not sent and (self.anonymous is not None or is_open(scope["path"]))
        ):
            scope[_STATE] = None
            if self.anonymous is not None:
                claim(scope, self.anonymous)
                scope[_STATE], scope[_KEYLESS] = replace(self.anonymous, help_desk_session=_read_session(scope)), True
            return
        caller: _Caller | None = None
        address = self.proxies.find_client(scope)
        with anyio.move_on_after(IDENTIFY_SECONDS if is_open(scope["path"]) else None):
            caller = await self._find_caller(_read_secret(sent), scope)
        if caller is None:
            scope[_STATE] = None
            return
        claim(scope, caller.principal)
        scope[CREDENTIAL] = Credential(
            caller.name, partial(self._opens, _read_secret(sent), scope), caller.issuer is None
        )
        scope[_STATE] = replace(caller.principal, address=address, help_desk_session=_read_session(scope))
        # The SDK binds each session to this user, so that nobody else can use it.
        scope["user"] = AuthenticatedUser(caller.to_access_token())

    async def _find_caller(self, secret: str, scope: Scope) -> _Caller:
        base = await self.desk.get_base()
        try:
            return await self._check(secret, base.keys, Headers(scope=scope).get(ORG_HEADER))
        except (errors.UnauthenticatedError, OrglessError) as error:
            if not secret:
                # Without a credential a client only asks how to sign in, as clients do first; that is no failed
                # attempt.
                raise errors.UnauthenticatedError(self._explain()) from None
            refusal = error if isinstance(error, OrglessError) else errors.UnauthenticatedError(self._explain())
            reason = error.reason if isinstance(error, OrglessError) else error.message
            source = self.proxies.find_client(scope)
            nobody = Actor(SHARED_ORG, "", "http", source)
            knowledge_base = base.knowledge_base
            await self.desk.refusals.note(
                knowledge_base.store, knowledge_base.clock, nobody, "authenticate", error.code
            )
            now = base.keys.clock.now()
            failures, alike = self.failures.count(source, now), self.reasons.count(f"{source} {reason}", now)
        if (pad := base.knowledge_base.scratchpad) is not None:
            # Behind a load balancer, one source reaches many processes.
            failures = max(failures, await pad.count(f"refused:{source}", WINDOW.total_seconds()) or 0)
        if alike == 1 or failures == MOST_FAILURES:
            facts = {"source": source, "path": self.name_address(scope), "failures": failures, "reason": reason}
            logger.warning("key refused", extra=facts)
        if failures > MOST_FAILURES:
            raise _RefusedTooOftenError(
                "Too many requests from there came with a key or access token that is not valid; wait a minute.",
                retry_after_seconds=WINDOW.total_seconds(),
            )
        raise refusal

    async def _opens(self, secret: str, scope: Scope) -> bool:
        """Return whether a key or token is still accepted; true while the store or the issuer does not answer."""
        try:
            await self._check(secret, (await self.desk.get_base()).keys, Headers(scope=scope).get(ORG_HEADER))
        except errors.CallerError:
            return False
        except errors.RefdeskError:
            return True
        return True

    def _explain(self) -> str:
        return _REFUSED if self.tokens is None else _REFUSED_WITH_SIGN_IN

    async def _check(self, secret: str, keys: KeyRing, org: str | None) -> _Caller:
        if self.tokens is None or secret.startswith(PREFIX):
            key = await keys.find(secret)
            if org is not None:
                require_org(org, [key.org])
            return _of_key(key)
        try:
            return _of_token(await self.tokens.identify(secret, org))
        except errors.UnauthenticatedError:
            # Do the same work as for an unknown key. It finds nothing: every key begins with `PREFIX`.
            with suppress(errors.UnauthenticatedError):
                await keys.find(secret)
            raise


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls, and what a protocol session is bound to.

    Attributes:
        client: The id of the key, or the application that holds the token.
        issuer: Who issued the token; `None` for a key.
        subject: On whose behalf the token is used; `None` for a key.
    """

    principal: Principal
    client: str
    issuer: str | None = None
    subject: str | None = None

    @property
    def name(self) -> str:
        """A name that is the same for all credentials that may continue what one of them opened."""
        return " ".join((self.client, self.issuer or "", self.subject or ""))

    def to_access_token(self) -> AccessToken:
        """Return the caller in the SDK's form, without the secret itself."""
        claims = {"iss": self.issuer} if self.issuer is not None else None
        scopes = sorted(self.principal.scopes)
        return AccessToken(token="", client_id=self.client, scopes=scopes, subject=self.subject, claims=claims)


def _of_key(key: ApiKey) -> _Caller:
    return _Caller(key.principal, key.id)


def _of_token(caller: TokenCaller) -> _Caller:
    # An org's name contains no blank, so no two callers have the same subject.
    subject = f"{caller.principal.org} {caller.principal.agent}"
    return _Caller(caller.principal, caller.client, caller.issuer, subject)


def is_open(path: str) -> bool:
    """Return whether an address may be read without a key, because it shows nothing private."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def find_caller(request: Request) -> Principal | None:
    """Return who sent a request, or `None` if it was sent without a credential, which only open addresses allow."""
    return find_caller_of(request.scope)


def find_caller_of(scope: Scope) -> Principal | None:
    """Return who sent the request of a scope; `None` as in `find_caller`."""
    return scope.get(_STATE)


def is_keyless(scope: Scope) -> bool:
    """Return whether a request is answered without a key or token, as the settings may allow."""
    return _KEYLESS in scope


def is_identified(scope: Scope) -> bool:
    """Return whether it is settled who sent a request, be it nobody."""
    return _STATE in scope


def get_holder(scope: Scope) -> Holder:
    """Return the org and agent whose limits the sessions and connections of a request count towards."""
    caller: Principal = scope[_STATE]
    return caller.org, caller.agent


def get_caller(request: Request) -> Principal:
    """Return who sent a request.

    Raises:
        UnauthenticatedError: It was sent without a credential.
    """
    caller = find_caller(request)
    if caller is None:
        raise errors.UnauthenticatedError(_REFUSED)
    return caller


def _read_session(scope: Scope) -> str:
    return Headers(scope=scope).get(SESSION_HEADER, "")


def _read_secret(sent: list[str]) -> str:
    """Return the key in the only bearer header, or an empty text, which is never a key."""
    scheme, _, secret = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    return secret.strip(" ") if scheme.lower() == "bearer" else ""
