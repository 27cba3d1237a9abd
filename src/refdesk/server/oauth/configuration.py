"""The OAuth configuration, validated as a whole before the server listens."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from refdesk import errors
from refdesk.model import ORG_NAME
from refdesk.settings import variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from refdesk.settings import Settings

MCP = "/mcp"
NO_PREFIX = "none"

_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""The characters of an address (RFC 3986): none that would end a quoted string in a header, and no blank."""

_SCOPE = re.compile(r"[!#-\[\]-~]+")
"""A scope's name (RFC 6749, section 3.3)."""

_ORG = re.compile(ORG_NAME)


@dataclass(frozen=True, slots=True)
class ConsoleClient:
    """The console as a client of the issuer.

    Attributes:
        id: The client id at the issuer.
        secret: The client secret; `None` for a public client.
        base: The URL at which browsers reach this server, without a trailing slash.
        more_scopes: Scopes that it requests in addition to those of every client.
    """

    id: str
    secret: SecretStr | None
    base: str
    more_scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OAuth:
    """How callers sign in.

    Attributes:
        issuer: The issuer of the tokens, as it names itself; compared literally.
        audiences: The audiences of this server; a token must name at least one of them.
        jwks_url: The URL of the issuer's keys; `None` to read it from the issuer's metadata.
        resource: This server's resource identifier (RFC 8707): the public address of its MCP endpoint.
        org: The org of everybody who signs in; `None` if the token says it.
        org_claim: The claim that names the org.
        orgs: Maps values of that claim to orgs; if empty, the value is the org's name.
        agent_claim: The claim that names the caller.
        agent_prefix: The prefix of that claim's value in the agent's name.
        scope_claims: The claims that list scopes.
        scope_prefix: The prefix of refdesk's scope names in tokens.
        asked_prefix: The prefix of refdesk's scope names in clients' requests.
        more_scopes: Scopes that clients request in addition.
        grants_server_scopes: Whether tokens may carry scopes that see all orgs.
        console: The client by which people sign in to the console; `None` if they cannot.
    """

    issuer: str
    audiences: frozenset[str]
    jwks_url: str | None
    resource: str
    org: str | None
    org_claim: str
    orgs: Mapping[str, str]
    agent_claim: str
    agent_prefix: str
    scope_claims: tuple[str, ...]
    scope_prefix: str
    asked_prefix: str
    more_scopes: tuple[str, ...] = ()
    grants_server_scopes: bool = False
    console: ConsoleClient | None = None


def read_oauth(settings: Settings) -> OAuth | None:
    """Return how callers sign in, or `None` if sign-in is not configured.

    Raises:
        ConfigurationError: A setting for sign-in is missing, or settings contradict each other.
    """
    if settings.oauth_issuer is None:
        _check_nothing_is_set(settings)
        return None
    _check_issuer(settings.oauth_issuer)
    if settings.oauth_jwks_url is not None:
        _check_url("REFDESK_OAUTH_JWKS_URL", settings.oauth_jwks_url)
    if not settings.oauth_audience:
        raise errors.ConfigurationError(
            "REFDESK_OAUTH_ISSUER needs REFDESK_OAUTH_AUDIENCE beside it: what the issuer makes tokens for this server "
            "out to, normally its public MCP address, such as https://desk.example.com/mcp."
        )
    _check_org(settings)
    return OAuth(
        issuer=settings.oauth_issuer,
        audiences=frozenset(settings.oauth_audience),
        jwks_url=settings.oauth_jwks_url,
        resource=_choose_resource(settings),
        org=settings.oauth_org,
        org_claim=settings.oauth_org_claim,
        orgs=_read_orgs(settings.oauth_orgs),
        agent_claim=settings.oauth_agent_claim,
        agent_prefix=_choose_agent_prefix(settings.oauth_agent_prefix, settings.oauth_issuer),
        scope_claims=settings.oauth_scope_claims,
        scope_prefix=settings.oauth_scope_prefix,
        asked_prefix=settings.oauth_scope_prefix
        if settings.oauth_asked_scope_prefix is None
        else settings.oauth_asked_scope_prefix,
        more_scopes=_check_scopes("REFDESK_OAUTH_MORE_SCOPES", settings.oauth_more_scopes),
        grants_server_scopes=settings.oauth_server_scopes,
        console=_read_console(settings),
    )


