"""Finds the desk of a place, and starts one if none runs: exactly one, however many processes try at the same
moment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from refdesk.forwarder import hello, rendezvous
from refdesk.forwarder.identity import Identity
from refdesk.forwarder.rendezvous import Place, UnusableError
from refdesk.forwarder.typed import NamedTuple

START_SECONDS = 60.0
"""How long a desk may take until it listens, and how long a process waits for another one that is starting a desk."""

PAUSE_SECONDS = 0.01


class Client(NamedTuple):
    """What a process asks a desk for, and the place of that desk.

    Attributes:
        names: The toolsets that it is to serve.
        asked: What the desk learns about the caller.
        on_loopback: Whether a desk that is started listens on loopback, as it must on systems without Unix sockets.
    """

    identity: Identity
    place: Place
    names: Sequence[str]
    asked: Mapping[str, object]
    on_loopback: bool = False

    def find(self) -> hello.Wire | None:
        """Return a connection to the running desk, if there is one."""
        found = self.place.find()
        try:
            return hello.Wire(rendezvous.connect(found)) if found is not None else None
        except OSError:
            return None

    def reach(self) -> hello.Wire:
        """Return a connection to the desk; start one if none runs.

        Raises:
            UnusableError: No desk can be reached or started here.
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
        # Imported here because it takes time, and most clients find a running desk.
        from refdesk.forwarder.spawning import spawn

        process = spawn(self.identity, self.place, self.names)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            wire = self.find()
            if wire is not None:
                return wire
            if process.poll() is not None:
                raise UnusableError(f"the desk ended at once; {self.place.path('.log')} says why")
            time.sleep(PAUSE_SECONDS)
        raise UnusableError("the desk does not listen")
