"""What the tests of signing in share: one issuer's settings, claims that are right, and keys at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from refdesk.core.clock import FixedClock
from refdesk.server.oauth.configuration import OAuth
from refdesk.server.oauth.issuer import Published
from refdesk.server.oauth.key_set import KeySet
from refdesk.server.oauth.signing_keys import read_keys
from refdesk.server.oauth.tokens import TokenCheck
from tests.core.fakes import NOW
from tests.emulators.signing import Key

ISSUER = "https://id.example.com/realms/desk"
AUDIENCE = "https://desk.example.com/mcp"
OAUTH = OAuth(
    issuer=ISSUER,
    audiences=frozenset({AUDIENCE}),
    jwks_url=None,
    resource=AUDIENCE,
    org=None,
    org_claim="org_id",
    orgs={},
    agent_claim="sub",
    agent_prefix="oauth-1:",
    scope_claims=("scope", "scp"),
    scope_prefix="",
    asked_prefix="",
)


def make_claims(**changed: object) -> dict[str, Any]:
    """Claims of a token that is right; what is `None` is left out."""
    now = int(NOW.timestamp())
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "client_id": "app",
        "org_id": "acme",
        "scope": "knowledge:read",
        "iat": now,
        "exp": now + 300,
        **changed,
    }
    return {name: value for name, value in claims.items() if value is not None}


def publish(*keys: Key, max_age: timedelta | None = None) -> Published:
    """What an issuer with these keys publishes."""
    return Published(read_keys({"keys": [key.to_jwk() for key in keys]}), "nowhere", max_age)


def make_check(keys: Sequence[Key], clock: FixedClock | None = None, **changed: object) -> TokenCheck:
    """A check of tokens of an issuer with these keys."""
    clock = clock or FixedClock(NOW)

    async def fetch() -> Published:
        return publish(*keys)

    return TokenCheck(replace(OAUTH, **changed), KeySet(ISSUER, fetch, clock), clock)


def without(claims: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The claims without these."""
    return {name: value for name, value in claims.items() if name not in names}
