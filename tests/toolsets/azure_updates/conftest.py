"""The emulator for a whole module, put back before each test, and a desk that has synced from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from refdesk.core.background.syncing import Syncer
from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader
from sample_world.azure_updates.process import RunningEmulator, running_emulator
from tests.toolsets.azure_updates.samples import Desk, WorldSource

NOW = datetime(2026, 11, 7, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
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
def desk(emulator: RunningEmulator) -> Desk:
    """A desk whose source is the emulator; nothing is synced yet."""
    clock = FixedClock(NOW)
    store = MemoryStore(clock)
    source = AzureUpdatesSource(make_reader(emulator.url), page_size=100)
    syncer = Syncer(store, source, COLLECTION, to_document, clock)
    return Desk(KnowledgeBase(store, None, clock), syncer, clock)


@pytest.fixture(scope="session")
async def library(anyio_backend: str) -> Desk:
    """The sample world's first day as after a sync at `NOW`, for tests that only read."""
    assert anyio_backend == "asyncio"
    clock = FixedClock(NOW)
    store = MemoryStore(clock)
    syncer = Syncer(store, WorldSource(), COLLECTION, to_document, clock)
    await syncer.sync()
    return Desk(KnowledgeBase(store, None, clock), syncer, clock)


@pytest.fixture
async def synced(desk: Desk) -> Desk:
    """The same desk after its first sync."""
    await desk.syncer.sync()
    return desk
