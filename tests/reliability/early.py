"""A server that answers before it commits, as a planted fault."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import uvicorn
from anyio.abc import TaskGroup

from refdesk.app import Desk
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import SystemClock
from refdesk.core.keys import KeyRing
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.search.semantics import Semantics
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.factories.bases import Base
from refdesk.factories.toolsets import load_toolsets
from refdesk.protocols import Store, Transaction
from refdesk.server import http, logs
from refdesk.server.principals import local_principal
from refdesk.settings import load_settings
from refdesk.stores.sqlite import open_store
from tests.reliability.delegates import DelegatingStore

LATE_SECONDS = 0.03


class EarlyStore(DelegatingStore):
    """Lets go of a transaction's caller first and commits a moment later."""

    def __init__(self, inner: Store, group: TaskGroup) -> None:
        super().__init__(inner)
        self._group = group

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._open_early()

    @asynccontextmanager
    async def _open_early(self) -> AsyncGenerator[Transaction]:
        begun, left, box, has_failed = anyio.Event(), anyio.Event(), list[Transaction](), list[bool]()

        async def hold() -> None:
            with anyio.CancelScope() as scope:
                async with self.inner.transaction() as transaction:
                    box.append(transaction)
                    begun.set()
                    await left.wait()
                    if has_failed:
                        scope.cancel()
                    await anyio.sleep(LATE_SECONDS)

        self._group.start_soon(hold)
        await begun.wait()
        try:
            yield box[0]
        except BaseException:
            has_failed.append(True)
            raise
        finally:
            left.set()


async def serve() -> None:
    settings = load_settings()
    path = settings.home / "refdesk.sqlite3"

    @asynccontextmanager
    async def open_base() -> AsyncGenerator[Base]:
        async with open_store(path) as real, anyio.create_task_group() as group:
            store, clock = EarlyStore(real, group), SystemClock()
            semantics = Semantics(store, HashingEmbedder())
            base = KnowledgeBase(store, semantics, clock)
            yield Base(base, semantics, Indexer(store, semantics, clock), KeyRing(store, clock, {}))

    desk = Desk(settings, load_toolsets(["knowledge"], settings), open_base)
    app = http.build_app(desk, local_principal(settings, desk.toolsets, "http"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        logs.configure("info")
        logging.getLogger(__name__).info("listening", extra={"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        async with anyio.create_task_group() as group:
            group.start_soon(desk.run)
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
            await server.serve(sockets=[listener])
