"""Schema migrations: constraints and indexes in numbered steps, and a node for each namespace.

Labels: `Thing` (whatever can be linked: a document, or something outside such as a task), `Document` (a `Thing` that is
known), `Revision`, `Passage` with `Passage<width>`, `Record`, `AuditEntry`, `Collection` (what is counted of one), and
`Refdesk` (the schema's version, and one node for each namespace, which its transactions lock).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.errors import ConfigurationError
from refdesk.stores.neo4j.rows import ANALYSIS_VERSION, count_length, encode_terms
from refdesk.stores.neo4j.vectors import WIDEST, get_index_name, make_vector_index, parse_version

if TYPE_CHECKING:
    from refdesk.stores.neo4j.connections import Database

OLDEST_SERVER = (5, 26)
"""Relationship types by parameter, and the newest long-term line before the versions by year."""

FULLTEXT_INDEX = "refdesk_terms"
SCHEMA_NAME = "schema"
BATCH = 500
"""Documents analysed anew at a time."""

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
)
SCHEMA_VERSION = len(_STEPS)

_AWAIT = "CALL db.awaitIndexes(300)"
_LOCK = "MERGE (r:Refdesk {name: $name}) SET r.lock = 0"
_GET_STATE = (
    "OPTIONAL MATCH (s:Refdesk {name: $schema}) OPTIONAL MATCH (r:Refdesk {name: $name}) RETURN s.version, r.analysis"
)
_GET_VERSION = "MATCH (r:Refdesk {name: $name}) RETURN coalesce(r.version, 0)"
_SET_VERSION = "MATCH (r:Refdesk {name: $name}) SET r.version = $version"
_GET_ANALYSIS = "MATCH (r:Refdesk {name: $name}) RETURN r.analysis"
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
_SET_ANALYSIS = "MATCH (r:Refdesk {name: $name}) SET r.analysis = $analysis"
_GET_INDEX_NAMES = "SHOW VECTOR INDEXES YIELD name, state WHERE state = 'ONLINE' RETURN name"


def get_space_name(namespace: str) -> str:
    """Return the name of the node that the transactions of a namespace lock."""
    return f"space {namespace}"


def require_server(agent: str) -> tuple[int, int]:
    """Return the server's version from its agent, such as "Neo4j/5.26.31".

    Raises:
        ConfigurationError: It is too old, or no Neo4j.
    """
    version = parse_version(agent)
    if version is None or version < OLDEST_SERVER:
        raise ConfigurationError("The store's URL names a server that is not Neo4j 5.26 or newer.")
    return version


async def prepare(database: Database, namespace: str) -> str:
    """Bring the schema up to date and make the namespace's place; return the server's name and version.

    Raises:
        ConfigurationError: The server is no Neo4j or too old, or the database was written by a newer refdesk.
        StoreError: The database failed.
    """
    name = get_space_name(namespace)
    agent, ((version, analysis),) = await database.ask(_GET_STATE, schema=SCHEMA_NAME, name=name)
    require_server(agent)
    if version is None or version < SCHEMA_VERSION:
        await _prepare_schema(database)
    elif version > SCHEMA_VERSION:
        raise _newer()
    if analysis is None:
        await database.run(_MAKE_SPACE, name=name, analysis=ANALYSIS_VERSION)
    elif analysis > ANALYSIS_VERSION:
        raise _newer()
    elif analysis < ANALYSIS_VERSION:
        await _renew_analysis(database, namespace)
    return agent


class VectorIndexes:
    """Which widths of vectors there is an index for; one is made when vectors of a new width come."""

    def __init__(self, database: Database, version: tuple[int, int]) -> None:
        self._database = database
        self._version = version
        self._names: set[str] = set()

    async def has(self, width: int) -> bool:
        """Return whether there is an index for vectors of a width."""
        name = get_index_name(width, self._version)
        if name not in self._names:
            self._names = {found for (found,) in await self._database.run(_GET_INDEX_NAMES)}
        return name in self._names

    async def ensure(self, width: int) -> None:
        """Return when there is one and it answers, unless they are too wide for any."""
        if width > WIDEST or await self.has(width):
            return
        for statement in make_vector_index(width, self._version):
            await self._database.run(statement)
        await self._database.run(_AWAIT)


async def _prepare_schema(database: Database) -> None:
    await database.run(_BOOTSTRAP)
    await database.run(_AWAIT)
    async with database.begin() as lock:
        await lock.take_lock(_LOCK, name=SCHEMA_NAME)
        ((version,),) = await lock.run(_GET_VERSION, name=SCHEMA_NAME)
        # A change of the schema cannot share a transaction with the lock; the lock keeps the others out meanwhile.
        for statement in (each for step in _STEPS[version:] for each in step):
            await database.run(statement)
        await database.run(_AWAIT)
        await lock.run(_SET_VERSION, name=SCHEMA_NAME, version=SCHEMA_VERSION)
        await lock.commit()


async def _renew_analysis(database: Database, namespace: str) -> None:
    """Write the terms of every document as this version of the analysis has them, unless another process has."""
    name, after = get_space_name(namespace), ""
    async with database.begin() as transaction:
        await transaction.take_lock(_LOCK, name=name)
        if await transaction.run(_GET_ANALYSIS, name=name) == [[ANALYSIS_VERSION]]:
            return
        while rows := await transaction.run(_GET_OUTDATED, space=namespace, after=after, limit=BATCH):
            after = rows[-1][0]
            renewed = [_renew(number, row[0], encode_terms(row[1], row[2])) for number, row in enumerate(rows, 1)]
            await transaction.run(_RENEW, name=name, space=namespace, rows=renewed, count=len(rows))
        await transaction.run(_RECOUNT, space=namespace)
        await transaction.run(_SET_ANALYSIS, name=name, analysis=ANALYSIS_VERSION)
        await transaction.commit()


def _renew(number: int, element: str, terms: str) -> dict[str, object]:
    return {"number": number, "element": element, "terms": terms, "length": count_length(terms)}


def _newer() -> ConfigurationError:
    return ConfigurationError(
        "The database was written by a newer refdesk. Upgrade refdesk, or name another database in the store's URL."
    )
