"""Runs a desk that already has its place, until nobody needs it."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from refdesk.app import open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import logs
from refdesk.server.local.log_file import open_log
from refdesk.server.local.service import LocalService
from refdesk.server.process import leave, let_threads_alternate, tell_what_learns
from refdesk.server.telemetry import sending_own_metrics
from refdesk.settings import load_settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from refdesk.core.operations import Toolset
    from refdesk.forwarder.locking import FileLock
    from refdesk.forwarder.rendezvous import Place
    from refdesk.settings import Settings

LOG_SECONDS = 60.0
"""How often the size of the log is checked."""


def serve(place: Place, lock: FileLock, listener: socket.socket, names: Sequence[str]) -> None:
    """Serve clients until none has been connected for long enough.

    Raises:
        RefdeskError: The settings are wrong; nobody was served.
    """
    settings = load_settings()
    toolsets = load_toolsets(names, settings)
    logs.configure(settings.log_level)
    _allow_many_files()
    let_threads_alternate()
    anyio.run(_serve, settings, toolsets, place, lock, listener)
    lock.release()
    leave()


async def _serve(
    settings: Settings, toolsets: Sequence[Toolset], place: Place, lock: FileLock, listener: socket.socket
) -> None:
    tell_what_learns(settings, toolsets)
    async with (
        open_desk(settings, toolsets) as desk,
        sending_own_metrics(desk),
        anyio.create_task_group() as group,
    ):
        service = LocalService(desk, place, lock, idle_seconds=settings.desk_idle)
        group.start_soon(_end_at_signal, service, group.cancel_scope)
        group.start_soon(_keep_log_small, place.path(".log"))
        await service.run(listener)
        group.cancel_scope.cancel()


async def _end_at_signal(service: LocalService, scope: anyio.CancelScope) -> None:
    """At the first signal, finish the requests in progress; at the second, end at once."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if service.is_ending:
                scope.cancel()
            service.end(f"signal {number}")


async def _keep_log_small(path: str) -> None:
    while True:
        await anyio.sleep(LOG_SECONDS)
        with suppress(OSError):
            open_log(path)


def _allow_many_files() -> None:
    """Raise the limit on open files, so that every client can have its socket: the usual limit is for programs with
    few."""
    try:
        import resource
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if most == resource.RLIM_INFINITY else min(65536, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
