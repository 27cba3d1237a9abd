"""Distributes the tables of a store over the nodes of a Citus cluster: by org, each org's rows on one node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from psycopg import sql

from refdesk.errors import ConfigurationError
from refdesk.model import StoreNode
from refdesk.stores.postgres.connections import Connections, Scope, Statement, Text
from refdesk.stores.postgres.transactions import Session

_NOBODY = Scope("")

_GET_CLUSTER = """
    SELECT extversion, current_setting('search_path') FROM pg_extension WHERE extname = 'citus'
"""
_GET_NODES = """
    SELECT citus_is_coordinator(), count(*) FILTER (WHERE shouldhaveshards) FROM pg_dist_node WHERE noderole = 'primary'
"""
_LIST_TABLES = """
    SELECT relname, partmethod IS NOT NULL, EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'org' AND NOT attisdropped
    )
    FROM pg_class LEFT JOIN pg_dist_partition ON logicalrelid = pg_class.oid
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
    ORDER BY relname <> 'orgs', relname = 'revisions', relname
"""
_LIST_FUNCTIONS = """
    SELECT pg_proc.oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'refdesk\\_%' AND proname <> 'refdesk_run'
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_dist_object WHERE objid = pg_proc.oid)
"""
_LIST_POLICIES = """
    SELECT polname, pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = %s::regclass
"""
_IS_IDENTITY = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::regclass AND attidentity <> '' AND atttypid = 'integer'::regtype
"""
_HAS_RUN = """
    SELECT prosrc = %s FROM pg_proc WHERE proname = 'refdesk_run' AND pronamespace = current_schema()::regnamespace
"""
_DISTRIBUTE_RUN = """
    SELECT create_distributed_function(
        'refdesk_run(text, text, text)', 'asked', colocate_with := 'documents', force_delegation := true
    )
"""
_LIST_NODES = """
    SELECT nodename || ':' || nodeport, groupid = 0,
        groupid = 0 OR citus_check_connection_to_node(nodename, nodeport),
        (
            SELECT count(*) FROM pg_dist_placement place JOIN pg_dist_shard shard ON shard.shardid = place.shardid
            WHERE logicalrelid = 'documents'::regclass AND place.groupid = node.groupid
        )
    FROM pg_dist_node node WHERE noderole = 'primary' ORDER BY groupid
"""

_PLAN_SHARDS = Text("""
    SELECT run_command_on_shards('entries', 'ALTER TABLE %s ALTER COLUMN org SET (n_distinct = 1)'),
        run_command_on_shards('entries', 'ANALYZE %s')
""")

OF_COORDINATOR = frozenset({"counters", "refdesk_migrations"})
"""Tables of the store as a whole, which only the coordinator has."""

COPIED = frozenset({"models"})
"""Tables without an org that every node has a copy of, because others are joined to them."""

