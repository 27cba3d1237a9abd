"""The HNSW index of each model, created with the model's first vector or after a bulk load.

It makes searches fast and nothing else: without it a search compares all vectors and finds the same. So it may be
missing for a while, and opening the store builds it.
"""

from __future__ import annotations

from psycopg import sql

from refdesk.stores.postgres.connections import ALL_ORGS, Connections, Scope, Statement
from refdesk.stores.postgres.pool import Row
from refdesk.stores.postgres.transactions import LONG_SECONDS, Session

MOST_INDEXED_DIMENSIONS = 4000
"""What an HNSW index of half-precision vectors takes; wider ones are compared one by one."""

NODE_BYTES = 800
"""What a node takes beside its vector while the graph is built: 720 were measured with pgvector 0.8.6."""

COMPONENT_BYTES = 2

MOST_BUILDING_BYTES = 2**30
"""Memory that a build takes at most (of 384 dimensions 680,000 passages fit), unless the server itself allows more."""

BUILT_PER_SECOND = 50
"""Vectors that a build gets done in any case: so many, where the graph did not fit and the vectors are the widest."""

# Indexes and tables carry no org's rows.
_NOBODY = Scope("")
# Another store may have a model of the same number in a schema behind ours on the search path.
_GET_BUILT = """
    SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
    WHERE indrelid = 'vectors'::regclass AND amname = 'hnsw' ORDER BY relname
"""
_GET_MODELS = """
    WITH counts AS (SELECT model, sum(passages)::bigint AS passages FROM embeddings GROUP BY model)
    SELECT key, dimensions, coalesce(passages, 0) FROM models LEFT JOIN counts ON model = key ORDER BY key
"""
# With 16 connections, the default, fewer nodes fit on a page, and no more of the nearest were found.
_MAKE = "CREATE INDEX {} ON vectors USING hnsw ((vector::halfvec({})) halfvec_ip_ops) WITH (m = 12) WHERE model = {}"
# Workers would share the graph in /dev/shm, of which a container has 64 MB unless told otherwise.
_ALONE = Statement("SELECT set_config('max_parallel_maintenance_workers', '0', true)")
# Otherwise a build goes on when its client is gone, and keeps the store's lock for minutes. Only Linux can tell.
_WATCHED = Statement(
    "SELECT set_config('client_connection_check_interval', '5s', true) WHERE strpos(version(), 'linux') > 0"
)
_WITH_MEMORY = """
    SELECT set_config('maintenance_work_mem', greatest(%s, setting::bigint) || 'kB', true)
    FROM pg_settings WHERE name = 'maintenance_work_mem'
"""


async def make(session: Session, key: int, dimensions: int) -> None:
    """Make the graph of a model that has no vectors yet; of one too wide, none."""
    if dimensions <= MOST_INDEXED_DIMENSIONS:
        await session.send(_NOBODY, _make(key, dimensions))


async def drop(session: Session, key: int | None = None) -> None:
    """Drop the graph of a model, or of all."""
    (built,) = await session.send(_NOBODY, Statement(_GET_BUILT))
    names = [name for (name,) in built if key is None or name == _name(key)]
    # A cluster drops one at a time.
    for name in names:
        await session.send(_NOBODY, Statement(sql.SQL("DROP INDEX {}").format(sql.Identifier(name))))


async def is_missing(connections: Connections) -> bool:
    """Return whether a model lacks its graph."""
    return bool(_get_missing(*await connections.read(_NOBODY, Statement(_GET_BUILT), Statement(_GET_MODELS))))


async def build(session: Session) -> None:
    """Build the graphs that are missing, unless another process has just done so; meanwhile nobody else can write."""
    for key, dimensions, passages in _get_missing(
        *await session.send(ALL_ORGS, Statement(_GET_BUILT), Statement(_GET_MODELS))
    ):
        await session.take_time(_NOBODY, max(LONG_SECONDS, passages / BUILT_PER_SECOND))
        memory = Statement(_WITH_MEMORY, (get_building_bytes(passages, dimensions) // 1024,))
        await session.send(_NOBODY, _ALONE, _WATCHED, memory, _make(key, dimensions))


def get_building_bytes(passages: int, dimensions: int) -> int:
    """Return in how much memory a graph is built; what does not fit makes the build take several times as long."""
    return min(MOST_BUILDING_BYTES, passages * (NODE_BYTES + COMPONENT_BYTES * dimensions))


def _get_missing(built: list[Row], models: list[Row]) -> list[Row]:
    names = {name for (name,) in built}
    return [row for row in models if _name(row[0]) not in names and row[1] <= MOST_INDEXED_DIMENSIONS]


def _make(key: int, dimensions: int) -> Statement:
    # A type's width and an index's condition cannot be parameters; both are whole numbers.
    return Statement(sql.SQL(_MAKE).format(sql.Identifier(_name(key)), sql.Literal(dimensions), sql.Literal(key)))


def _name(key: int) -> str:
    return f"vectors_of_model_{key}"
