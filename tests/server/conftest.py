"""A desk with the echo toolsets, and the transports in front of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from refdesk.app import Desk
from refdesk.model import Principal
from refdesk.server import http, mcp
from sample_world.salesforce.process import RunningEmulator, running_emulator
from tests.server.echo import READER, echo_desk

URL = "http://127.0.0.1:8350"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with echo_desk(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["legacy", "2026-07-28"])
async def client(request: pytest.FixtureRequest, desk: Desk) -> AsyncGenerator[Client]:
    async with connect(desk, request.param) as connected:
        yield connected


@pytest.fixture
async def rest(desk: Desk) -> AsyncGenerator[httpx2.AsyncClient]:
    async with open_http(desk) as connected:
        yield connected


@pytest.fixture(scope="module")
async def running_help_desk(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as emulator:
        yield emulator


@pytest.fixture
async def emulator(running_help_desk: RunningEmulator) -> RunningEmulator:
    """Salesforce in a process of its own, with nothing of the last test."""
    await running_help_desk.reset()
    await running_help_desk.set_faults([])
    return running_help_desk


@asynccontextmanager
async def connect(desk: Desk, era: str, principal: Principal = READER) -> AsyncGenerator[Client]:
    """An MCP client in this process, of one protocol era."""
    server = mcp.build_server(desk, mcp.identify_local(principal, is_agent_known=True))
    async with Client(server, mode=era) as connected:
        yield connected


@asynccontextmanager
async def open_http(
    desk: Desk, principal: Principal | None = READER, *, sse: bool = False, is_everywhere: bool = False
) -> AsyncGenerator[httpx2.AsyncClient]:
    """An HTTP client of the whole application, in this process; one that is everywhere asks from changing addresses."""
    gate = http.build_app(desk, principal, sse=sse)
    assert isinstance(gate.app, Starlette)
    addresses = ip_network("10.0.0.0/8").hosts()

    async def ask_from_elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        await gate({**scope, "client": (str(next(addresses)), 1)}, receive, send)

    transport = httpx2.ASGITransport(app=ask_from_elsewhere if is_everywhere else gate)
    async with (
        gate.app.router.lifespan_context(gate.app),
        httpx2.AsyncClient(transport=transport, base_url=URL) as connected,
    ):
        yield connected
