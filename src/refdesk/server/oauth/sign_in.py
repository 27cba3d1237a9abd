"""Wires the parts of OAuth sign-in together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.server.oauth.issuer import Issuer
from refdesk.server.oauth.key_set import KeySet
from refdesk.server.oauth.protected_resource import ProtectedResource, list_scopes
from refdesk.server.oauth.tokens import TokenCheck

if TYPE_CHECKING:
    from collections.abc import Iterable

    from refdesk.core.operations import Toolset
    from refdesk.protocols import Clock
    from refdesk.server.oauth.configuration import OAuth


@dataclass(frozen=True, slots=True)
class SignIn:
    """Tells who calls with a token, and callers without one where to get it."""

    tokens: TokenCheck
    resource: ProtectedResource


def build_sign_in(oauth: OAuth, toolsets: Iterable[Toolset], clock: Clock) -> SignIn:
    """Return the sign-in of callers; nothing is requested from the issuer yet."""
    keys = KeySet(oauth.issuer, Issuer(oauth.issuer, oauth.jwks_url).fetch, clock)
    return SignIn(TokenCheck(oauth, keys, clock), ProtectedResource(oauth, list_scopes(toolsets)))
