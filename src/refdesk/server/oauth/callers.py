"""Maps the claims of a validated token to a principal: org, agent, and those of the scopes that are refdesk's.

Two different callers never become the same agent. The agent always comes from the same claim: if any available claim
would do, one caller's `sub` could equal another's `client_id`. A prefix derived from the issuer's name keeps these
agents apart from those of keys and of any other issuer. A value that does not fit into a name is replaced by its hash,
under a prefix that no other name has.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from refdesk.discovery import list_scopes
from refdesk.errors import UnauthenticatedError
from refdesk.model import ORG_NAME, Principal
from refdesk.server.orgs import OrglessError, choose_org

if TYPE_CHECKING:
    from refdesk.server.oauth.configuration import OAuth

MOST_CHARACTERS = 64
HASHED = "oauth-sha256:"
SERVER_SCOPES = frozenset({"admin", "metrics:read"})
"""Scopes that see all orgs. Tokens may not carry them by default: many an issuer grants whatever is requested."""

_ORG = re.compile(ORG_NAME)
_CLIENT_CLAIMS = ("client_id", "azp", "appid", "cid")


@dataclass(frozen=True, slots=True)
class TokenCaller:
    """Who calls with a token.

    Attributes:
        issuer: The issuer of the token.
        client: The application that holds the token, as the issuer names it; empty where it does not.
        expires: When the token expires, in seconds since 1970.
    """

    principal: Principal
    issuer: str
    client: str
    expires: float = math.inf


def read_caller(claims: Mapping[str, Any], oauth: OAuth, org: str | None = None) -> TokenCaller:
    """Return the caller that a token's claims describe.

    Args:
        claims: The claims of a valid token.
        oauth: How callers sign in.
        org: The org that the caller asks for; it must be one that the claims name.

    Raises:
        UnauthenticatedError: The claims name no agent.
        OrglessError: They name no org, or none that is known here.
        PermissionDeniedError: They name several orgs and the caller asks for none, or for one that they do not name.
    """
    agent = claims.get(oauth.agent_claim)
    if not isinstance(agent, str) or not agent:
        raise UnauthenticatedError(_explain(oauth.agent_claim, "names no agent"))
    principal = Principal(
        choose_org(_read_orgs(claims, oauth), org), name_agent(agent, oauth), _read_scopes(claims, oauth)
    )
    named = (claims.get(name) for name in _CLIENT_CLAIMS)
    return TokenCaller(principal, oauth.issuer, next((one for one in named if isinstance(one, str)), ""))


def name_agent(value: str, oauth: OAuth) -> str:
    """Return the agent's name for a value of the agent claim; different values get different names."""
    name = oauth.agent_prefix + value
    is_plain = name.isprintable() and name == name.strip() and len(name) <= MOST_CHARACTERS
    if is_plain and not name.startswith(HASHED):
        return name
    digest = hashlib.sha256(f"{oauth.issuer}\0{value}".encode("utf-8", "surrogatepass")).digest()
    return HASHED + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _read_orgs(claims: Mapping[str, Any], oauth: OAuth) -> list[str]:
    """Return the orgs that the claims name and that can be orgs here, in the claims' order; at least one."""
    if oauth.org is not None:
        return [oauth.org]
    value: object = claims.get(oauth.org_claim)
    # Keycloak lists the organizations, or has an object that maps each to its details.
    names = list(cast("list[object]", value)) if isinstance(value, list | Mapping) else [value]
    texts = [name for name in names if isinstance(name, str)]
    if not texts:
        raise OrglessError(_explain(oauth.org_claim, "names no org"))
    orgs = [oauth.orgs.get(name, "") if oauth.orgs else name for name in texts]
    known = list(dict.fromkeys(org for org in orgs if _ORG.fullmatch(org)))
    if not known:
        raise OrglessError(_explain(oauth.org_claim, "names an org that is none here"))
    return known


def _read_scopes(claims: Mapping[str, Any], oauth: OAuth) -> frozenset[str]:
    """Return refdesk's scopes among those in the scope claims, which hold blank-separated texts or lists of texts."""
    found: set[str] = set()
    for claim in oauth.scope_claims:
        value: object = claims.get(claim)
        listed = value.split(" ") if isinstance(value, str) else value
        for one in cast("list[object]", listed) if isinstance(listed, list) else ():
            if isinstance(one, str) and one.startswith(oauth.scope_prefix):
                found.add(one.removeprefix(oauth.scope_prefix))
    known = list_scopes().keys() if oauth.grants_server_scopes else list_scopes().keys() - SERVER_SCOPES
    return frozenset(found & known)


def _explain(claim: str, reason: str) -> str:
    return f"The access token is refused: its `{claim}` {reason}."
