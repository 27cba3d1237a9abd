"""Counts what is in each collection, again only if something was written since."""

from __future__ import annotations

from dataclasses import dataclass, field

from refdesk.model import Collection, CollectionStatistics, EmbeddedCount, State
from refdesk.stores.sqlite.driver import Connection

_LIST_COLLECTIONS = "SELECT key, org, toolset, changed FROM collections ORDER BY org, toolset"
_COUNT_STATES = "SELECT state, count(*) FROM documents WHERE collection = ? GROUP BY state"
# Driven by the index on documents: the other way round each vector looks up its document's row, which takes three times
# as long.
_COUNT_EMBEDDED = """
    SELECT wanted.name, count(*) FROM models AS wanted CROSS JOIN documents
    WHERE collection = ? AND state <> 'withdrawn'
        AND EXISTS (SELECT 1 FROM vectors WHERE vectors.model = wanted.key AND vectors.document = documents.key)
    GROUP BY wanted.key
"""


@dataclass(slots=True)
class Counts:
    """The counts of each collection and the change after which they were taken; any thread may use it."""

    _known: dict[int, tuple[int, CollectionStatistics]] = field(
        default_factory=dict[int, "tuple[int, CollectionStatistics]"]
    )

    def get(self, connection: Connection, org: str | None = None) -> list[CollectionStatistics]:
        """See `Store.get_statistics`."""
        every = self._count_all(connection)
        return [each for _, each in every if any(each.documents.values()) and org in (None, each.collection.org)]

    def count_embedded(self, connection: Connection, model: str) -> list[EmbeddedCount]:
        """See `Store.count_embedded`."""
        every = self._count_all(connection)
        return [each.count(model, str(changed)) for changed, each in every if any(each.documents.values())]

    def _count_all(self, connection: Connection) -> list[tuple[int, CollectionStatistics]]:
        """Return the counts of every collection with the change after which they were taken, in order."""
        known, found = self._known, dict[int, tuple[int, CollectionStatistics]]()
        for key, org, toolset, changed in connection.execute(_LIST_COLLECTIONS):
            before = known.get(key)
            is_same = before is not None and before[0] == changed
            found[key] = before if before and is_same else (changed, _count(connection, key, Collection(org, toolset)))
        self._known = found
        return list(found.values())


def _count(connection: Connection, key: int, collection: Collection) -> CollectionStatistics:
    documents = dict.fromkeys(State, 0)
    documents.update((State(state), count) for state, count in connection.execute(_COUNT_STATES, (key,)))
    return CollectionStatistics(collection, documents, dict(connection.execute(_COUNT_EMBEDDED, (key,))))
