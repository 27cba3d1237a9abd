"""The token endpoint, and the sessions that it opens."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import jwt

from sample_world.salesforce.articles import USER_ID
from sample_world.salesforce.ids import make_id

CLIENT_ID = "3MVG9sampleWorldConsumerKey.0123456789"
CLIENT_SECRET = "0123456789ABCDEF0123456789ABCDEF-sample-world"
USERNAME = "help.desk@marrowby.example"
GENERIC_AUDIENCE = "https://login.salesforce.com"
ORG_ID = make_id("00D", 7)
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# An assertion may live for three minutes; the rest is for clocks that differ.
_LONGEST_ASSERTION_SECONDS = 300


@dataclass(frozen=True, slots=True)
class TokenError(Exception):
    """No token is given; on the wire an object, with status 400 throughout."""

    error: str
    description: str


@dataclass(slots=True)
class Sessions:
    """The tokens that are good, and the credentials by which more are had.

    The first token is there from the start, as one that somebody copied from elsewhere.
    """

    origin: str
    public_key: str
    first_token: str = field(default_factory=lambda: _make_token())
    _good: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._good = {self.first_token}

    def expire(self) -> None:
        """Let no token that was given so far be good any more."""
        self._good.clear()

    def restore(self) -> None:
        """Let the first token be good again."""
        self._good = {self.first_token}

    def is_good(self, authorization: str) -> bool:
        """Say whether an `Authorization` header opens a session."""
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() in ("bearer", "oauth") and token.strip() in self._good

    def grant(self, form: Mapping[str, str], authorization: str = "") -> Mapping[str, str]:
        """Return the answer to a token request.

        Raises:
            TokenError: the grant is of no known kind, or what it shows is wrong.
        """
        kind = form.get("grant_type")
        if kind == "client_credentials":
            _check_client(form, authorization)
        elif kind == _JWT_BEARER:
            self._check_assertion(form.get("assertion", ""))
        elif kind == "password":
            raise TokenError("invalid_grant", "authentication failure")
        else:
            raise TokenError("unsupported_grant_type", "grant type not supported")
        token = _make_token()
        self._good.add(token)
        return {
            "access_token": token,
            "signature": base64.b64encode(secrets.token_bytes(32)).decode(),
            "scope": "api",
            "instance_url": self.origin,
            "id": f"{self.origin}/id/{ORG_ID}/{USER_ID}",
            "token_type": "Bearer",
            "issued_at": str(int(time.time() * 1000)),
        }

    def _check_assertion(self, assertion: str) -> None:
        try:
            claims = jwt.decode(assertion, options={"verify_signature": False})
        except jwt.InvalidTokenError as error:
            raise TokenError("invalid_grant", "invalid assertion") from error
        if claims.get("iss") != CLIENT_ID:
            raise TokenError("invalid_client_id", "client identifier invalid")
        try:
            claims = jwt.decode(
                assertion,
                self.public_key,
                algorithms=["RS256"],
                audience=[self.origin, GENERIC_AUDIENCE],
                options={"require": ["exp", "aud", "sub"], "verify_sub": False},
            )
        except jwt.InvalidAudienceError as error:
            raise TokenError("invalid_grant", "audience is invalid") from error
        except jwt.InvalidTokenError as error:
            raise TokenError("invalid_grant", "invalid assertion") from error
        if float(claims["exp"]) > time.time() + _LONGEST_ASSERTION_SECONDS:
            raise TokenError("invalid_grant", "invalid assertion")
        if claims["sub"] != USERNAME:
            raise TokenError("invalid_grant", "user hasn't approved this consumer")


def _check_client(form: Mapping[str, str], authorization: str) -> None:
    id, secret = form.get("client_id", ""), form.get("client_secret", "")
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            id, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError as error:
            raise TokenError("invalid_client", "invalid client credentials") from error
        id, secret = unquote(id), unquote(secret)
    if id != CLIENT_ID:
        raise TokenError("invalid_client_id", "client identifier invalid")
    if not secrets.compare_digest(secret.encode(), CLIENT_SECRET.encode()):
        raise TokenError("invalid_client", "invalid client credentials")


def _make_token() -> str:
    return f"{ORG_ID[:15]}!{secrets.token_urlsafe(60)}"
