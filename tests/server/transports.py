"""Clients of the SDK's over every transport and in both protocol eras, as the wire has them."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import Implementation

from refdesk.app import Desk
from refdesk.model import Principal
from refdesk.server import eras, http, mcp
from refdesk.server.limits import wire
from tests.server.echo import READER

MODERN = "2026-07-28"
TRANSPORTS = ("stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy")


@dataclass(frozen=True)
class Reach:
    """One desk, served in this process over all transports."""

    desk: Desk
    url: str
    principal: Principal
    stop: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def connect(self, transport: str, **options: Any) -> AsyncGenerator[Client]:  # noqa: ANN401 - as the SDK has them
        """A client over one of `TRANSPORTS`."""
        way, era = transport.split()
        where = {"http": f"{self.url}/mcp", "sse": sse_client(f"{self.url}/sse"), "stdio": self._pipe()}[way]
        me = Implementation(name=self.principal.agent, version="1")
        async with Client(where, mode=era, client_info=me, **options) as client:
            yield client

    @asynccontextmanager
    async def _pipe(self) -> AsyncGenerator[Any]:
        server = mcp.build_server(self.desk, mcp.identify_local(self.principal, is_agent_known=True))
        async with create_client_server_memory_streams() as (ours, theirs), anyio.create_task_group() as group:
            group.start_soon(eras.run, server, *theirs, "auto")
            yield ours
            group.cancel_scope.cancel()


@asynccontextmanager
async def serve(desk: Desk, principal: Principal | None = READER) -> AsyncGenerator[Reach]:
    """A desk on a port of this machine; without a principal, callers need keys."""
    # With the protocol said, asyncio sends small answers at once, as the server does.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        app = http.build_app(desk, principal, sse=True)
        server = wire.build_server(app, desk.settings, desk.note_stop)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])

            def stop() -> None:
                server.should_exit = True

            try:
                yield Reach(desk, url, principal or READER, stop)
            finally:
                stop()
