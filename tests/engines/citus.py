"""Three real PostgreSQL servers with Citus: a coordinator and two workers, one cluster for each process of tests.

Citus is in no registry of packages: what is unpacked over the wheel's PostgreSQL lies in `engines/citus` beside the
folder of real records.
"""

from __future__ import annotations

import atexit
import os
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from psycopg import sql

from tests.engines.postgres import (
    DATABASE,
    ROLE,
    Installation,
    PostgresServer,
    copy_package,
    fetch,
    get_schema,
    make_folder,
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

# A node that is a copy would be taken for the one that it is a copy of.
_TELL_APART = """
    UPDATE pg_dist_node_metadata SET metadata = metadata || jsonb_build_object('server_id', gen_random_uuid())
"""
_LIST_OWN = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)
"""
# Of shards: a few rows are gone sooner than files. The role neither fires triggers nor looks for references.
_EMPTY = """
    DO $$
    DECLARE shard text;
    BEGIN
        SET LOCAL session_replication_role TO 'replica';
        SET LOCAL citus.enable_manual_changes_to_shards TO 'on';
        FOR shard IN
            SELECT shard_name(logicalrelid, pg_dist_shard.shardid)
            FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_class ON pg_class.oid = logicalrelid
            WHERE relnamespace = current_schema()::regnamespace AND relname <> 'models'
                AND groupid = (SELECT groupid FROM pg_dist_local_group)
        LOOP
            EXECUTE 'DELETE FROM ' || shard;
        END LOOP;
    END
    $$
"""


class CitusCluster:
    """A coordinator and its workers."""

    def __init__(self, *, fsync: bool = False) -> None:
        installation = get_installation()
        self.nodes = [PostgresServer(fsync=fsync, installation=installation) for _ in range(1 + WORKERS)]

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
            with node.connect() as connection:
                connection.execute(_TELL_APART)
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

    def list_rows(self, schema: str) -> Iterator[tuple[str, str]]:
        """Yield each row of a store as text, behind the name of its shard, from the node that has it."""
        for node in self.nodes:
            with node.connect(schema) as connection:
                connection.execute("SET citus.override_table_visibility TO off")
                for (name,) in fetch(connection, _LIST_OWN, [schema]):
                    rows = connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(str(name))))
                    yield from ((str(name), str(row)) for (row,) in rows)

    def empty(self, schema: str) -> None:
        """Remove whatever a store holds, and leave its tables: each node does that for itself."""
        for node in self.nodes:
            with node.connect(schema) as connection:
                connection.execute(_EMPTY)
        with self.coordinator.connect(schema) as connection:
            graphs = fetch(connection, "SELECT 'vectors_of_model_' || key FROM models")
            for (name,) in graphs:
                connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(str(name))))
            if graphs:
                connection.execute("DELETE FROM models")

    def remove(self) -> None:
        """Stop every node and remove their folders."""
        for node in self.nodes:
            node.remove()


def find_build() -> Path:
    """Return what is unpacked over PostgreSQL; skip the test where Citus is not asked for, or where there is none.

    Where the folder is there and nothing in it, it fails.
    """
    if "citus" not in os.environ.get("REFDESK_TEST_ENGINES", "").split(","):
        pytest.skip("three servers start for it: REFDESK_TEST_ENGINES=citus asks for them")
    data = Path(os.environ.get("REFDESK_TEST_DATA") or REPOSITORY.parent / "shared" / "data")
    builds = sorted((data.parent / "engines" / "citus").glob("citus-*-linux-x86_64.tar.xz"))
    if builds:
        return builds[-1]
    reason = "Citus is not there: put its build into `engines/citus` beside the folder of real records"
    if (data.parent / "engines" / "citus").is_dir():
        pytest.fail(reason)
    pytest.skip(reason)


@cache
def get_installation() -> Installation:
    """Return the wheel's PostgreSQL with Citus in it."""
    build, package = find_build(), copy_package(make_folder())
    command = ["tar", "xJf", str(build), "-C", str(package / "pginstall")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return Installation(package, settings=SETTINGS, extensions=("vector", "citus"))


@contextmanager
def running(*, fsync: bool = False) -> Generator[CitusCluster]:
    """Yield a cluster of its own; remove it on leaving."""
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


@contextmanager
def lent() -> Generator[CitusCluster]:
    """Yield the shared cluster to a test that kills nodes of it; on leaving, all of them run."""
    cluster = get_cluster()
    for node in cluster.nodes:
        with node.connect() as connection:
            # What earlier tests wrote is not recovered again after each kill.
            connection.execute("CHECKPOINT")
    before = [node.pid for node in cluster.nodes]
    try:
        yield cluster
    finally:
        for node, pid in zip(cluster.nodes, before, strict=True):
            if node.pid != pid:
                # A server ends with the thread that started it, which need not be this one.
                node.stop()
                node.start()


def get_store_url(folder: Path, cluster: CitusCluster | None = None) -> str:
    """Return the URL of the store that stands for a folder: the same folder is the same store."""
    coordinator = (cluster or get_cluster()).coordinator
    schema = get_schema(folder)
    coordinator.create_schema(schema)
    return coordinator.get_url(schema)


def get_emptied_schema(folder: Path) -> str:
    """Return the schema of the store that stands for a folder, for as long as the test runs that asks first.

    To make a store on a cluster takes seconds; so one that an earlier test of this process is done with is emptied.
    """
    cluster, test = get_cluster(), os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    for schema, (holder, place) in _lent.items():
        if (holder, place) == (test, folder):
            return schema
    schema = next((schema for schema, (holder, _) in _lent.items() if holder != test), None)
    if schema is None:
        schema = get_schema(folder)
        cluster.coordinator.create_schema(schema)
    else:
        cluster.empty(schema)
    _lent[schema] = (test, folder)
    return schema


def get_emptied_store_url(folder: Path) -> str:
    """Return the URL of that store."""
    return get_cluster().coordinator.get_url(get_emptied_schema(folder))


_lent: dict[str, tuple[str, Path]] = {}
"""The test and the folder that each store was made or emptied for last, by schema."""


__all__ = [
    "DATABASE",
    "ROLE",
    "CitusCluster",
    "find_build",
    "get_cluster",
    "get_emptied_schema",
    "get_emptied_store_url",
    "get_store_url",
    "lent",
    "running",
]
