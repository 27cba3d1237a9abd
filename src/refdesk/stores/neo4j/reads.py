"""Reads documents and metadata. Every statement names the namespace, and the org where the port does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from refdesk.core.keeping.rows import restore_bodies
from refdesk.errors import StoreError
from refdesk.model import Collection, CollectionStatistics, State
from refdesk.stores.neo4j.rows import (
    CONTENT,
    decode_audit,
    decode_document,
    decode_link,
    decode_metadata,
    decode_revision,
    encode_instant,
    encode_key,
)

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Document, Link, Metadata, MetadataKey, Reference, Revision
    from refdesk.stores.neo4j.connections import Rows, Runner

GONE = "The store's place in the database is gone: somebody removed it. Restart refdesk, or restore a backup."

TEAR_ATTEMPTS = 3
"""How often to read a document caught in the midst of a commit: Neo4j isolates single properties, not nodes."""

LIVING = "['current', 'superseded']"
"""The states listed, rather than the withdrawn one excluded, so that the index on state is used."""

_NAMES = [name.strip() for name in CONTENT.split(",")]
_VALUES = ", ".join(f"d.{name}" for name in _NAMES)


def _name_values(variable: str) -> str:
    return ", ".join(f"{variable}.{name} AS {name}" for name in ["recorded_at", *_NAMES])


_DOCUMENT = "(d:Document {space: $space, org: $org, toolset: $toolset})"
_EACH = "UNWIND $ids AS id MATCH (d:Thing {space: $space, org: $org, toolset: $toolset, id: id})"
_GET_DOCUMENTS = f"{_EACH} WHERE d:Document RETURN d.id, d.digest, {_VALUES}"
_GET_REVISIONS = (
    f"{_EACH}-[:HAD_VERSION]->(v:Revision) RETURN id, {_name_values('v')} "
    f"UNION ALL {_EACH} WHERE d:Document RETURN id, {_name_values('d')}"
)
_GET_DIGESTS = f"MATCH {_DOCUMENT} WHERE d.state IN {LIVING} RETURN d.id, d.digest"
_LACKS_PASSAGES = "NOT EXISTS { (d)-[:HAS_PASSAGE]->(:Passage {model: $model}) } RETURN d.id ORDER BY d.id LIMIT $limit"
_GET_UNEMBEDDED = f"MATCH {_DOCUMENT} WHERE d.state IN {LIVING} AND {_LACKS_PASSAGES}"
_GET_UNEMBEDDED_SINCE = (
    f"MATCH {_DOCUMENT} USING INDEX SEEK d:Document(space, org, toolset, written) "
    f"WHERE d.written > $since AND d.state IN {LIVING} AND {_LACKS_PASSAGES}"
)
_GET_EMBEDDED = f"{_EACH} WHERE EXISTS {{ (d)-[:HAS_PASSAGE]->(:Passage {{model: $model}}) }} RETURN DISTINCT d.id"
_GET_LINKS = (
    "MATCH (n:Thing {space: $space, org: $org, toolset: $toolset, id: $id})-[r]-(:Thing) "
    "WITH DISTINCT r, startNode(r) AS s, endNode(r) AS t WHERE r.kind IS NOT NULL AND r.org = $org "
    "RETURN s.toolset, s.id, r.kind, t.toolset, t.id, r.created_at "
    "ORDER BY r.created_at, r.kind, s.toolset, s.id, t.toolset, t.id"
)
_GET_RECORD = (
    "MATCH (r:Record {space: $space, org: $org, kind: $kind, name: $name}) "
    "RETURN r.org, r.kind, r.name, r.due_at, r.value"
)
_GET_RECORDS = (
    "UNWIND $keys AS key MATCH (r:Record {space: $space, org: key.org, kind: key.kind, name: key.name}) "
    "RETURN DISTINCT r.org, r.kind, r.name, r.due_at, r.value"
)
# An index leaves out nodes that lack one of its properties, so records that are never due come from another one.
_LIST_DUE = (
    "MATCH (r:Record) USING INDEX SEEK r:Record(space, kind, due_at) "
    "WHERE r.space = $space AND r.kind = $kind AND r.due_at {until} AND r.org {wanted} "
    "WITH r ORDER BY r.space, r.kind, r.due_at, r.org, r.name LIMIT $limit RETURN r"
)
_LIST_NEVER_DUE = (
    "MATCH (r:Record) USING INDEX SEEK r:Record(space, kind, org, name) "
    "WHERE r.space = $space AND r.kind = $kind AND r.org {wanted} AND r.name >= '' AND r.due_at IS NULL "
    "WITH r ORDER BY r.space, r.kind, r.org, r.name LIMIT $limit RETURN r"
)
_LIST_RECORDS = (
    "CALL () {{ {listed} }} RETURN r.org, r.kind, r.name, r.due_at, r.value "
    "ORDER BY r.due_at IS NULL, r.due_at, r.org, r.name LIMIT $limit"
)
# Only an order by all properties of the index is read off it.
_GET_AUDIT = (
    "MATCH (a:AuditEntry {space: $space, org: $org}) WHERE a.number > $after "
    "RETURN a.org, a.number, a.at, a.act, a.previous, a.digest ORDER BY a.space, a.org, a.number LIMIT $limit"
)
_GET_LAST_AUDIT = (
    "MATCH (a:AuditEntry {space: $space, org: $org}) WHERE a.number > 0 "
    "RETURN a.org, a.number, a.at, a.act, a.previous, a.digest ORDER BY a.space DESC, a.org DESC, a.number DESC LIMIT 1"
)
# Older versions did not note `changed`; without it the mark is 0, since which every document counts as written.
_LIST_COLLECTIONS = "MATCH (c:Collection {space: $space}) RETURN c.org, c.toolset, coalesce(c.changed, 0)"
_COUNT_STATES = (
    "MATCH (d:Document) USING INDEX SEEK d:Document(space, org, toolset, state) "
    "WHERE d.space = $space AND d.org >= '' AND d.toolset >= '' AND d.state >= '' "
    "RETURN d.org, d.toolset, d.state, count(*)"
)
_COUNT_EMBEDDED = (
    "MATCH (p:Passage {space: $space})<-[:HAS_PASSAGE]-(d:Document) "
    f"WHERE d.state IN {LIVING} RETURN p.org, p.toolset, p.model, count(DISTINCT d)"
)
_COUNT_STATES_OF_ORG = _COUNT_STATES.replace("d.org >= ''", "d.org = $org")
_COUNT_EMBEDDED_OF_ORG = (
    "MATCH (d:Document {space: $space, org: $org})-[:HAS_PASSAGE]->(p:Passage) USING INDEX SEEK "
    f"d:Document(space, org, toolset, state) WHERE d.toolset >= '' AND d.state IN {LIVING} "
    "RETURN d.org, d.toolset, p.model, count(DISTINCT d)"
)
_LIST_MODELS = "MATCH (p:Passage {space: $space}) RETURN DISTINCT p.model ORDER BY p.model"


class Neo4jReader:
    """See `Reader`."""

    def __init__(self, runner: Runner, namespace: str) -> None:
        self._runner = runner
        self._namespace = namespace

    async def get_documents(self, collection: Collection, ids: Sequence[str]) -> list[Document | None]:
        """See `Reader.get_documents`."""
        found: dict[str, Document] = {}
        missing = list(dict.fromkeys(ids))
        for attempt in range(TEAR_ATTEMPTS):
            is_last = attempt == TEAR_ATTEMPTS - 1
            torn: list[str] = []
            for id, digest, *values in await self._run(_GET_DOCUMENTS, collection, ids=missing) if missing else []:
                found[id] = decode_document(collection, id, values)
                if found[id].digest != digest and not is_last:
                    torn.append(id)
            missing = torn
        return [found.get(id) for id in ids]

    async def get_revisions(self, collection: Collection, id: str) -> list[Revision]:
        """See `Reader.get_revisions`."""
        [history] = await self.get_histories(collection, [id])
        return history

    async def get_histories(self, collection: Collection, ids: Sequence[str]) -> list[list[Revision]]:
        """See `Archive.get_histories`."""
        found: defaultdict[str, Rows] = defaultdict(list)
        for id, *values in await self._run(_GET_REVISIONS, collection, ids=list(dict.fromkeys(ids))):
            found[id].append(values)
        histories = [(id, restore_bodies(sorted(found[id], key=itemgetter(1)))) for id in ids]
        return [[decode_revision(collection, id, row) for row in rows] for id, rows in histories]

    async def get_digests(self, collection: Collection) -> dict[str, str]:
        """See `Reader.get_digests`."""
        return dict(await self._run(_GET_DIGESTS, collection))

    async def get_unembedded(self, collection: Collection, model: str, limit: int, since: str = "") -> list[str]:
        """See `Reader.get_unembedded`."""
        asked = {"model": model, "limit": limit, "since": int(since or 0)}
        statement = _GET_UNEMBEDDED_SINCE if since else _GET_UNEMBEDDED
        return [id for (id,) in await self._run(statement, collection, **asked)]

    async def get_embedded(self, collection: Collection, model: str, ids: Sequence[str]) -> frozenset[str]:
        """See `Reader.get_embedded`."""
        return frozenset(id for (id,) in await self._run(_GET_EMBEDDED, collection, model=model, ids=list(ids)))

    async def get_links(self, org: str, reference: Reference) -> list[Link]:
        """See `Reader.get_links`."""
        ends = {"space": self._namespace, "org": org, "toolset": reference.toolset, "id": reference.id}
        return [decode_link(org, row) for row in await self._runner.run(_GET_LINKS, **ends)]

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        """See `Reader.get_metadata`."""
        rows = await self._runner.run(_GET_RECORD, space=self._namespace, **encode_key(key))
        return decode_metadata(rows[0]) if rows else None

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        """See `Reader.get_many_metadata`."""
        every = [encode_key(key) for key in keys]
        rows = await self._runner.run(_GET_RECORDS, space=self._namespace, keys=every) if every else []
        found = {record.key: record for record in map(decode_metadata, rows)}
        return [found.get(key) for key in keys]

    async def list_metadata(
        self, kind: str, *, org: str | None = None, due_until: datetime | None = None, limit: int = 1000
    ) -> list[Metadata]:
        """See `Reader.list_metadata`."""
        parameters: dict[str, object] = {}
        until, wanted, branches = ">= ''", ">= ''", [_LIST_DUE, _LIST_NEVER_DUE]
        if org is not None:
            wanted, parameters["org"] = "= $org", org
        if due_until is not None:
            until, branches, parameters["due"] = "<= $due", [_LIST_DUE], encode_instant(due_until)
        listed = " UNION ALL ".join(branches).format(until=until, wanted=wanted)
        statement = _LIST_RECORDS.format(listed=listed)
        rows = await self._runner.run(statement, space=self._namespace, kind=kind, limit=limit, **parameters)
        return [decode_metadata(row) for row in rows]

    async def get_audit(self, org: str, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """See `Reader.get_audit`."""
        rows = await self._runner.run(_GET_AUDIT, space=self._namespace, org=org, after=after, limit=limit)
        return [decode_audit(row) for row in rows]

    async def get_last_audit(self, org: str) -> AuditEntry | None:
        """See `Reader.get_last_audit`."""
        rows = await self._runner.run(_GET_LAST_AUDIT, space=self._namespace, org=org)
        return decode_audit(rows[0]) if rows else None

    async def _run(self, statement: str, collection: Collection, **parameters: object) -> Rows:
        place = {"space": self._namespace, "org": collection.org, "toolset": collection.toolset}
        return await self._runner.run(statement, **place, **parameters)


async def list_collections(runner: Runner, namespace: str) -> dict[Collection, str]:
    """See `Store.list_collections`."""
    rows = await runner.run(_LIST_COLLECTIONS, space=namespace)
    return {Collection(org, toolset): str(changed) for org, toolset, changed in rows}


async def get_sequence(runner: Runner, name: str) -> int:
    """Return the number of the last change in a namespace, by the name of its node."""
    rows = await runner.run("MATCH (r:Refdesk {name: $name}) RETURN r.seq", name=name)
    if not rows:
        raise StoreError(GONE)
    return rows[0][0]


async def list_models(runner: Runner, namespace: str) -> list[str]:
    """See `Store.list_models`."""
    return [model for (model,) in await runner.run(_LIST_MODELS, space=namespace)]


async def get_statistics(runner: Runner, namespace: str, org: str | None) -> list[CollectionStatistics]:
    """See `Store.get_statistics`."""
    states: defaultdict[Collection, dict[State, int]] = defaultdict(lambda: dict.fromkeys(State, 0))
    counting = (_COUNT_STATES, _COUNT_EMBEDDED) if org is None else (_COUNT_STATES_OF_ORG, _COUNT_EMBEDDED_OF_ORG)
    by_state, by_model = [await runner.run(statement, space=namespace, org=org or "") for statement in counting]
    for owner, toolset, state, count in by_state:
        states[Collection(owner, toolset)][State(state)] = count
    embedded: defaultdict[Collection, dict[str, int]] = defaultdict(dict)
    for owner, toolset, model, count in by_model:
        embedded[Collection(owner, toolset)][model] = count
    return [CollectionStatistics(each, states[each], embedded[each]) for each in sorted(states)]
