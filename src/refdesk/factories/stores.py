"""Opens the store and the queue that the settings select. An engine is imported when it is opened."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from refdesk import errors

if TYPE_CHECKING:
    from pydantic import SecretStr

    from refdesk.core.doorbell import Doorbell
    from refdesk.protocols import JobQueue, Scratchpad, Store
    from refdesk.settings import Settings

OpenStore: TypeAlias = "Callable[[], AbstractAsyncContextManager[Store]]"

_POSTGRES = frozenset({"postgresql", "postgres"})
_NEO4J = frozenset({"neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc"})


@dataclass(frozen=True, slots=True)
class Coordination:
    """What processes that share a store use to communicate."""

    queue: JobQueue
    scratchpad: Scratchpad | None = None


def choose_store(url: str, variable: str = "REFDESK_STORE", read: Sequence[str] = ()) -> OpenStore:
    """Return how to open the store at a URL.

    Args:
        url: Where it is.
        variable: The setting or option that it came from, for messages.
        read: Where its replicas are.

    Raises:
        ConfigurationError: The URL names an unknown engine, or no file.
        MissingDependencyError: The engine's driver is not installed.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise errors.ConfigurationError(f"{variable} is no URL; write sqlite:///path/to/file or memory://.")
    if read and scheme not in _POSTGRES:
        raise errors.ConfigurationError(
            "REFDESK_STORE_READ names replicas, which only a store on PostgreSQL has: leave it out."
        )
    if scheme == "memory":
        return _open_memory
    if scheme == "sqlite":
        path = find_file(url)
        if not rest.startswith("/") or path is None:
            raise errors.ConfigurationError(f"{variable} names no file; write sqlite:///path/to/file.")
        return partial(_open_sqlite, path)
    if scheme in _POSTGRES:
        _require("psycopg", variable, "PostgreSQL", "postgres")
        return partial(_open_postgres, url, read)
    if scheme in _NEO4J:
        _require("neo4j", variable, "Neo4j", "neo4j")
        return partial(_open_neo4j, url)
    raise errors.ConfigurationError(
        f"{variable} names {scheme}, which is not served; use sqlite, postgresql, neo4j or memory."
    )


def choose_followed(url: str, variable: str = "REFDESK_STORE", read: Sequence[str] = ()) -> OpenStore:
    """Return how to open the store at a URL, or the one that it was moved to, and to follow it when it is moved.

    Arguments and errors as in `choose_store`.
    """
    open_store = choose_store(url, variable, read)

    def open_followed() -> AbstractAsyncContextManager[Store]:
        from refdesk.core.keeping.following import follow

        return follow(open_store(), lambda other: choose_store(other, f"What {variable} was moved to")())

    return open_followed


def find_file(url: str) -> Path | None:
    """Return the file that a URL names, or `None` if it names another engine, or no file."""
    scheme, _, rest = url.partition("://")
    return Path(unquote(rest.removeprefix("/"))).expanduser() if scheme == "sqlite" and rest not in ("", "/") else None


def require_there(url: str, variable: str) -> None:
    """Check that there is a store at a URL to read from; for one on a server, that is found out when it is opened.

    Raises:
        ConfigurationError: The URL names a file that does not exist. It is not created.
    """
    file = find_file(url)
    if file is not None and not file.is_file():
        raise errors.ConfigurationError(f"{variable} names a file that does not exist: check the path.")


def _require(module: str, variable: str, engine: str, extra: str) -> None:
    if find_spec(module) is None:
        raise errors.MissingDependencyError(
            f"{variable} names {engine}, whose driver is not installed: pip install 'refdesk[{extra}]'."
        )


@asynccontextmanager
async def _open_memory() -> AsyncGenerator[Store]:
    from refdesk.stores.memory import MemoryStore

    yield MemoryStore()


@asynccontextmanager
async def _open_sqlite(path: Path) -> AsyncGenerator[Store]:
    from refdesk.stores.sqlite import open_store

    async with open_store(path) as store:
        yield store


@asynccontextmanager
async def _open_postgres(url: str, read: Sequence[str]) -> AsyncGenerator[Store]:
    from refdesk.stores.postgres import open_store

    async with open_store(url, read=read) as store:
        yield store


@asynccontextmanager
async def _open_neo4j(url: str) -> AsyncGenerator[Store]:
    from refdesk.stores.neo4j import open_store

    async with open_store(url) as store:
        yield store


def check_addresses(redis: SecretStr | None, stores: Sequence[str]) -> None:
    """Check that the URLs of Redis and of stores on Neo4j are well-formed.

    Raises:
        ConfigurationError: One is not.
    """
    if redis is not None:
        from refdesk.queues.bullmq.connection import CALL_SECONDS, connect

        connect(redis.get_secret_value(), CALL_SECONDS)
    if any(url.partition("://")[0] in _NEO4J for url in stores):
        from refdesk.stores.neo4j.address import parse_address

        _ = [parse_address(url) for url in stores if url.partition("://")[0] in _NEO4J]


async def list_above_policies(urls: Mapping[str, Sequence[str]]) -> list[str]:
    """Return those of the settings whose role is not bound by the policies of its database, so that only refdesk itself
    keeps orgs apart there; errors as in `refdesk.stores.postgres.open_store`.

    Args:
        urls: Where stores and their replicas are, by the settings that name them; those not on PostgreSQL are ignored.
    """
    asked = [(name, url) for name, some in urls.items() for url in some if url.partition("://")[0] in _POSTGRES]
    if not asked:
        return []
    from refdesk.stores.postgres import stands_above_policies

    return [name for name, url in asked if await stands_above_policies(url)]


def check_coordination(settings: Settings) -> None:
    """Check that what the settings select for coordination can be opened.

    Raises:
        MissingDependencyError: Its driver is not installed.
    """
    if settings.redis is not None:
        _require("bullmq", "REFDESK_REDIS", "Redis", "redis")


@asynccontextmanager
async def open_coordination(
    settings: Settings, doorbell: Doorbell, store: Store, *, is_kept: bool
) -> AsyncGenerator[Coordination]:
    """Yield the queue and scratchpad in Redis if it is configured, even while it is down; else a queue in this process.

    Args:
        settings: Where Redis is.
        doorbell: Rung when this process is to look for work by itself.
        store: What the processes share that may use the same database of Redis.
        is_kept: Whether this process claims that database for them.

    Raises:
        ConfigurationError: It is not a Redis URL.
    """
    if settings.redis is None:
        from refdesk.queues.local import LocalQueue

        yield Coordination(LocalQueue(doorbell))
        return
    from refdesk.core.keeping.store_id import get_store_id, read_store_id
    from refdesk.queues.bullmq import open_shared

    desk = await (get_store_id(store) if is_kept and store.obstacle is None else read_store_id(store))
    async with open_shared(settings.redis.get_secret_value(), doorbell.ring, desk=desk) as shared:
        yield Coordination(shared.queue, shared.scratchpad)
