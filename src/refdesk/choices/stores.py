"""Which store the settings mean. An engine is imported when its store is opened."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from refdesk import errors

if TYPE_CHECKING:
    from refdesk.protocols import Store
    from refdesk.settings import Settings

EXPECTED_ENGINES = ("postgresql", "neo4j")

OpenStore: TypeAlias = "Callable[[], AbstractAsyncContextManager[Store]]"


def choose_store(settings: Settings) -> OpenStore:
    """Return how to open the store that the settings name.

    Raises:
        ConfigurationError: The URL names an engine that there is not, or no file.
    """
    scheme, separator, rest = settings.store_url.partition("://")
    if not separator:
        raise errors.ConfigurationError("REFDESK_STORE is no URL; write sqlite:///path/to/file or memory://.")
    if scheme == "memory":
        return _open_memory
    if scheme == "sqlite":
        path = Path(unquote(rest.removeprefix("/"))) if rest != "/" else None
        if path is None or not rest.startswith("/"):
            raise errors.ConfigurationError("REFDESK_STORE names no file; write sqlite:///path/to/file.")
        return lambda: _open_sqlite(path)
    later = " yet" if scheme in EXPECTED_ENGINES else ""
    raise errors.ConfigurationError(f"REFDESK_STORE names {scheme}, which is not served{later}; use sqlite or memory.")


@asynccontextmanager
async def _open_memory() -> AsyncGenerator[Store]:
    from refdesk.stores.memory import MemoryStore

    yield MemoryStore()


@asynccontextmanager
async def _open_sqlite(path: Path) -> AsyncGenerator[Store]:
    from refdesk.stores.sqlite import open_store

    async with open_store(path) as store:
        yield store
