"""The emulator in three kinds of org, each started once and put back before each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from sample_world.salesforce.process import RunningEmulator, running_emulator
from tests.toolsets.salesforce_knowledge.samples import open_source, write_articles


@pytest.fixture(scope="session")
def articles_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_articles(tmp_path_factory.mktemp("salesforce"))


@pytest.fixture(scope="session")
async def shared_lightning(anyio_backend: str, articles_file: Path) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator("lightning", articles=articles_file) as emulator:
        yield emulator


@pytest.fixture(scope="session")
async def shared_classic(anyio_backend: str, articles_file: Path) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator("classic", articles=articles_file) as emulator:
        yield emulator


@pytest.fixture(scope="session")
async def shared_disabled(anyio_backend: str, articles_file: Path) -> AsyncGenerator[RunningEmulator]:
    assert anyio_backend == "asyncio"
    async with running_emulator("disabled", articles=articles_file) as emulator:
        yield emulator


async def put_back(emulator: RunningEmulator) -> RunningEmulator:
    await emulator.reset()
    await emulator.set_faults([])
    await emulator.forget_requests()
    return emulator


@pytest.fixture
async def lightning(shared_lightning: RunningEmulator) -> RunningEmulator:
    return await put_back(shared_lightning)


@pytest.fixture
async def classic(shared_classic: RunningEmulator) -> RunningEmulator:
    return await put_back(shared_classic)


@pytest.fixture
async def disabled(shared_disabled: RunningEmulator) -> RunningEmulator:
    return await put_back(shared_disabled)


@pytest.fixture
async def source(lightning: RunningEmulator) -> AsyncGenerator[SalesforceSource]:
    """A Lightning org's articles."""
    async with open_source(lightning) as opened:
        yield opened
