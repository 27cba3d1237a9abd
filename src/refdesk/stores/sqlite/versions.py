"""The SQLite versions that are safe to use.

Every SQLite from 3.7.0 to 3.51.2 can lose pages of a WAL file when a checkpoint of one connection overlaps a commit of
another ("WAL-reset", found in March 2026). 3.51.3 fixes it, and so do the backports 3.50.7 and 3.44.6; 3.52.0 was
withdrawn. Source: the release history on sqlite.org.
"""

from __future__ import annotations

from refdesk.errors import ConfigurationError

FIRST_FIXED = (3, 51, 3)
BACKPORTS = {(3, 44): 6, (3, 50): 7}
"""The first fixed patch of each release line."""

WITHDRAWN = frozenset({(3, 52, 0)})


def is_safe(version: str) -> bool:
    """Return whether this SQLite, such as "3.51.3", keeps what several connections commit in WAL mode."""
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    if (major, minor, patch) in WITHDRAWN:
        return False
    return (major, minor, patch) >= FIRST_FIXED or patch >= BACKPORTS.get((major, minor), patch + 1)


def require_safe(version: str) -> None:
    """Return if the version `is_safe`.

    Raises:
        ConfigurationError: It is not safe; the message says what to install.
    """
    if not is_safe(version):
        raise ConfigurationError(
            f"SQLite {version} can lose committed data when several processes share a file. "
            "Install apsw 3.54.1.0 or newer: pip install --upgrade apsw"
        )
