"""The configuration of a Salesforce org, validated before anything is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from refdesk.errors import ConfigurationError
from refdesk.kit.addresses import is_loopback
from refdesk.toolsets.salesforce_knowledge.statements import normalize_language

NEWEST_VERSION = 68
"""Winter '27: the newest version that refdesk was tried with. Versions 21 to 30 are retired."""

DEFAULT_LANGUAGE = "en_US"
OWN_LANGUAGE = "org"
"""Set in place of a language, this means the org's own default language."""

SESSION_CHARACTERS = 8192

_VERSION = re.compile(r"v\d{2,3}\.0")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")
_SECRET = re.compile(r"[\x21-\x7e]+")
_DOMAINS = (".salesforce.com", ".salesforce.mil")


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesforceSettings:
    """Which org, as whom, and how patiently.

    One way to sign in is needed, and the first of these that is complete is used: an access token as it is; a client id
    with a user name and a private key (JWT bearer); a client id with its secret (client credentials).

    Attributes:
        instance_url: The org's My Domain address. HTTPS, or plain HTTP on this machine.
        client_id: Consumer key of the External Client App.
        client_secret: Its consumer secret.
        username: The Salesforce user that JWT bearer signs in as.
        private_key_file: The RSA key, in PEM, whose certificate the app has.
        access_token: A session that is used until it expires and never renewed.
        body_fields: API names of the fields that make up an article's body, in order; empty: found by describe.
        api_version: Such as `v68.0`; `None` is the newest that the org offers, up to `NEWEST_VERSION`.
        language: The language of articles if a search names none, or `OWN_LANGUAGE`.
        needs_session: Whether every request must come with the session of the user it is for.
        timeout_seconds: How long one tool call may take, everything included.
        request_seconds: How long one request to Salesforce may take.

    Raises:
        ConfigurationError: Something is missing or malformed; the message names the setting and shows no value.
    """

    instance_url: str
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    username: str | None = None
    private_key_file: Path | None = None
    access_token: str | None = field(default=None, repr=False)
    body_fields: tuple[str, ...] = ()
    api_version: str | None = None
    language: str = DEFAULT_LANGUAGE
    needs_session: bool = False
    timeout_seconds: float = 15.0
    request_seconds: float = 6.0

    def __post_init__(self) -> None:
        _check_instance_url(self.instance_url)
        if not (self.access_token or (self.client_id and (self.client_secret or self.has_key))):
            raise ConfigurationError(
                "Salesforce needs a way to sign in: set REFDESK_SALESFORCE_CLIENT_ID and "
                "REFDESK_SALESFORCE_CLIENT_SECRET (or REFDESK_SALESFORCE_USERNAME and "
                "REFDESK_SALESFORCE_PRIVATE_KEY_FILE), or REFDESK_SALESFORCE_ACCESS_TOKEN."
            )
        if self.access_token and not _SECRET.fullmatch(self.access_token):
            raise ConfigurationError(
                "REFDESK_SALESFORCE_ACCESS_TOKEN holds characters that no token has: copy it again."
            )
        if self.api_version is not None and not _VERSION.fullmatch(self.api_version):
            raise ConfigurationError("REFDESK_SALESFORCE_API_VERSION has the wrong form: write it as v68.0.")
        if self.language not in (OWN_LANGUAGE, normalize_language(self.language)):
            raise ConfigurationError(
                "REFDESK_SALESFORCE_LANGUAGE is no language as Salesforce writes them: write it as en_US, de or pt_BR, "
                "or org for the org's own."
            )
        if not all(_FIELD.fullmatch(name) for name in self.body_fields):
            raise ConfigurationError(
                "REFDESK_SALESFORCE_BODY_FIELDS holds what is no API name of a field: write them as Answer__c,Steps__c."
            )

    @property
    def has_key(self) -> bool:
        """Whether JWT bearer is configured."""
        return bool(self.username and self.private_key_file)

    @property
    def origin(self) -> str:
        """Scheme, host and port of the instance, without anything after them."""
        parts = urlsplit(self.instance_url)
        return f"{parts.scheme}://{parts.netloc}"


def check_session_url(url: object, settings: SalesforceSettings) -> str | None:
    """Return the origin that a token's `instance_url` points to, or `None` if it is not to be trusted.

    A token may only lead to the configured host, to Salesforce's own domains over HTTPS or, if the configured host is
    this machine, to this machine: anything else would hand the session to a stranger.
    """
    parts = _split(url) if isinstance(url, str) else None
    if parts is None or parts.hostname is None:
        return None
    origin = f"{parts.scheme}://{parts.netloc}"
    is_ours = parts.scheme == "https" and parts.hostname.endswith(_DOMAINS)
    is_local = is_loopback(parts.hostname) and is_loopback(urlsplit(settings.origin).hostname or "")
    return origin if origin == settings.origin or is_ours or is_local else None


def is_secret(text: str) -> bool:
    """Return whether a text may be a session: only characters that may go into a header."""
    return len(text) <= SESSION_CHARACTERS and _SECRET.fullmatch(text) is not None


def _check_instance_url(url: str) -> None:
    parts = _split(url)
    if parts is None or parts.scheme not in ("https", "http"):
        raise ConfigurationError(
            "REFDESK_SALESFORCE_INSTANCE_URL is no address: write it as https://example.my.salesforce.com."
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ConfigurationError(
            "REFDESK_SALESFORCE_INSTANCE_URL must begin with https:// unless it is on this machine."
        )


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address if it has a host and neither user, query nor odd characters, else `None`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not _SECRET.fullmatch(url) or not parts.hostname or "@" in parts.netloc or "\\" in url:
        return None
    return None if port == 0 or parts.query or parts.fragment else parts