def may_be_asked(url: str) -> bool:
    """Return whether a URL may be fetched: over HTTPS, or plain HTTP on this machine, and without a user in it."""
    parts = _split(url)
    if parts is None or not parts.hostname or parts.username is not None or "#" in url or not _PLAIN.fullmatch(url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def find_host(oauth: OAuth) -> str | None:
    """Return the host by which clients reach this server, or `None` if it is this machine itself."""
    host = urlsplit(oauth.resource).hostname
    return None if host is None or is_loopback(host) else host


def is_loopback(host: str) -> bool:
    """Return whether the host of a URL is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _check_url(variable: str, url: str) -> None:
    if not may_be_asked(url):
        raise errors.ConfigurationError(
            f"{variable} must be a URL that begins with https:// (http:// on this machine only), "
            "without a user and without a fragment."
        )


def _check_nothing_is_set(settings: Settings) -> None:
    fields = type(settings).model_fields.items()
    chosen = [name for name, field in fields if name.startswith("oauth_") and getattr(settings, name) != field.default]
    if chosen:
        raise errors.ConfigurationError(
            f"{', '.join(map(variable, chosen))}: set without REFDESK_OAUTH_ISSUER, so no token would be accepted. Set "
            "the issuer too, or unset the others."
        )


def _check_issuer(issuer: str) -> None:
    _check_url("REFDESK_OAUTH_ISSUER", issuer)
    if "?" in issuer:
        raise errors.ConfigurationError("REFDESK_OAUTH_ISSUER must have no query: nothing after a question mark.")


def _check_org(settings: Settings) -> None:
    if settings.oauth_org is not None and ("oauth_org_claim" in settings.model_fields_set or settings.oauth_orgs):
        raise errors.ConfigurationError(
            "REFDESK_OAUTH_ORG puts everybody who signs in into one org, while REFDESK_OAUTH_ORG_CLAIM and "
            "REFDESK_OAUTH_ORGS read it from the token: set the one or the others."
        )


def _check_scopes(variable: str, scopes: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_SCOPE.fullmatch(scope) for scope in scopes):
        raise errors.ConfigurationError(
            f"{variable} lists names of scopes, separated by commas, without blanks and quotation marks."
        )
    return scopes


def _choose_resource(settings: Settings) -> str:
    if settings.public_url is not None:
        _check_url("REFDESK_PUBLIC_URL", settings.public_url)
        return settings.public_url.rstrip("/") + MCP
    found = next((one for one in settings.oauth_audience if may_be_asked(one)), None)
    if found is None:
        raise errors.ConfigurationError(
            "No value of REFDESK_OAUTH_AUDIENCE is a URL, so clients cannot be told where this server is: "
            "set REFDESK_PUBLIC_URL, such as https://desk.example.com."
        )
    return found


def _read_console(settings: Settings) -> ConsoleClient | None:
    if settings.oauth_console_client_id is None:
        if settings.oauth_console_client_secret is not None or settings.oauth_console_more_scopes:
            raise errors.ConfigurationError(
                "REFDESK_OAUTH_CONSOLE_CLIENT_SECRET or REFDESK_OAUTH_CONSOLE_MORE_SCOPES is set without "
                "REFDESK_OAUTH_CONSOLE_CLIENT_ID: set the id of that client too, or unset them."
            )
        return None
    resource = _choose_resource(settings)
    if not resource.endswith(MCP):
        raise errors.ConfigurationError(
            "REFDESK_OAUTH_CONSOLE_CLIENT_ID needs to know where browsers reach the console, which no value of "
            "REFDESK_OAUTH_AUDIENCE says: set REFDESK_PUBLIC_URL, such as https://desk.example.com."
        )
    base = resource.removesuffix(MCP)
    more = _check_scopes("REFDESK_OAUTH_CONSOLE_MORE_SCOPES", settings.oauth_console_more_scopes)
    return ConsoleClient(settings.oauth_console_client_id, settings.oauth_console_client_secret, base, more)


def _read_orgs(pairs: tuple[str, ...]) -> dict[str, str]:
    orgs: dict[str, str] = {}
    for pair in pairs:
        value, _, org = (part.strip() for part in pair.rpartition("="))
        if not value or value in orgs or not _ORG.fullmatch(org):
            raise errors.ConfigurationError(
                "REFDESK_OAUTH_ORGS lists pairs VALUE=ORG, separated by commas, each value once; "
                "an org is named by 1 to 64 lower-case letters, digits and hyphens."
            )
        orgs[value] = org
    return orgs


def _choose_agent_prefix(chosen: str | None, issuer: str) -> str:
    if chosen is None:
        return f"oauth-{hashlib.sha256(issuer.encode()).hexdigest()[:8]}:"
    return "" if chosen == NO_PREFIX else chosen
