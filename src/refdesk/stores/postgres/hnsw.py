"""The HNSW index of each model, created with the model's first vector or built in the background.

It only makes searches fast: without it a search compares all vectors and finds the same. So it may be missing for a
while, and is built concurrently (`CREATE INDEX CONCURRENTLY`), while everybody goes on writing. An interrupted build
leaves an invalid index; the next build drops it and starts anew.

Whoever builds, makes or drops graphs keeps others from doing so by an advisory lock. A build cannot be part of a
transaction, and a session's lock would stay behind in a pooler: so the lock is held by a transaction that does nothing
else, on a connection of its own. Between its statements that has no snapshot, for which a concurrent build would wait.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from psycopg import sql

from refdesk.stores.postgres.connections import ALL_ORGS, Connections, Scope, Statement
from refdesk.stores.postgres.pool import Connection, Row
from refdesk.stores.postgres.transactions import LONG_SECONDS, Session

MOST_INDEXED_DIMENSIONS = 4000
"""Most dimensions that an HNSW index of half-precision vectors takes; wider vectors are compared one by one."""

NODE_BYTES = 800
"""Memory that a node takes besides its vector while the graph is built: 720 were measured with pgvector 0.8.6."""

COMPONENT_BYTES = 2

MOST_BUILDING_BYTES = 2**30
"""Most memory that a build takes (680,000 passages of 384 dimensions fit), unless the server itself allows more."""

BUILT_PER_SECOND = 50
"""Vectors per second that a build gets done in any case, even if the graph does not fit and vectors are the widest."""

MOST_BYTES_AT_ONCE = 2**26
"""Size of all existing vectors up to which the graph of a new model is made by whoever writes its first vector. The
server reads all of them for it, which takes a twentieth of a second, and nobody else can write one meanwhile."""

BUSY = "A graph of vectors is being built. Repeat this when that is done, in some minutes."

# For statements about indexes and tables, which read no org's rows.
_NOBODY = Scope("")
_PREFIX = "vectors_of_model_"
# Another store may have a model of the same number in a later schema of the search path.
_GET_BUILT = """
    SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
    WHERE indrelid = 'vectors'::regclass AND amname = 'hnsw' ORDER BY relname
"""
_GET_MODELS = """
    WITH counts AS (SELECT model, sum(passages)::bigint AS passages FROM embeddings GROUP BY model)
    SELECT key, dimensions, coalesce(passages, 0) FROM models LEFT JOIN counts ON model = key ORDER BY key
"""
# The process that was building may be gone, while the server goes on for some seconds before it notices that.
_HOLD = """
    SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended('refdesk graphs ' || current_schema(), 0))
        THEN NOT EXISTS (
            SELECT FROM pg_stat_progress_create_index
            WHERE relid = to_regclass('vectors') AND command = 'CREATE INDEX CONCURRENTLY'
        ) ELSE false
    END
"""
_GET_SIZE = Statement("SELECT pg_relation_size('vectors')")
_BEGIN_HOLDING = (
    Statement("BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY"),
    Statement("SELECT set_config('idle_in_transaction_session_timeout', '0', true)"),
)
_END_HOLDING = Statement("ROLLBACK")
# With 16 connections, the default, fewer nodes fit on a page, and no more of the nearest were found. A node with one
# bit for each component takes a third of the room, but a search takes as long: it found .87 of the ten nearest of
# 10,000 where these nodes find .97, although twice as many were compared exactly.
_MAKE = "CREATE INDEX {} {} ON vectors USING hnsw ((vector::halfvec({})) halfvec_ip_ops) WITH (m = 12) WHERE model = {}"
_DROP = "DROP INDEX {} IF EXISTS {}"
_CONCURRENTLY, _AT_ONCE = sql.SQL("CONCURRENTLY"), sql.SQL("")
# These settings are the connection's, which nobody else has unless a pooler is in between. Workers would share the
# graph in /dev/shm, of which a container has 64 MB by default. A build whose client is gone would go on; only on Linux
# can a server notice that.
_PREPARE = """
    SELECT set_config('maintenance_work_mem', greatest(%(kilobytes)s, setting::bigint) || 'kB', false),
        set_config('max_parallel_maintenance_workers', '0', false), set_config('lock_timeout', '0', false),
        set_config('statement_timeout', %(timeout)s, false), CASE WHEN strpos(version(), 'linux') > 0
            THEN set_config('client_connection_check_interval', '5s', false) END
    FROM pg_settings WHERE name = 'maintenance_work_mem' AND pg_backend_pid() = %(process)s