SEQUENTIALLY = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A database in which Citus is installed.

    Attributes:
        version: The version of Citus.
        path: The search path by which the store's tables are found.
        nodes: How many nodes hold orgs.
    """

    version: str
    path: str
    nodes: int


async def find_cluster(connections: Connections) -> Cluster | None:
    """Return the cluster that the database coordinates; `None` if it is not part of one.

    Raises:
        ConfigurationError: It is a node that does not coordinate.
    """
    (found,) = await connections.read(_NOBODY, Statement(_GET_CLUSTER))
    if not found:
        return None
    version, path = found[0]
    (((is_coordinator, nodes),),) = await connections.read(_NOBODY, Statement(_GET_NODES))
    if not is_coordinator:
        raise ConfigurationError("REFDESK_STORE names a worker of a Citus cluster: name its coordinator.")
    return Cluster(version, path, nodes)


async def list_nodes(connections: Connections) -> list[StoreNode]:
    """Return every node, and what it holds."""
    async with connections.pool.lend() as connection:
        # Not in a transaction, which the first node that is gone would end.
        (rows,) = await connections.send(connection, Statement(_LIST_NODES))
    return [_describe(*row) for row in rows]


def _describe(name: str, is_coordinator: bool, is_there: bool, shards: int) -> StoreNode:
    held = f"{'coordinator' if is_coordinator else 'worker'}: {shards} shards of orgs"
    if is_there:
        return StoreNode(name, held)
    return StoreNode(name, held, f"The node {name} cannot be reached: calls for orgs that it holds fail meanwhile.")


async def list_missing(connections: Connections | Session) -> list[str]:
    """Return which tables of the store are not yet where they belong."""
    (tables,) = await connections.read(_NOBODY, Statement(_LIST_TABLES))
    return [name for name, is_placed, _ in tables if not is_placed and name not in OF_COORDINATOR]


async def list_tables(connections: Connections) -> list[str]:
    """Return the tables of which each node has shards or a copy."""
    (tables,) = await connections.read(_NOBODY, Statement(_LIST_TABLES))
    return [name for name, is_placed, _ in tables if is_placed]


async def is_complete(connections: Connections) -> bool:
    """Return whether everything is where it belongs, and each node can do what is asked of it."""
    (run,) = await connections.read(_NOBODY, Statement(_HAS_RUN, (_read_body(),)))
    return run == [(True,)] and not await list_missing(connections)


async def distribute(session: Session) -> None:
    """Distribute what is not distributed yet: every table that has orgs, by org and co-located, with existing rows."""
    await session.take_time(_NOBODY)
    await session.send(_NOBODY, Statement(sql.SQL(SEQUENTIALLY)))
    (tables,) = await session.send(_NOBODY, Statement(_LIST_TABLES))
    (functions,) = await session.send(_NOBODY, Statement(_LIST_FUNCTIONS))
    for (name,) in functions:
        await session.send(_NOBODY, Statement("SELECT create_distributed_function(%s)", (name,)))
    for name, is_placed, has_org in tables:
        if is_placed or name in OF_COORDINATOR:
            continue
        if name in COPIED:
            await _copy(session, name)
        elif has_org:
            await _distribute(session, name)
        else:
            raise ConfigurationError(f"The table {name} has no org to be distributed by: take it out of the schema.")
    await session.run_script(_read_run())
    await session.send(_NOBODY, Statement(_DISTRIBUTE_RUN))


async def plan_shards(connections: Connections) -> None:
    """Have each shard plan searches for orgs of any size, as the schema has it for a table of one server."""
    async with connections.pool.lend() as connection:
        # By connections of its own, which see shards only once they are committed. A node that is gone is left out.
        await connections.send_alone(connection, Statement(_PLAN_SHARDS))


async def _copy(session: Session, name: str) -> None:
    table = sql.Identifier(name)
    (columns,) = await session.send(_NOBODY, Statement(_IS_IDENTITY, (name,)))
    for (column,) in columns:
        # Numbers that a cluster assigns are of this width.
        text = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE bigint").format(table, sql.Identifier(column))
        await session.send(_NOBODY, Statement(text))
    await session.send(_NOBODY, Statement("SELECT create_reference_table(%s)", (name,)))


async def _distribute(session: Session, name: str) -> None:
    """Distribute a table.

    Its policies, which would hide rows, are removed meanwhile and then put back without sub-selects, which no node
    takes.
    """
    table = sql.Identifier(name)
    (policies,) = await session.send(_NOBODY, Statement(_LIST_POLICIES, (name,)))
    for policy, _ in policies:
        await session.send(_NOBODY, Statement(sql.SQL("DROP POLICY {} ON {}").format(sql.Identifier(policy), table)))
    if policies:
        await session.send(_NOBODY, Statement(sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(table)))
    # Only the audit log has a trigger: it makes a statement that changes the log fail on every node.
    await session.send(_NOBODY, Statement(sql.SQL("SET LOCAL citus.enable_unsafe_triggers TO 'on'")))
    others = "none" if name == "orgs" else "orgs"
    await session.send(
        _NOBODY, Statement("SELECT create_distributed_table(%s, 'org', colocate_with := %s)", (name, others))
    )
    for how in ("ENABLE", "FORCE") if policies else ():
        text = sql.SQL("ALTER TABLE {} {} ROW LEVEL SECURITY").format(table, sql.SQL(how))
        await session.send(_NOBODY, Statement(text))
    for policy, condition in policies:
        named = Text(sql.SQL("CREATE POLICY {} ON {}").format(sql.Identifier(policy), table).as_string(None))
        text = Text("{} USING ({})").format(named, Text(_flatten(condition)))
        await session.send(_NOBODY, Statement(text))


def _flatten(condition: str) -> str:
    """Return the condition of a policy without sub-selects."""
    return re.sub(r"\( ?SELECT (current_setting\([^()]*\)) AS current_setting\)", r"\1", condition)


def _read_run() -> str:
    return resources.files("refdesk.stores").joinpath("schema", "citus", "run.sql").read_text("utf-8")


def _read_body() -> str:
    return _read_run().split("$$")[1]
