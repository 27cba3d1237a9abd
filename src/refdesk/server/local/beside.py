"""Makes a server over HTTP the desk of its data folder and settings too: it opens the local socket in addition to its
port."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from refdesk import __version__
from refdesk.forwarder import hello, identity, rendezvous
from refdesk.forwarder.rendezvous import Found, Place, UnusableError
from refdesk.server.local import listening
from refdesk.server.local.service import LocalService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.app import Desk
    from refdesk.forwarder.locking import FileLock
    from refdesk.server.local.links import Links

logger = logging.getLogger(__name__)

KIND = "http"
TAKEOVER_SECONDS = 60.0
FINISH_SECONDS = 10.0


class Beside:
    """The local side of a server over HTTP."""

    def __init__(self, desk: Desk, names: Sequence[str], links: Links) -> None:
        self._desk = desk
        self._names = names
        self._links = links
        self._service: LocalService | None = None
        self._finished = anyio.Event()

    async def run(self) -> None:
        """Replace the desk that clients started, if one runs, and serve those clients; or log why that is not
        possible."""
        try:
            await self._serve()
        except (UnusableError, OSError) as error:
            logger.info("no local socket", extra={"reason": str(error)})
        finally:
            self._finished.set()

    async def finish(self) -> None:
        """Answer the pending requests of local clients, and let go of the clients."""
        if self._service is not None:
            self._service.end("the server ends")
            with anyio.move_on_after(FINISH_SECONDS):
                await self._finished.wait()

    async def _serve(self) -> None:
        if identity.is_in_memory():
            return
        place = rendezvous.open_place(identity.read(self._names))
        lock = place.get_life_lock()
        if not lock.take() and not await anyio.to_thread.run_sync(_take_over, place, lock):
            raise UnusableError("another server is the desk of this folder and these settings")
        try:
            on_loopback = self._desk.settings.desk_socket == "loopback"
            listener, address = listening.listen(place, on_loopback=on_loopback)
            self._service = LocalService(self._desk, place, lock, kind=KIND, links=self._links)
            place.announce(Found(os.getpid(), __version__, address, KIND, place.key, time.time()))
            await self._service.run(listener)
        finally:
            place.withdraw()
            lock.release()


def _take_over(place: Place, lock: FileLock) -> bool:
    """Return whether the running desk gave up its place, as desks that clients started do."""
    found = place.find()
    if found is not None and found.kind == KIND:
        return False
    if found is not None:
        wire = hello.Wire(rendezvous.connect(found))
        hello.prove_client(wire, place)
        wire.send(hello.pack({"ask": "yield"}))
        wire.read_line()
        wire.close()
    return lock.take(TAKEOVER_SECONDS)
