"""Schema migrations on PostgreSQL, by one process at a time."""

from __future__ import annotations

import logging

from psycopg import errors as pg

from refdesk.errors import ConfigurationError, StoreError
from refdesk.kit.migrations import Migration, find_missing, load_steps
from refdesk.stores.postgres.connections import Connections, Scope, Statement
from refdesk.stores.postgres.schemas import find_schema
from refdesk.stores.postgres.transactions import Session

logger = logging.getLogger(__name__)

NOBODY = Scope("")
"""For statements about the schema, which read no org's rows."""

LEAST_PGVECTOR = (0, 8)
"""The first version with iterative scans: before, a filtered search could return too few documents."""

_GET_ROLE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_GET_SERVER = f"""
    SELECT current_setting('server_encoding'), current_setting('server_version_num')::integer, ({_GET_ROLE}),
        (SELECT extversion FROM pg_extension WHERE extname = 'vector'), to_regtype('halfvec') IS NOT NULL,
        (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector')
"""  # noqa: S608 - a literal of this program, used twice
_MAKE_TABLE = """
    CREATE TABLE IF NOT EXISTS refdesk_migrations (
        number integer PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL
    )
"""
_EXTENSION = (
    "The database lacks the extension pgvector 0.8 or newer: have an administrator run `{} EXTENSION vector{};`."
)

_ELSEWHERE = (
    "The extension pgvector is in the schema {0}, which the search path does not name or the role may not use: have an "
    "administrator run `ALTER EXTENSION vector SET SCHEMA public;`, or `GRANT USAGE ON SCHEMA {0}` to the role, and "
    "name it behind the store's own in the search path."
)


def load_migrations() -> list[Migration]:
    """Return the steps that this program knows, in order."""
    return load_steps("postgres")


async def examine(connections: Connections) -> tuple[str, bool]:
    """Return the versions of server and extension, for display, and whether the store's tables were begun.

    Raises:
        ConfigurationError: The database cannot serve; the message says what to change.
    """
    (rows,) = await connections.read(NOBODY, Statement(_GET_SERVER))
    encoding, version, is_above, vector, is_reached, schema = rows[0]
    if encoding != "UTF8":
        raise ConfigurationError("The database's encoding is not UTF8: make one with ENCODING 'UTF8'.")
    if is_above:
        logger.warning("row-level security does not bind this role: use one without SUPERUSER and BYPASSRLS")
    if vector is not None and _read_version(vector) < LEAST_PGVECTOR:
        raise ConfigurationError(_EXTENSION.format("ALTER", " UPDATE"))
    _, has_schema = await find_schema(connections)
    if vector is not None and not is_reached:
        raise ConfigurationError(_ELSEWHERE.format(schema))
    return f"PostgreSQL {version // 10_000}.{version % 10_000}, pgvector {vector or '(new)'}", has_schema


async def is_above_policies(connections: Connections) -> bool:
    """Return whether row-level security does not bind the role, which then has no second wall between orgs."""
    (rows,) = await connections.read(NOBODY, Statement(_GET_ROLE))
    return bool(rows and rows[0][0])


async def get_missing(session: Session | Connections, migrations: list[Migration]) -> list[Migration]:
    """Return the steps that the schema has not seen, in order.

    Raises:
        ConfigurationError: It was written by a newer refdesk.
    """
    (rows,) = await session.read(NOBODY, Statement("SELECT number, name FROM refdesk_migrations"))
    return find_missing(migrations, dict(rows), "database")


async def migrate(session: Session, migrations: list[Migration], now: int) -> None:
    """Bring the schema up to date.

    Args:
        session: Holds the store's lock, so that each step is taken by one process only.
        migrations: Every step there is, in order.
        now: Microseconds since 1970, recorded with each step.

    Raises:
        ConfigurationError: See `get_missing`; or the extension is missing, or the schema is another program's.
    """
    await session.take_time(NOBODY)
    # On a Citus cluster functions can change only if tables change one after another; elsewhere this has no effect.
    await session.send(NOBODY, Statement("SELECT set_config('citus.multi_shard_modify_mode', 'sequential', true)"))
    await _make_extension(session)
    await session.send(NOBODY, Statement(_MAKE_TABLE))
    for migration in await get_missing(session, migrations):
        await _apply(session, migration, now)


async def _make_extension(session: Session) -> None:
    (rows,) = await session.send(NOBODY, Statement("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    if rows:
        return
    try:
        await session.send(NOBODY, Statement("CREATE EXTENSION IF NOT EXISTS vector"))
    except StoreError as error:
        if isinstance(error.__cause__, pg.InsufficientPrivilege | pg.FeatureNotSupported | pg.UndefinedFile):
            raise ConfigurationError(_EXTENSION.format("CREATE", "")) from error
        raise


async def _apply(session: Session, migration: Migration, now: int) -> None:
    try:
        # Citus passes on the whole text that a definition came in, whatever else that holds.
        for statement in _split(migration.script):
            await session.run_script(statement)
    except StoreError as error:
        if isinstance(error.__cause__, pg.DuplicateTable | pg.DuplicateObject):
            raise ConfigurationError(
                "The database holds tables of another program. Give refdesk a database or a schema of its own."
            ) from error
        raise
    values = (migration.number, migration.name, now)
    await session.send(NOBODY, Statement("INSERT INTO refdesk_migrations VALUES (%s, %s, %s)", values))


def _split(script: str) -> list[str]:
    """Return the statements of a file; each ends at the end of a line, and not within a dollar-quoted body."""
    statements, lines, is_quoted = list[str](), list[str](), False
    for line in script.splitlines():
        if not is_quoted and line.startswith("--"):
            continue
        lines.append(line)
        is_quoted ^= line.count("$$") % 2 == 1
        if not is_quoted and line.endswith(";"):
            statements.append("\n".join(lines))
            lines.clear()
    return statements


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])
