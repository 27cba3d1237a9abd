"""Starts processes: a desk that outlives its first client, or a server for one client if no desk can be reached."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

import refdesk
from refdesk.forwarder.config_file import NONE, VARIABLE, find_path
from refdesk.forwarder.hello import Wire
from refdesk.forwarder.identity import OF_CALLERS, PREFIX, Identity, copy_environment, read_settings
from refdesk.forwarder.rendezvous import Place

_DETACHED = 0x00000008 | 0x00000200 | 0x08000000 if sys.platform == "win32" else 0
"""On Windows: detached, in its own process group, without a window."""


def spawn(desk: Identity, place: Place, names: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a desk that outlives this process and keeps none of its files open; `names` are its toolsets."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "refdesk.server.local", place.key, *names],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=place.folder if desk.is_portable else None,
        env=_make_environment(desk.home),
        start_new_session=True,
        creationflags=_DETACHED,
    )


def spawn_isolated(arguments: list[str]) -> Wire:
    """Start a server for this process's client alone, with the arguments of this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "refdesk", *arguments, "--isolated"]
        subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno())
    return Wire(ours)


def _make_environment(home: str) -> dict[str, str]:
    """Return the environment of the desk: that of this process, without the settings that say who its caller is.

    It includes what the config file says now: the desk is the one for these settings, even if the file has changed by
    the time it starts.
    """
    variables = copy_environment()
    own = {PREFIX + name: value for name, value in read_settings(variables).items() if name not in OF_CALLERS}
    kept = {name: value for name, value in variables.items() if not name.upper().startswith(PREFIX)} | own
    kept[f"{PREFIX}HOME"] = home
    if variables.get(VARIABLE):
        kept[VARIABLE] = find_path(variables) or NONE
    paths = [os.path.abspath(path) for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path]
    root = os.path.dirname(os.path.dirname(os.path.abspath(refdesk.__file__)))
    if root not in sys.path[1:]:
        paths.append(root)  # refdesk was found through the working folder
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)} if paths else kept
