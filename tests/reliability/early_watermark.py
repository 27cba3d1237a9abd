"""A sync that notes how far it has come before it writes what it has read, as a planted fault."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from refdesk.core.background import sync_log
from refdesk.core.background.sync_log import SyncStatus
from refdesk.core.clock import SystemClock
from refdesk.factories.toolsets import choose_syncer
from refdesk.protocols import Transaction
from refdesk.settings import load_settings
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from tests.reliability.delegates import DelegatingStore


class EarlyStore(DelegatingStore):
    """Holds a sync for done once it has begun."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open_noted()

    @asynccontextmanager
    async def _open_noted(self) -> AsyncGenerator[Transaction]:
        now = SystemClock().now()
        async with self.inner.transaction() as transaction:
            await sync_log.write_status(transaction, TOOLSET_NAME, SyncStatus(now, now, now))
        async with self.inner.transaction() as transaction:
            yield transaction


async def sync() -> None:
    settings = load_settings()
    async with open_store(settings.home / "refdesk.sqlite3") as store:
        await choose_syncer(settings, TOOLSET_NAME, EarlyStore(store)).sync()