"""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be done until every model has its graph, and there are no others.

    Attributes:
        missing: (key, dimensions, passages) of models.
        left: Names of graphs that are not valid, or of models that are gone.
    """

    missing: list[Row]
    left: list[str]


async def hold(session: Session) -> bool:
    """Keep others from building, making and dropping graphs until the transaction ends; `False` if one is doing so."""
    ((is_held,),) = (await session.send(_NOBODY, Statement(_HOLD)))[0]
    return is_held


async def make(session: Session, key: int, dimensions: int) -> bool:
    """Make the graph of a model without vectors, unless it is too wide; return `False` if it must be built later."""
    if dimensions > MOST_INDEXED_DIMENSIONS:
        return True
    if not await hold(session):
        return False
    ((size,),) = (await session.send(_NOBODY, _GET_SIZE))[0]
    if size > MOST_BYTES_AT_ONCE:
        return False
    await session.send(_NOBODY, _make(key, dimensions, _AT_ONCE))
    return True


async def drop(session: Session, key: int | None = None) -> bool:
    """Drop the graph of a model, or of all; `False` if one is being built, as nobody could write until that ends."""
    if not await hold(session):
        return False
    (built,) = await session.send(_NOBODY, Statement(_GET_BUILT))
    # A Citus cluster drops only one at a time.
    for name in (name for name, _ in built if key is None or name == _name(key)):
        await session.send(_NOBODY, _drop(name, _AT_ONCE))
    return True


async def is_complete(connections: Connections) -> bool:
    """Return whether each model has its graph, and there are no others."""
    work = await _find_work(connections)
    return not work.missing and not work.left


async def build(connections: Connections) -> bool:
    """Build the graphs that are missing and drop what is left of others, while everybody goes on writing.

    Returns:
        Whether all is done; `False` while another process is doing it.

    Raises:
        StoreError: A build failed; what was built before stays.
    """
    async with _holding(connections) as is_held:
        if not is_held:
            return False
        work = await _find_work(connections)
        async with connections.pool.connect() as connection:
            for name in work.left:
                await connections.send(connection, _drop(name, _CONCURRENTLY), seconds=LONG_SECONDS)
            for row in work.missing:
                await _build(connections, connection, *row)
    return await is_complete(connections)


def get_building_bytes(passages: int, dimensions: int) -> int:
    """Return in how much memory a graph is built; if it does not fit, the build takes several times as long."""
    return min(MOST_BUILDING_BYTES, passages * (NODE_BYTES + COMPONENT_BYTES * dimensions))


@asynccontextmanager
async def _holding(connections: Connections) -> AsyncGenerator[bool]:
    async with connections.pool.connect() as connection:
        (*_, ((is_held,),)) = await connections.send(connection, *_BEGIN_HOLDING, Statement(_HOLD))
        yield is_held
        # So that the next may begin at once: a server notices only later that a connection was closed.
        await connections.send(connection, _END_HOLDING)


async def _build(connections: Connections, connection: Connection, key: int, dimensions: int, passages: int) -> None:
    seconds = max(LONG_SECONDS, passages / BUILT_PER_SECOND)
    settings: dict[str, object] = {
        "kilobytes": get_building_bytes(passages, dimensions) // 1024,
        "timeout": f"{int(seconds)}s",
        "process": connection.info.backend_pid,
    }
    await connections.send(connection, Statement(_PREPARE, settings))
    await connections.send(connection, _make(key, dimensions, _CONCURRENTLY), seconds=seconds)


async def _find_work(connections: Connections) -> _Work:
    built, models = await connections.read(ALL_ORGS, Statement(_GET_BUILT), Statement(_GET_MODELS))
    indexed = {_name(row[0]): row for row in models if row[1] <= MOST_INDEXED_DIMENSIONS}
    valid = {name for name, is_valid in built if is_valid}
    left = [name for name, _ in built if name.startswith(_PREFIX) and (name not in valid or name not in indexed)]
    return _Work([row for name, row in indexed.items() if name not in valid], left)


def _make(key: int, dimensions: int, how: sql.SQL) -> Statement:
    # A type's width and an index's condition cannot be parameters; both are whole numbers.
    parts = (how, sql.Identifier(_name(key)), sql.Literal(dimensions), sql.Literal(key))
    return Statement(sql.SQL(_MAKE).format(*parts))


def _drop(name: str, how: sql.SQL) -> Statement:
    return Statement(sql.SQL(_DROP).format(how, sql.Identifier(name)))


def _name(key: int) -> str:
    return f"{_PREFIX}{key}"
