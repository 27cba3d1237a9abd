"""Schema migrations: constraints and indexes in numbered steps, and a node for each namespace.

Labels: `Thing` (whatever can be linked: a document, or something outside such as a task), `Document` (a `Thing` that is
stored here), `Revision`, `Passage` with `Passage<width>`, `Record`, `AuditEntry`, `Collection` (its counts), and
`Refdesk` (the schema's version, and one node for each namespace, which its transactions lock).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from refdesk.errors import ConfigurationError, StoreError
from refdesk.stores.neo4j.rows import ANALYSIS_VERSION, count_length, encode_terms
from refdesk.stores.neo4j.vectors import WIDEST, get_index_name, make_vector_index, parse_version

if TYPE_CHECKING:
    from refdesk.stores.neo4j.connections import Database

OLDEST_SERVER = (5, 26)
"""It takes relationship types as parameters, and is the newest long-term line before versions named by year."""

FULLTEXT_INDEX = "refdesk_terms"
SCHEMA_NAME = "schema"
BATCH = 500
"""Documents analysed anew in one transaction."""

POLL_SECONDS = 0.2
"""How often it is looked whether the server has built the indexes."""

_FAILED = (
    "The database could not build the index {}. See why with SHOW INDEXES, remove it with DROP INDEX or DROP "
    "CONSTRAINT, and have it made again: MATCH (r:Refdesk {{name: 'schema'}}) SET r.version = 0. Then restart refdesk."
)

_BOOTSTRAP = "CREATE CONSTRAINT refdesk_name IF NOT EXISTS FOR (r:Refdesk) REQUIRE r.name IS UNIQUE"
_STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE CONSTRAINT refdesk_thing IF NOT EXISTS FOR (t:Thing) "
        "REQUIRE (t.space, t.org, t.toolset, t.id) IS UNIQUE",
        "CREATE CONSTRAINT refdesk_record IF NOT EXISTS FOR (r:Record) "
        "REQUIRE (r.space, r.org, r.kind, r.name) IS UNIQUE",
        "CREATE CONSTRAINT refdesk_collection IF NOT EXISTS FOR (c:Collection) "
        "REQUIRE (c.space, c.org, c.toolset) IS UNIQUE",
        "CREATE INDEX refdesk_document IF NOT EXISTS FOR (d:Document) ON (d.space, d.org, d.toolset, d.state)",
        "CREATE INDEX refdesk_due IF NOT EXISTS FOR (r:Record) ON (r.space, r.kind, r.due_at)",
        "CREATE INDEX refdesk_passage IF NOT EXISTS FOR (p:Passage) ON (p.space, p.model)",
        f"CREATE FULLTEXT INDEX {FULLTEXT_INDEX} IF NOT EXISTS FOR (d:Document) ON EACH [d.scope, d.terms] "
        "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}",
    ),
    ("CREATE CONSTRAINT refdesk_audit IF NOT EXISTS FOR (a:AuditEntry) REQUIRE (a.space, a.org, a.number) IS UNIQUE",),
    ("CREATE INDEX refdesk_written IF NOT EXISTS FOR (d:Document) ON (d.space, d.org, d.toolset, d.written)",),
    ("CREATE TEXT INDEX refdesk_title IF NOT EXISTS FOR (d:Document) ON (d.title_key)",),
    ("CREATE INDEX refdesk_kind IF NOT EXISTS FOR (r:Record) ON (r.space, r.kind, r.org, r.name)",),
)
SCHEMA_VERSION = len(_STEPS)

_GET_UNREADY = (
    "SHOW INDEXES YIELD name, type, state WHERE name STARTS WITH 'refdesk_' AND type <> 'VECTOR' AND state <> 'ONLINE' "
    "RETURN name, state"
)
_LOCK = "MERGE (r:Refdesk {name: $name}) SET r.lock = 0"
_GET_STATE = (
    "OPTIONAL MATCH (s:Refdesk {name: $schema}) OPTIONAL MATCH (r:Refdesk {name: $name}) "
    "RETURN s.version, r.analysis, r.renewed_to"
)
_GET_VERSION = "MATCH (r:Refdesk {name: $name}) RETURN coalesce(r.version, 0)"
_SET_VERSION = "MATCH (r:Refdesk {name: $name}) SET r.version = $version"
_GET_ANALYSIS = "MATCH (r:Refdesk {name: $name}) RETURN r.analysis, r.renewed_to"
_MAKE_SPACE = (
    "MERGE (r:Refdesk {name: $name}) "
    "ON CREATE SET r.seq = 0, r.lock = 0, r.analysis = $analysis, r.created_at = toString(datetime())"
)
_GET_OUTDATED = (
    "MATCH (d:Document {space: $space}) WHERE elementId(d) > $after "
    "RETURN elementId(d), d.title, d.body ORDER BY elementId(d) LIMIT $limit"
)
_RENEW = (
    "MATCH (r:Refdesk {name: $name}) SET r.seq = r.seq + $count WITH r.seq - $count AS seq "
    "UNWIND $rows AS row MATCH (d:Document) WHERE elementId(d) = row.element AND d.space = $space "
    "SET d.terms = row.terms, d.length = row.length, d.written = seq + row.number"
)
_RECOUNT = (
    "MATCH (c:Collection {space: $space}) "
    "SET c.length = COLLECT { MATCH (d:Document {space: $space, org: c.org, toolset: c.toolset}) "
    "WHERE d.state <> 'withdrawn' RETURN sum(d.length) }[0]"
)
_SET_ANALYSIS = "MATCH (r:Refdesk {name: $name}) SET r.analysis = $analysis, r.renewed_to = $renewed_to"
_GET_VECTOR_INDEXES = "SHOW VECTOR INDEXES YIELD name, state RETURN name, state"


def get_space_name(namespace: str) -> str:
    """Return the name of the node that the transactions of a namespace lock."""
    return f"space {namespace}"


def require_server(agent: str) -> tuple[int, int]:
    """Return the server's version from its agent, such as "Neo4j/5.26.31".

    Raises:
        ConfigurationError: The server is too old or not Neo4j.
    """
    version = parse_version(agent)
    if version is None or version < OLDEST_SERVER:
        raise ConfigurationError("The store's URL names a server that is not Neo4j 5.26 or newer.")
    return version


async def prepare(database: Database, namespace: str) -> str:
    """Bring the schema up to date and create the namespace's node; return the server's name and version.

    Raises:
        ConfigurationError: The server is not Neo4j or too old, or the database was written by a newer refdesk.
        StoreError: The database failed.
    """
    name = get_space_name(namespace)
    agent, ((version, analysis, renewed_to),) = await database.ask(_GET_STATE, schema=SCHEMA_NAME, name=name)
    require_server(agent)
    if version is None or version < SCHEMA_VERSION:
        await _prepare_schema(database)
    elif version > SCHEMA_VERSION:
        raise _newer()
    await _await_indexes(database)
    if analysis is None:
        await database.run(_MAKE_SPACE, name=name, analysis=ANALYSIS_VERSION)
    elif analysis > ANALYSIS_VERSION:
        raise _newer()
    elif analysis < ANALYSIS_VERSION or renewed_to is not None:
        while await _renew_some(database, namespace):
            pass
    return agent


class VectorIndexes:
    """The vector indexes, one for each width of vectors; one is created when vectors of a new width come."""

    def __init__(self, database: Database, version: tuple[int, int]) -> None:
        self._database = database
        self._version = version
        self._made: set[str] = set()
        self._online: set[str] = set()

    async def has(self, width: int) -> bool:
        """Return whether there is an index for vectors of a width, and it answers."""
        name = get_index_name(width, self._version)
        if name not in self._online:
            await self._look()
        return name in self._online

    async def ensure(self, width: int) -> None:
        """Return when there is one, unless they are too wide for any. It answers once the server has built it.

        Nobody waits for that: whoever writes holds what others wait for, and searches compare all vectors meanwhile.
        """
        name = get_index_name(width, self._version)
        if width > WIDEST or name in self._made:
            return
        await self._look()
        if name not in self._made:
            for statement in make_vector_index(width, self._version):
                await self._database.run(statement)

    async def _look(self) -> None:
        states = dict(await self._database.run(_GET_VECTOR_INDEXES))
        self._made, self._online = set(states), {name for name, state in states.items() if state == "ONLINE"}


async def _prepare_schema(database: Database) -> None:
    await database.run(_BOOTSTRAP)
    async with database.begin() as lock:
        await lock.take_lock(_LOCK, name=SCHEMA_NAME)
        ((version,),) = await lock.run(_GET_VERSION, name=SCHEMA_NAME)
        # Schema changes cannot be made in the transaction that holds the lock; it keeps other processes out meanwhile.
        for statement in (each for step in _STEPS[version:] for each in step):
            await database.run(statement)
        await lock.run(_SET_VERSION, name=SCHEMA_NAME, version=SCHEMA_VERSION)
        await lock.commit()


async def _await_indexes(database: Database) -> None:
    """Return when every index that refdesk made answers, however long the server builds; others' do not matter."""
    while unready := await database.run(_GET_UNREADY):
        if failed := [name for name, state in unready if state == "FAILED"]:
            raise StoreError(_FAILED.format(" and ".join(failed)))
        await anyio.sleep(POLL_SECONDS)


