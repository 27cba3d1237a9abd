"""One suite, every engine: a test that takes `store` runs once on each, and none may be left out for one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from refdesk.core.clock import FixedClock
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.stores.sqlite import open_store
from tests.stores.samples import NOW


@asynccontextmanager
async def open_memory(folder: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    yield MemoryStore(clock)


def open_sqlite(folder: Path, clock: FixedClock) -> AbstractAsyncContextManager[Store]:
    return open_store(folder / "store.sqlite3", clock=clock)


ENGINES: dict[str, Callable[[Path, FixedClock], AbstractAsyncContextManager[Store]]] = {
    "memory": open_memory,
    "sqlite": open_sqlite,
}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    async with ENGINES[request.param](tmp_path, clock) as opened:
        yield opened


@pytest.fixture
async def sqlite(tmp_path: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path, clock) as opened:
        yield opened
