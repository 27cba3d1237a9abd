"""Gets the access token of a person with a browser: the authorization code flow with PKCE (OAuth 2.1, RFC 9700).

The server keeps nothing between the two halves of it: what the second has to know goes with the browser.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote_plus, urlencode

import anyio

from refdesk import errors

if TYPE_CHECKING:
    from refdesk.server.oauth.configuration import ConsoleClient
    from refdesk.server.oauth.endpoints import EndpointSet
    from refdesk.server.oauth.protected_resource import ProtectedResource
    from refdesk.server.oauth.tokens import TokenCheck

Problem: TypeAlias = Literal["denied", "failed", "large", "lost", "often", "orgs", "other", "refused", "unreachable"]
Exchange: TypeAlias = Callable[[str, Mapping[str, str], str | None], Awaitable[str]]

RETURN = "/console/sign-in/return"
"""Where the issuer sends browsers back to."""

MOST_TOKEN = 4000
"""Characters. A browser keeps cookies of 4096 bytes for sure, their names and attributes included."""

MOST_CODE = 4096
"""Characters of what a browser brings back."""

MOST_AT_ONCE = 8
"""Codes that are exchanged at once; others wait."""

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class SignInError(Exception):
    """Nobody is signed in.

    Attributes:
        problem: Why, of what can be said to whoever asked.
        reason: The same for the log; it holds nothing that was sent.
    """

    def __init__(self, problem: Problem, reason: str) -> None:
        super().__init__(reason)
        self.problem: Problem = problem
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Begun:
    """What a browser keeps while its person is with the issuer.

    Attributes:
        state: What comes back with it (RFC 6749, section 10.12).
        verifier: What proves that whoever brings a code asked for it (RFC 7636).
        then: Where the person wants to go: a local address.
    """

    state: str
    verifier: str
    then: str

    def to_text(self) -> str:
        """Return it as `read_begun` reads it, in characters that a cookie may have."""
        return f"{self.state}.{self.verifier}.{_encode(self.then.encode())}"


@dataclass(frozen=True, slots=True)
class CodeFlow:
    """The flow of one client.

    Attributes:
        exchange: Returns the token that a code stands for; raises as `Issuer.exchange` does.
    """

    client: ConsoleClient
    resource: ProtectedResource
    tokens: TokenCheck
    endpoints: EndpointSet
    exchange: Exchange
    _turns: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MOST_AT_ONCE))

    @property
    def issuer(self) -> str:
        """Who people sign in with."""
        return self.resource.oauth.issuer

    async def begin(self, then: str) -> tuple[str, Begun]:
        """Return where a browser is to be sent, and what it is to keep.

        Raises:
            SignInError: The issuer does not say where.
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
            "scope": " ".join(self.resource.to_asked(self.resource.scopes)),
            "state": begun.state,
            "code_challenge": _encode(hashlib.sha256(begun.verifier.encode()).digest()),
            "code_challenge_method": "S256",
            "resource": self.resource.oauth.resource,
        }
        join = "&" if "?" in endpoints.authorization else "?"
        return f"{endpoints.authorization}{join}{urlencode(asked)}", begun

    async def finish(self, begun: Begun, query: Mapping[str, str]) -> str:
        """Return the token of who comes back with what was begun: one that opens this server now.

        Raises:
            SignInError: There is none, or it opens nothing.
        """
        try:
            code = await self._read_code(query)
            token = await self._exchange(code, begun)
            if len(token) > MOST_TOKEN:
                raise SignInError("large", f"The access token has {len(token)} characters.")
            await self.tokens.identify(token)
        except errors.UnauthenticatedError as error:
            raise SignInError("refused", error.message) from None
        except errors.PermissionDeniedError:
            raise SignInError("orgs", "The access token names several orgs.") from None
        except errors.WorldError as error:
            raise SignInError("unreachable", error.message) from None
        return token

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

    async def _exchange(self, code: str, begun: Begun) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.client.base + RETURN,
            "code_verifier": begun.verifier,
            "resource": self.resource.oauth.resource,
        }
        endpoints, credential = await self.endpoints.find(), self._make_credential()
        if credential is None:
            form["client_id"] = self.client.id
        async with self._turns:
            return await self.exchange(endpoints.token, form, credential)

    def _make_credential(self) -> str | None:
        """Return what the client authenticates with (RFC 6749, section 2.3.1)."""
        if self.client.secret is None:
            return None
        pair = f"{quote_plus(self.client.id)}:{quote_plus(self.client.secret.get_secret_value())}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"


def read_begun(text: str | None, state: str | None) -> Begun | None:
    """Return what a browser kept, if this state comes back with it; compared in constant time."""
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
