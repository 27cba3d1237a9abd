"""One emulator for the whole module, with its faults and its world put back before each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
import pytest

from sample_world.azure_updates.emulator import FEED_PATH
from sample_world.azure_updates.process import RunningEmulator, running_emulator


@pytest.fixture(scope="module")
async def shared_emulator(anyio_backend: str) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator() as emulator:
        yield emulator


@pytest.fixture
async def emulator(shared_emulator: RunningEmulator) -> RunningEmulator:
    await shared_emulator.set_faults([])
    await shared_emulator.set_world(day=1)
    await shared_emulator.forget_requests()
    return shared_emulator


@pytest.fixture
async def client(emulator: RunningEmulator) -> AsyncGenerator[httpx2.AsyncClient]:
    origin = emulator.url.removesuffix(FEED_PATH)
    async with httpx2.AsyncClient(base_url=origin, trust_env=False, verify=False, timeout=120) as client:
        yield client
