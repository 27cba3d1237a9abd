"""The config file: settings as TOML, for those that the environment does not set.

A key is a setting's name in lower case; the name of a table is a prefix for the names in it. Values become texts like
those of environment variables; what they mean is up to `refdesk.settings`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from refdesk.forwarder.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "REFDESK_CONFIG"
NONE = "none"
MOST_BYTES = 1_000_000

_Known = tuple[str, int, int]
_read: dict[_Known, dict[str, str]] = {}
"""Cache of what was read, by path, modification time and size: a process reads the file several times."""


class UnreadableError(Exception):
    """A config file that exists, or was named, cannot be used; the message says which and why."""


def find_path(variables: Mapping[str, str]) -> str | None:
    """Return where the config file is, or would be; `None` if none is to be read."""
    chosen = variables.get(VARIABLE)
    if chosen:
        return None if chosen.lower() == NONE else os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(_find_default_folder(variables), "config.toml")


def read(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in the config file, by name in lower case; none if there is no file.

    Raises:
        UnreadableError: It is not TOML, holds a value that no setting can have, cannot be read, or was named explicitly
            and does not exist.
    """
    path = find_path(variables)
    if path is None:
        return {}
    try:
        status = os.stat(path)
        known = (path, status.st_mtime_ns, status.st_size)
        if known not in _read:
            _read[known] = _load(path)
    except FileNotFoundError:
        if variables.get(VARIABLE):
            raise UnreadableError(f"There is no config file {path}, which {VARIABLE} names.") from None
        return {}
    except OSError as error:
        raise UnreadableError(f"{_name(path, variables)} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UnreadableError(f"{_name(path, variables)} cannot be used: {error}.") from None
    return _read[known]


def _name(path: str, variables: Mapping[str, str]) -> str:
    return f"The config file {path}" + (f", which {VARIABLE} names," if variables.get(VARIABLE) else "")


def _load(path: str) -> dict[str, str]:
    """Return the settings in a file; raise OSError, or ValueError with the reason, if it cannot be used."""
    import tomllib  # only if there is a file: clients start a forwarder for every window

    with open(path, "rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"it is longer than {MOST_BYTES} bytes")
    return dict(_flatten(tomllib.loads(text.decode("utf-8-sig")), ""))


def _flatten(table: dict[str, Any], before: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        name = f"{before}{key}"
        is_table = isinstance(value, dict)
        found += _flatten(cast("dict[str, Any]", value), f"{name}_") if is_table else [(name, _write(name, value))]
    return found


def _write(name: str, value: object) -> str:
    """Return a value as an environment variable would hold it."""
    if isinstance(value, list):
        return ",".join(_write(name, each) for each in cast("list[object]", value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{name} is neither a text, a number, a truth value nor a list of them")


def _find_default_folder(variables: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        import platformdirs

        return platformdirs.user_config_dir("refdesk", appauthor=False)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/refdesk")
    return os.path.join(variables.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config"), "refdesk")
