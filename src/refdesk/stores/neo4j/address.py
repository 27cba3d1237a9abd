"""Parses a store's URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from refdesk.errors import ConfigurationError

SCHEMES = frozenset({"neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc"})
SYSTEM = "system"
DEFAULT_NAMESPACE = "refdesk"
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_FORM = "neo4j://user:password@host:7687/database?namespace=name"
_NAMED = "The store's URL (REFDESK_STORE, or REFDESK_SKILLS_STORE)"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is.

    Attributes:
        server: What the driver connects to: scheme, host and port, nothing secret.
        user: `None` for a server without authentication.
        database: `None` for the user's home database.
        namespace: The namespace of the desk in that database.
    """

    server: str
    user: str | None
    password: str = field(repr=False)
    database: str | None
    namespace: str


def parse_address(url: str) -> Address:
    """Return the parts of a URL of the form `neo4j://user:password@host:7687/database?namespace=name`.

    Everything but the scheme and the host may be left out. `bolt` in place of `neo4j` asks for a single server
    without routing; `+s` asks for TLS. User and password are percent-encoded.

    Raises:
        ConfigurationError: The URL is malformed; the message quotes nothing of it.
    """
    try:
        parts = urlsplit(url)
        server = f"{parts.scheme}://{_get_host(parts)}:{parts.port or 7687}"
    except ValueError as error:
        raise ConfigurationError(f"{_NAMED} is malformed; write {_FORM}.") from error
    if parts.scheme not in SCHEMES or not parts.hostname or "/" in parts.path[1:] or parts.fragment:
        raise ConfigurationError(f"{_NAMED} does not name a Neo4j database; write {_FORM}.")
    if unquote(parts.path[1:]).lower() == SYSTEM:
        raise ConfigurationError(f"{_NAMED} names the server's own database, {SYSTEM}, which keeps no data of others.")
    return Address(
        server=server,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password or ""),
        database=unquote(parts.path[1:]) or None,
        namespace=_get_namespace(parts.query),
    )


def _get_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _get_namespace(query: str) -> str:
    options = dict(parse_qsl(query, keep_blank_values=True))
    namespace = options.pop("namespace", DEFAULT_NAMESPACE)
    if options:
        raise ConfigurationError(f"{_NAMED} has an unknown option; Neo4j takes namespace and nothing else.")
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigurationError(f"{_NAMED} must have a namespace of a-z, 0-9 and hyphens, 63 at most, or none.")
    return namespace
