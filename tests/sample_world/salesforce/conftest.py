"""One emulator of each kind for a whole module, put back before each test; and a client with a good token."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
import pytest

from sample_world.salesforce.process import RunningEmulator, running_emulator


@pytest.fixture(scope="module")
async def shared_emulator(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as emulator:
        yield emulator


@pytest.fixture
async def emulator(shared_emulator: RunningEmulator) -> RunningEmulator:
    await shared_emulator.reset()
    await shared_emulator.set_faults([])
    await shared_emulator.forget_requests()
    return shared_emulator


@pytest.fixture
async def client(emulator: RunningEmulator) -> AsyncGenerator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {emulator.access_token}"}
    async with httpx2.AsyncClient(
        base_url=emulator.url, headers=headers, trust_env=False, verify=False, timeout=120
    ) as client:
        yield client
