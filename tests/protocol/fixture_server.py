"""Serves the suite's fixtures over HTTP in a process of its own, and writes its address to stdout."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import anyio

from refdesk.app import open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import http
from refdesk.server.limits import wire
from refdesk.server.principals import local_principal
from tests.protocol.fixtures import Fixtures
from tests.server.echo import make_settings


async def main() -> None:
    with tempfile.TemporaryDirectory() as home, socket.create_server(("127.0.0.1", 0)) as listener:
        settings = make_settings(Path(home))
        toolsets = load_toolsets((), settings)
        async with open_desk(settings, toolsets, in_background=False) as desk:
            principal = local_principal(settings, toolsets, "fixtures")
            app = http.build_app(desk, principal, make_adapter=Fixtures)
            print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)  # noqa: T201 - whoever started it reads it
            await wire.build_server(app, settings).serve(sockets=[listener])


if __name__ == "__main__":
    anyio.run(main)
