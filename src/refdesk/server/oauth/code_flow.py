"""Gets an access token for a person with a browser: the authorization code flow with PKCE (OAuth 2.1, RFC 9700).

The server keeps nothing between the two halves of the flow: the browser carries what the second half needs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote_plus, urlencode

import anyio

from refdesk import errors
from refdesk.server.orgs import OrglessError

if TYPE_CHECKING:
    from refdesk.server.oauth.callers import TokenCaller
    from refdesk.server.oauth.configuration import ConsoleClient
    from refdesk.server.oauth.endpoints import EndpointSet
    from refdesk.server.oauth.issuer import Grant
    from refdesk.server.oauth.protected_resource import ProtectedResource
    from refdesk.server.oauth.tokens import TokenCheck

Problem: TypeAlias = Literal[
    "denied", "failed", "large", "lost", "often", "orgless", "orgs", "other", "refused", "unreachable"
]
Exchange: TypeAlias = "Callable[[str, Mapping[str, str], str | None], Awaitable[Grant]]"
Revoke: TypeAlias = Callable[[str, Mapping[str, str], str | None], Awaitable[None]]

RETURN = "/console/sign-in/return"
"""Path to which the issuer sends browsers back."""

MOST_TOKEN = 4000
"""Most characters of a token. Browsers are sure to keep cookies of up to 4096 bytes, including names and attributes."""

MOST_CODE = 4096
"""Most characters of the code that a browser brings back."""

MOST_AT_ONCE = 8
"""Codes and refresh tokens that are exchanged at once; others wait."""

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class SignInError(Exception):
    """Nobody is signed in.

    Attributes:
        problem: The kind of failure that the person may be told.
        reason: The reason for the log; it holds nothing that was sent.
        grant: What the issuer gave nevertheless, where only its access token could not be checked yet.
    """

    def __init__(self, problem: Problem, reason: str, grant: Grant | None = None) -> None:
        super().__init__(reason)
        self.problem: Problem = problem
        self.reason = reason
        self.grant = grant


@dataclass(frozen=True, slots=True)
class Begun:
    """What a browser keeps while its person is with the issuer.

    Attributes:
        state: The value that must come back with the browser (RFC 6749, section 10.12).
        verifier: What proves that whoever brings a code asked for it (RFC 7636).
        then: The local address where the person wants to go.
    """

    state: str
    verifier: str
    then: str

    def to_text(self) -> str:
        """Return this as text that `read_begun` reads, in characters that a cookie may hold."""
        return f"{self.state}.{self.verifier}.{_encode(self.then.encode())}"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person who is signed in.

    Attributes:
        grant: What the issuer gave; its access token currently opens this server.
        caller: The caller whom that token names.
    """

    grant: Grant
    caller: TokenCaller


