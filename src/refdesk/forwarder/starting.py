"""Finds the desk of a place, and starts one where none runs: exactly one, whoever else starts it at the same moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import refdesk
from refdesk.forwarder import hello, rendezvous
from refdesk.forwarder.identity import OF_CALLERS, PREFIX, Identity, copy_environment
from refdesk.forwarder.rendezvous import Place, UnusableError

START_SECONDS = 60.0
"""How long a desk may take until it listens, and whoever starts one until the next has a go."""

PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Client:
    """What a process asks a desk for, and where.

    Attributes:
        names: The toolsets that it is to serve.
        asked: What the desk gets to know of the caller.
        on_loopback: Whether a desk that is started listens on loopback, as it must where there are no Unix sockets.
    """

    identity: Identity
    place: Place
    names: Sequence[str]
    asked: Mapping[str, object]
    on_loopback: bool = False
    environment: Mapping[str, str] = field(default_factory=copy_environment)

    def find(self) -> hello.Wire | None:
        """Return a connection to the desk that runs, if one does."""
        found = self.place.find()
        try:
            return hello.Wire(rendezvous.connect(found)) if found is not None else None
        except OSError:
            return None

    def reach(self) -> hello.Wire:
        """Return a connection to the desk, which is started where none runs.

        Raises:
            UnusableError: There is no way to reach one here.
        """
        wire = self.find()
        if wire is not None:
            return wire
        lock = self.place.get_start_lock()
        try:
            if not lock.take(START_SECONDS):
                raise UnusableError("another process has been starting the desk for a minute")
            wire = self.find()
            return wire if wire is not None else self._start()
        except OSError as error:
            raise UnusableError(error.strerror or str(error)) from None
        finally:
            lock.release()

    def _start(self) -> hello.Wire:
        process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            wire = self.find()
            if wire is not None:
                return wire
            if process.poll() is not None:
                raise UnusableError(f"the desk ended at once; {self.place.path('.log')} says why")
            time.sleep(PAUSE_SECONDS)
        raise UnusableError("the desk does not listen")

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Start a desk that outlives this process and holds none of its files."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "refdesk.server.local", self.place.key, *self.names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.place.folder if self.identity.is_portable else None,
            env=self._make_environment(),
            start_new_session=True,
            creationflags=_DETACHED,
        )

    def _make_environment(self) -> dict[str, str]:
        """Return what the desk sees: all that this process sees, but for who its caller is."""
        callers = {PREFIX + name for name in OF_CALLERS}
        kept = {name: value for name, value in self.environment.items() if name.upper() not in callers}
        kept[f"{PREFIX}HOME"] = self.identity.home
        paths = [os.path.abspath(path) for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path]
        root = os.path.dirname(os.path.dirname(os.path.abspath(refdesk.__file__)))
        if root not in sys.path[1:]:
            paths.append(root)  # it was found in the working folder
        return {**kept, "PYTHONPATH": os.pathsep.join(paths)} if paths else kept


_DETACHED = 0x00000008 | 0x00000200 | 0x08000000 if sys.platform == "win32" else 0
"""On Windows: detached, in a group of its own, without a window."""
