"""Validates access tokens: issuer, audience and lifetime (RFC 7519, RFC 8725, RFC 9068).

What is wrong with a token goes only to the log, without any part of the token. The signature is checked before any
claim is read. The header can only choose among the issuer's keys, not bring one: `jwk`, `jku`, `x5u` and `x5c` are
ignored.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, cast

from refdesk.errors import UnauthenticatedError
from refdesk.server.oauth.callers import read_caller
from refdesk.server.oauth.signing_keys import KINDS

if TYPE_CHECKING:
    from refdesk.protocols import Clock
    from refdesk.server.oauth.callers import TokenCaller
    from refdesk.server.oauth.configuration import OAuth
    from refdesk.server.oauth.key_set import KeySet

MOST_BYTES = 16 * 1024
"""Larger tokens are refused unread; the largest that issuers make, with hundreds of groups, are half that size."""

LEEWAY = timedelta(seconds=60)
"""How far the issuer's clock and this one may be apart."""

TYPES = frozenset({"at+jwt", "jwt"})
"""The values that a header's `typ` may have, if present: the first is RFC 9068's, the second older issuers'."""

_NO_TOKEN = f"it is no JWT, or is larger than {MOST_BYTES} bytes"
_NO_INSTANT = "its `exp` is missing, or a time in it is none"
_EXPLICIT = "at+jwt"
_OF_ACCESS_TOKENS = ("client_id", "azp", "appid", "cid", "scope", "scp")
_OF_ID_TOKENS = ("nonce", "at_hash", "c_hash", "s_hash")


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """Checks access tokens."""

    oauth: OAuth
    keys: KeySet
    clock: Clock

    async def identify(self, token: str, org: str | None = None, *, is_issued_now: bool = False) -> TokenCaller:
        """Return who calls with a token.

        Args:
            token: As it was sent.
            org: The org that the caller asks for, if any.
            is_issued_now: Whether it was not sent, but comes from the issuer itself, just now.

        Raises:
            PermissionDeniedError: The token is valid, but names several orgs, or not the one asked for.
            UnauthenticatedError: The token is not the issuer's, not for this server, not in force, not an access token
                or does not say who calls. The message says which, for the operator.
            WorldError: The token could not be checked because the issuer's keys are not available.
        """
        header = _read_header(token)
        algorithm, id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in KINDS or not (id is None or isinstance(id, str)):
            _refuse("its algorithm or the id of its key is none that is accepted")
        key = await self.keys.find(id, algorithm, is_issued_now=is_issued_now)
        if key is None:
            _refuse("the issuer has no key of that id that fits its algorithm")
        payload = key.read(token, algorithm)
        if payload is None:
            _refuse("its signature is wrong")
        claims = _parse(payload)
        self._check_claims(claims)
        if not is_access_token(header, claims):
            _refuse("it is an ID token, or bound to a key of its holder")
        return replace(read_caller(claims, self.oauth, org), expires=_read_instant(claims.get("exp")))

    def _check_claims(self, claims: dict[str, Any]) -> None:
        audience: object = claims.get("aud")
        named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        is_ours = any(isinstance(one, str) and one in self.oauth.audiences for one in named)
        if claims.get("iss") != self.oauth.issuer:
            _refuse("its `iss` is another issuer; it must be the same to the letter")
        if not is_ours:
            _refuse("its `aud` is not this server")
        now, leeway = self.clock.now().timestamp(), LEEWAY.total_seconds()
        if not now < _read_instant(claims.get("exp")) + leeway:
            _refuse("it has expired")
        if any(now < _read_instant(claims[name]) - leeway for name in ("nbf", "iat") if name in claims):
            _refuse("it is not in force yet; are the clocks right?")


def is_access_token(header: dict[str, Any], claims: dict[str, Any]) -> bool:
    """Return whether a token of the issuer's is an access token, as far as can be determined.

    A token is not one if it names another type or use in a claim (Keycloak's `typ`, Cognito's `token_use`), or if it is
    bound to a key of its holder (`cnf`, RFC 7800), which cannot be checked here. Otherwise it is one if its header says
    so (RFC 9068), or if it has claims of access tokens and, unless it names its type or use, none of ID tokens.
    """
    if "cnf" in claims:
        return False
    kind, use = str(claims.get("typ", "bearer")).lower(), claims.get("token_use", "access")
    if kind not in ("bearer", *TYPES) or use != "access":
        return False
    if _get_type(header) == _EXPLICIT:
        return True
    is_named = "typ" in claims or "token_use" in claims
    is_suspect = any(name in claims for name in _OF_ID_TOKENS) and not is_named
    return not is_suspect and any(name in claims for name in _OF_ACCESS_TOKENS)


def _read_header(token: str) -> dict[str, Any]:
    if len(token) > MOST_BYTES or not token.isascii() or token.count(".") != 2:
        _refuse(_NO_TOKEN)
    part = token.partition(".")[0]
    try:
        header = _parse(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        _refuse(_NO_TOKEN)
    if "crit" in header or _get_type(header) not in TYPES:
        _refuse("its header has a `typ` or a `crit` that is not accepted")
    return header


def _get_type(header: dict[str, Any]) -> str:
    value: object = header.get("typ", "jwt")
    return value.lower().removeprefix("application/") if isinstance(value, str) else ""


def _parse(text: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        _refuse(_NO_TOKEN)
    if not isinstance(value, dict):
        _refuse(_NO_TOKEN)
    return cast("dict[str, Any]", value)


def _read_instant(value: object) -> float:
    """Return a NumericDate (RFC 7519, section 2): seconds since 1970 in UTC."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(_NO_INSTANT)
    try:
        instant = float(value)
    except OverflowError:
        _refuse(_NO_INSTANT)
    if not math.isfinite(instant):
        _refuse(_NO_INSTANT)
    return instant


def _refuse(reason: str) -> NoReturn:
    raise UnauthenticatedError(f"The access token is refused: {reason}.") from None
