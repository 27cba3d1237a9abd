"""Which server a URL leads to, where it names several."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from refdesk.errors import ConfigurationError

_PARAMETER = "target_session_attrs"
_OF_PRIMARIES = ("read-write", "primary")


def lead_to_primary(url: str) -> str:
    """Return the URL of a store that is written, which leads to no standby where it names several servers.

    libpq takes the first that lets it in: while the primary restarts, a standby, whose searches lack what was stored
    last, and from which connections come back only one by one.

    Raises:
        ConfigurationError: It asks for another one than the primary.
    """
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return url  # whoever connects says what is wrong with it
    if "," not in str(said.get("host") or said.get("hostaddr") or ""):
        return url
    wanted = said.get(_PARAMETER)
    if wanted is None:
        return f"{url}{'&' if '?' in url else '?'}{_PARAMETER}={_OF_PRIMARIES[0]}"
    if wanted not in _OF_PRIMARIES:
        raise ConfigurationError(
            f"REFDESK_STORE names several servers and may lead to a standby, by {_PARAMETER}={wanted}: leave that out, "
            "or say read-write. Standbys that search belong in REFDESK_STORE_READ."
        )
    return url
