"""The embedded engine without its threads, for walks of one step at a time: a hop costs more than most statements."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from refdesk.protocols import Clock, Store
from refdesk.stores.sqlite.connections import Readers, Writer, configure, enter_wal, open_file
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.failures import Damage
from refdesk.stores.sqlite.freezing import Sizes
from refdesk.stores.sqlite.lineage import Seal
from refdesk.stores.sqlite.presence import Presence
from refdesk.stores.sqlite.store import PATIENCE_SECONDS, SqliteStore

P = ParamSpec("P")
R = TypeVar("R")


class InlineReaders(Readers):
    async def run(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call(lambda connection: function(connection, *args, **kwargs))


class InlineWriter(Writer):
    async def call(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call_here(function, *args, **kwargs)


@asynccontextmanager
async def open_inline(path: Path, clock: Clock, synchronous: str = "FULL") -> AsyncGenerator[Store]:
    """Yield the store in a file that has the schema already; anything but `FULL` is a planted fault."""
    presence, damage = Presence(path), Damage()
    writer = InlineWriter(open_file(path), Seal(path), presence, damage, PATIENCE_SECONDS)
    store = SqliteStore(path, InlineReaders(path, presence, damage), writer, damage, clock, PATIENCE_SECONDS, Sizes())
    try:
        assert await writer.call(enter_wal)
        await writer.call(configure)
        await writer.call(Connection.set_pragma, "synchronous", synchronous)
        await writer.call(Connection.set_checkpoint_on_close, is_on=True)
        presence.note()
        yield store
    finally:
        store.close()