@dataclass(frozen=True, slots=True)
class CodeFlow:
    """The authorization code flow of one client.

    Attributes:
        exchange: Returns what the issuer gives for a code or a refresh token; raises as `Issuer.exchange` does.
        revoke: Revokes a token; raises as `Issuer.revoke` does.
    """

    client: ConsoleClient
    resource: ProtectedResource
    tokens: TokenCheck
    endpoints: EndpointSet
    exchange: Exchange
    revoke: Revoke
    _turns: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MOST_AT_ONCE))

    @property
    def issuer(self) -> str:
        """The issuer with which people sign in."""
        return self.resource.oauth.issuer

    async def begin(self, then: str) -> tuple[str, Begun]:
        """Return the address to send a browser to, and what the browser is to keep.

        Raises:
            SignInError: The issuer does not publish that address.
        """
        try:
            endpoints = await self.endpoints.find()
        except errors.WorldError as error:
            raise SignInError("unreachable", error.message) from None
        begun = Begun(secrets.token_urlsafe(32), secrets.token_urlsafe(32), then)
        asked = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": self.client.base + RETURN,
            "scope": " ".join(dict.fromkeys([*self.resource.to_asked(self.resource.scopes), *self.client.more_scopes])),
            "state": begun.state,
            "code_challenge": _encode(hashlib.sha256(begun.verifier.encode()).digest()),
            "code_challenge_method": "S256",
            "resource": self.resource.oauth.resource,
        }
        join = "&" if "?" in endpoints.authorization else "?"
        return f"{endpoints.authorization}{join}{urlencode(asked)}", begun

    async def finish(self, begun: Begun, query: Mapping[str, str]) -> SignedIn:
        """Return the person who comes back from the issuer after `begin`.

        Raises:
            SignInError: There is no token, or it opens nothing.
        """
        return await self._check(lambda: self._redeem(query, begun))

    async def renew(self, refresh: str) -> SignedIn:
        """Return who is signed in by a refresh token, with the next one: the same if the issuer gives no other.

        Raises:
            SignInError: There is no token, or it opens nothing.
        """
        form = {"grant_type": "refresh_token", "refresh_token": refresh, "resource": self.resource.oauth.resource}
        found = await self._check(lambda: self._exchange(form))
        return found if found.grant.refresh else replace(found, grant=replace(found.grant, refresh=refresh))

    async def give_back(self, refresh: str) -> None:
        """Have the issuer revoke a refresh token, if it supports that.

        Raises:
            WorldError: The issuer does not answer.
        """
        endpoints = await self.endpoints.find()
        if endpoints.revocation is not None:
            form = {"token": refresh, "token_type_hint": "refresh_token"}
            await self.revoke(endpoints.revocation, *self._sign(form))

    async def _check(self, get: Callable[[], Awaitable[Grant]]) -> SignedIn:
        grant: Grant | None = None
        try:
            grant = await get()
            if len(grant.access) > MOST_TOKEN:
                raise SignInError("large", f"The access token has {len(grant.access)} characters.")
            return SignedIn(grant, await self.tokens.identify(grant.access, is_issued_now=True))
        except errors.UnauthenticatedError as error:
            raise SignInError("refused", error.message) from None
        except OrglessError as error:
            raise SignInError("orgless", error.reason) from None
        except errors.PermissionDeniedError:
            raise SignInError("orgs", "The access token names several orgs.") from None
        except errors.WorldError as error:
            raise SignInError("unreachable", error.message, grant) from None

    async def _read_code(self, query: Mapping[str, str]) -> str:
        endpoints, named = await self.endpoints.find(), query.get("iss")
        if (named is not None or endpoints.names_itself) and named != self.issuer:
            raise SignInError("other", "The browser was sent back by another issuer, or by one that does not say so.")
        if query.get("error") == "access_denied":
            raise SignInError("denied", "The issuer denied access: access_denied.")
        code = query.get("code", "")
        if "error" in query or not 0 < len(code) <= MOST_CODE:
            raise SignInError("failed", "The issuer sent the browser back with an error, or without a code.")
        return code

    async def _redeem(self, query: Mapping[str, str], begun: Begun) -> Grant:
        form = {
            "grant_type": "authorization_code",
            "code": await self._read_code(query),
            "redirect_uri": self.client.base + RETURN,
            "code_verifier": begun.verifier,
            "resource": self.resource.oauth.resource,
        }
        return await self._exchange(form)

    async def _exchange(self, form: Mapping[str, str]) -> Grant:
        endpoints = await self.endpoints.find()
        async with self._turns:
            return await self.exchange(endpoints.token, *self._sign(form))

    def _sign(self, form: Mapping[str, str]) -> tuple[Mapping[str, str], str | None]:
        """Return a form as the client sends it, and the credential it authenticates with (RFC 6749, section 2.3.1)."""
        if self.client.secret is None:
            return {**form, "client_id": self.client.id}, None
        pair = f"{quote_plus(self.client.id)}:{quote_plus(self.client.secret.get_secret_value())}"
        return form, f"Basic {base64.b64encode(pair.encode()).decode()}"


def read_begun(text: str | None, state: str | None) -> Begun | None:
    """Return what a browser kept, if its state matches the one that came back; compared in constant time."""
    parts = (text or "").split(".")
    if len(parts) != 3 or not all(_SECRET.fullmatch(part) for part in parts[:2]) or state is None:
        return None
    if not hmac.compare_digest(parts[0].encode(), state.encode("utf-8", "surrogatepass")):
        return None
    try:
        then = base64.b64decode(parts[2] + "=" * (-len(parts[2]) % 4), b"-_", validate=True).decode()
    except ValueError:
        return None
    return Begun(parts[0], parts[1], then)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
