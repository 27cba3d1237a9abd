"""The types with which settings are declared, those of toolsets and refdesk's own."""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_settings import NoDecode

URL = r"^https?://[^\s/]+"
NOT_BLANK = r"\S"


def split_names(value: object) -> object:
    """Return the parts of a text between commas, stripped and without empty ones; any other value unchanged."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _read_none(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def _check_url(value: str) -> str:
    """Return a URL, if it has a host and a valid port."""
    try:
        parts = urlsplit(value)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError("has the wrong form")
    return value


def _check_networks(names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        _ = [ip_network(name, strict=False) for name in names]
    except ValueError:
        raise ValueError("must list IP addresses or networks such as 10.0.0.0/8, separated by commas") from None
    return names


def _expand(path: Path) -> Path:
    # `Path.expanduser` raises if there is no such user.
    return Path(os.path.expanduser(path))


UserPath: TypeAlias = Annotated[Path, AfterValidator(_expand)]
"""A file or folder; `~` stands for the user's home folder, which no shell has expanded if a client starts the
server."""

Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_names)]
"""Names separated by commas."""

Networks: TypeAlias = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(split_names), AfterValidator(_check_networks)
]
"""IP addresses and networks, separated by commas."""

_HOST = r"^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?)$"
_ORIGIN = r"^[a-z][a-z0-9+.-]*://[^/?#\s]+$"

HostNames: TypeAlias = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=_HOST)], ...], NoDecode, BeforeValidator(split_names)
]
"""Names or addresses of hosts, without a port, separated by commas."""

Origins: TypeAlias = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=_ORIGIN)], ...], NoDecode, BeforeValidator(split_names)
]
"""Web origins, separated by commas."""

Url: TypeAlias = Annotated[str, Field(pattern=URL), AfterValidator(_check_url)]
"""An address that is called over HTTP."""

Hours: TypeAlias = Annotated[float, Field(gt=0, le=8760)]
"""A length of time, of at most a year."""

MostKept: TypeAlias = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_read_none)]
"""How much may be kept; `none` sets no limit."""