async def _renew_some(database: Database, namespace: str) -> bool:
    """Write the terms of some documents as this version of the analysis has them; return whether more may be left.

    From the first on nobody with an older version writes; whoever opens the store next goes on where another stopped.
    """
    name = get_space_name(namespace)
    async with database.begin() as transaction:
        await transaction.take_lock(_LOCK, name=name)
        ((analysis, after),) = await transaction.run(_GET_ANALYSIS, name=name)
        if analysis < ANALYSIS_VERSION:
            after = ""
        elif after is None:
            return False
        rows = await transaction.run(_GET_OUTDATED, space=namespace, after=after, limit=BATCH)
        if rows:
            renewed = [_renew(number, row[0], encode_terms(row[1], row[2])) for number, row in enumerate(rows, 1)]
            await transaction.run(_RENEW, name=name, space=namespace, rows=renewed, count=len(rows))
        else:
            await transaction.run(_RECOUNT, space=namespace)
        renewed_to = rows[-1][0] if rows else None
        await transaction.run(_SET_ANALYSIS, name=name, analysis=ANALYSIS_VERSION, renewed_to=renewed_to)
        await transaction.commit()
    return bool(rows)


def _renew(number: int, element: str, terms: str) -> dict[str, object]:
    return {"number": number, "element": element, "terms": terms, "length": count_length(terms)}


def _newer() -> ConfigurationError:
    return ConfigurationError(
        "The database was written by a newer refdesk. Upgrade refdesk, or name another database in the store's URL."
    )
