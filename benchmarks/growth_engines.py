"""The engines that `benchmarks.growth` measures, each started for it, its commits durable."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from refdesk.protocols import Store
from refdesk.stores import sqlite
from tests.engines.postgres import PostgresServer

Opener = Callable[[str], AbstractAsyncContextManager[Store]]

_COUNT_BYTES = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'
"""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that runs.

    Attributes:
        open_store: Opens the store of a name, which is made where it is not there.
        count_bytes: Returns how many bytes the store of a name takes, indexes included, where that can be told.
        server: Where it is one, so that plain SQL is asked on the same.
    """

    name: str
    open_store: Opener
    count_bytes: Callable[[str], int] | None = None
    server: PostgresServer | None = None


@contextmanager
def started(name: str) -> Generator[Engine]:
    """Yield an engine; it is gone afterwards."""
    os.environ["REFDESK_TEST_ENGINES"] = name
    with _STARTERS[name]() as engine:
        yield engine


@contextmanager
def _start_sqlite() -> Generator[Engine]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)

        def open_store(name: str) -> AbstractAsyncContextManager[Store]:
            (place / name).mkdir(exist_ok=True)
            return sqlite.open_store(place / name / "refdesk.sqlite3")

        yield Engine("sqlite", open_store, lambda name: _count_in(place / name))


@contextmanager
def _start_postgres() -> Generator[Engine]:
    from tests.engines import postgres

    with postgres.running(fsync=True) as server:
        yield Engine("postgres", partial(_open_schema, server), partial(_count_on, [server]), server)


@contextmanager
def _start_citus() -> Generator[Engine]:
    from tests.engines import citus

    with citus.running(fsync=True) as cluster:
        yield Engine("citus", partial(_open_schema, cluster.coordinator), partial(_count_on, cluster.nodes))


@contextmanager
def _start_neo4j() -> Generator[Engine]:
    from refdesk.stores import neo4j as stores
    from tests.engines import neo4j

    with neo4j.running(is_brief=False) as server:
        yield Engine("neo4j", lambda name: stores.open_store(server.get_url(name.replace("_", "-"))))


_STARTERS = {"sqlite": _start_sqlite, "postgres": _start_postgres, "citus": _start_citus, "neo4j": _start_neo4j}


def _open_schema(server: PostgresServer, name: str) -> AbstractAsyncContextManager[Store]:
    from refdesk.stores.postgres import open_store

    server.create_schema(name)
    return open_store(server.get_url(name))


def _count_on(servers: Sequence[PostgresServer], name: str) -> int:
    counted = 0
    for server in servers:
        with server.connect() as connection:
            if len(servers) > 1:
                connection.execute("SET citus.override_table_visibility TO off")  # tables of the shards
            (size,) = connection.execute(_COUNT_BYTES, [name]).fetchone() or (0,)
            counted += size
    return counted


def _count_in(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
