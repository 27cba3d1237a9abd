"""Which desk a process belongs to, as decided by the data folder and everything else that affects a desk's answers.

Settings come from the environment, or from the config file if the environment does not set them. They are compared and
passed on as they are written; what they mean is up to `refdesk.settings`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from refdesk.forwarder import config_file
from refdesk.forwarder.typed import NamedTuple

PREFIX = "REFDESK_"

OF_CALLERS = frozenset({"AGENT", "ORG", "STDIO_ERA", "TOOLS"})
"""Settings that each client has of its own: they say who it is and what it is offered."""

OF_THE_NETWORK = frozenset(
    {
        *("ALLOWED_HOSTS", "ALLOWED_ORIGINS", "PUBLIC_URL", "TRUSTED_PROXIES", "AGENT_RATE", "ORG_RATE"),
        *("OAUTH_AGENT_CLAIM", "OAUTH_AGENT_PREFIX", "OAUTH_ASKED_SCOPE_PREFIX", "OAUTH_AUDIENCE", "OAUTH_ISSUER"),
        *("OAUTH_JWKS_URL", "OAUTH_ORG", "OAUTH_ORG_CLAIM", "OAUTH_ORGS", "OAUTH_SCOPE_CLAIMS", "OAUTH_SCOPE_PREFIX"),
        *("HEADER_TIMEOUT_SECONDS", "BODY_TIMEOUT_SECONDS", "WRITE_TIMEOUT_SECONDS"),
        *("MAX_CONNECTIONS", "MAX_ADDRESS_CONNECTIONS", "MAX_SESSIONS"),
    }
)
"""Settings that only matter over HTTP."""

OF_THE_PROCESS = frozenset({"CONFIG", "DESK_IDLE", "DESK_SOCKET", "HOME", "LOG_LEVEL", "OTLP_ENDPOINT"})
"""Settings that affect no answer, and the data folder, which is compared separately."""

NOT_COMPARED = OF_CALLERS | OF_THE_NETWORK | OF_THE_PROCESS

OUTSIDE = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("PGPASSFILE", "PGPASSWORD", "PGUSER", "PGSERVICE", "PGSERVICEFILE", "PGSSLMODE", "PGSSLROOTCERT"),
    *("GOOGLE_APPLICATION_CREDENTIALS",),
)
"""Variables not of refdesk's own that libraries read: they decide through which proxies and as whom a desk connects."""

_PLUGIN_GROUP = b"[refdesk.toolsets]"


class Identity(NamedTuple):
    """What distinguishes desks.

    Attributes:
        home: The data folder, absolute.
        facts: Everything else, as lines of text. They contain secrets: they are never shown, and only stored as a keyed
            digest.
        is_portable: Whether it does not depend on the working folder.
    """

    home: str
    facts: tuple[str, ...]
    is_portable: bool = True


def read(names: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Identity:
    """Return the identity of this process's desk.

    Args:
        names: The toolsets asked for.
        environment: The variables; those of the process if none are given.
    """
    variables = os.environ if environment is None else environment
    settings = read_settings(variables)
    facts = [f"{name}={settings[name]}" for name in sorted(settings.keys() - NOT_COMPARED)]
    facts += [f"{name}={found}" for name in OUTSIDE if (found := variables.get(name) or variables.get(name.lower()))]
    facts += [f"toolset {name}" for name in sorted(set(names))]
    facts += _list_plugins()
    facts.append(f"machine {_name_machine()}")
    relative = [name for name in settings.keys() - NOT_COMPARED if _depends_on_folder(name, settings[name])]
    if relative:
        facts.append(f"folder {os.getcwd()}")
    return Identity(find_home(variables), tuple(facts), not relative)


def read_settings(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return refdesk's settings that are not empty, by their names in upper case without the prefix.

    Raises:
        UnreadableError: The config file cannot be used.
    """
    found = os.environ if variables is None else variables
    filed = {name.upper(): value for name, value in config_file.read(found).items() if value}
    return filed | {
        name.upper().removeprefix(PREFIX): value
        for name, value in found.items()
        if value and name.upper().startswith(PREFIX)
    }


def copy_environment() -> dict[str, str]:
    """Return every variable of this process."""
    return dict(os.environ)


def list_runtime_folders() -> list[str]:
    """Return the folders for files that last as long as a login or until the machine restarts, most suitable first."""
    return [*filter(None, (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"))), "/tmp"]


def find_home(variables: Mapping[str, str] | None = None) -> str:
    """Return the data folder, absolute and without symbolic links, as in `Settings.home`."""
    variables = os.environ if variables is None else variables
    chosen = read_settings(variables).get("HOME")
    return os.path.realpath(os.path.expanduser(chosen or _find_default_home(variables)))


def _find_default_home(variables: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        import platformdirs

        return platformdirs.user_data_dir("refdesk", appauthor=False)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/refdesk")
    data = variables.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
    return os.path.join(data, "refdesk")


def is_in_memory(variables: Mapping[str, str] | None = None) -> bool:
    """Return whether the store is in this process's memory, which cannot be shared."""
    return read_settings(variables).get("STORE", "").startswith("memory:")


def _depends_on_folder(name: str, value: str) -> bool:
    _, is_url, rest = value.partition("://")
    if is_url:
        return rest.startswith("/") and not os.path.isabs(os.path.expanduser(rest[1:]))  # as in scheme:///file
    is_path = name.endswith(("_PATH", "_FILE")) or os.sep in value
    return is_path and not os.path.isabs(os.path.expanduser(value))


def _list_plugins() -> list[str]:
    """Return the installed packages that provide toolsets; two environments with the same version may differ in
    them."""
    found: list[str] = []
    for folder in sys.path:
        try:
            names = [entry for entry in os.listdir(folder or ".") if entry.endswith(".dist-info")]
        except OSError:
            continue
        found += [f"plugin {name}" for name in sorted(names) if _brings_toolset(os.path.join(folder, name))]
    return found


def _brings_toolset(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return _PLUGIN_GROUP in file.read()
    except OSError:
        return False


def _name_machine() -> str:
    """Return the machine's name and what identifies the sandbox or container: a data folder may be mounted in
    several."""
    if sys.platform == "win32":
        return os.environ.get("COMPUTERNAME", "")
    return " ".join([os.uname().nodename, *map(_read_link, ("net", "mnt", "pid", "user"))])


def _read_link(namespace: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{namespace}")
    except OSError:
        return ""
