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
    from refdesk.server.oauth.sessions import SignInSessions


@dataclass(frozen=True, slots=True)
class SignIn:
    """Identifies callers by their tokens, and tells callers without one where to get it.

    Attributes:
        sessions: The sessions of people signed in to the console; `None` if the settings name no client for it.
    """

    tokens: TokenCheck
    resource: ProtectedResource
    sessions: SignInSessions | None = None


def build_sign_in(oauth: OAuth, toolsets: Iterable[Toolset], clock: Clock) -> SignIn:
    """Return the sign-in of callers, without requesting anything from the issuer yet."""
    issuer = Issuer(oauth.issuer, oauth.jwks_url)
    tokens = TokenCheck(oauth, KeySet(oauth.issuer, issuer.fetch, clock), clock)
    resource = ProtectedResource(oauth, list_scopes(toolsets))
    if oauth.console is None:
        return SignIn(tokens, resource)
    from refdesk.server.oauth.code_flow import CodeFlow
    from refdesk.server.oauth.endpoints import EndpointSet
    from refdesk.server.oauth.sessions import SignInSessions

    endpoints = EndpointSet(issuer.find_endpoints, clock)
    flow = CodeFlow(oauth.console, resource, tokens, endpoints, issuer.exchange, issuer.revoke)
    return SignIn(tokens, resource, SignInSessions(flow, clock))
