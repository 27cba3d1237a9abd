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


def open_neo4j(folder: Path, clock: FixedClock) -> AbstractAsyncContextManager[Store]:
    from refdesk.stores.neo4j import open_store
    from tests.engines.neo4j import get_store_url

    return open_store(get_store_url(folder), clock=clock)


def open_postgres(folder: Path, clock: FixedClock) -> AbstractAsyncContextManager[Store]:
    from refdesk.stores.postgres import open_store
    from tests.engines.postgres import get_store_url

    return open_store(get_store_url(folder), clock=clock)


def open_citus(folder: Path, clock: FixedClock) -> AbstractAsyncContextManager[Store]:
    from refdesk.stores.postgres import open_store
    from tests.engines.citus import get_emptied_store_url

    return open_store(get_emptied_store_url(folder), clock=clock)


EMBEDDED = ("memory", "sqlite")
ENGINES: dict[str, Callable[[Path, FixedClock], AbstractAsyncContextManager[Store]]] = {
    "memory": open_memory,
    "sqlite": open_sqlite,
    "neo4j": open_neo4j,
    "postgres": open_postgres,
    "citus": open_citus,
}
"""How to open a store. The same folder is the same store: what one wrote there, another one sees."""

ENGINE_NAMES = [pytest.param(name, marks=() if name in EMBEDDED else pytest.mark.engines) for name in ENGINES]
"""Every engine as a parameter; those with a server of their own are tested by `make test-engines`."""


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture(params=ENGINE_NAMES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    async with ENGINES[request.param](tmp_path, clock) as opened:
        yield opened


@pytest.fixture
async def sqlite(tmp_path: Path, clock: FixedClock) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path, clock) as opened:
        yield opened
