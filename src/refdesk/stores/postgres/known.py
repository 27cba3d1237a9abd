"""What a process knows of the orgs that it last wrote to: the next write need not ask, but only has it checked.

A brief transaction asks what is stored, decides, and writes: two round trips. A process that wrote last knows what is
stored, unless another process has written since. So its next transaction decides by that, and one statement before its
writes, in the same message, requires that all of it holds. If it does not, nothing is written, and the transaction is
repeated, this time asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from refdesk.core.keeping.rows import encode_metadata
from refdesk.stores.postgres.connections import Statement

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, Collection, Document, Metadata, MetadataKey

MOST_ORGS = 1000
"""Most orgs of which something is known; the one that was written to longest ago is forgotten first."""

MOST_RECORDS = 256
"""Most known records of an org, likewise: the quotas of nearly so many agents."""

LONGEST_REST = 32
"""Most transactions that ask before one relies on what is known again, if other processes write to the org as often."""

# Each record is looked up by its key, whatever the planner thinks of the table.
_REQUIRE = """
    SELECT refdesk_require(
        (SELECT changes FROM orgs WHERE org = %(org)s) = %(changes)s
        AND EXISTS (SELECT FROM collections WHERE org = %(org)s AND toolset = %(toolset)s)
        AND NOT EXISTS (
            SELECT FROM documents WHERE org = %(org)s AND toolset = %(toolset)s AND id = ANY(%(ids)s::text[])
        )
        AND (SELECT digest FROM audit WHERE org = %(org)s ORDER BY number DESC LIMIT 1) IS NOT DISTINCT FROM %(digest)s
        AND NOT EXISTS (
            SELECT FROM unnest(%(kinds)s::text[], %(names)s::text[], %(values)s::text[]) AS known (kind, name, value)
            WHERE (
                SELECT concat(r.due_at, ' ', r.value) FROM records r
                WHERE r.org = %(org)s AND r.kind = known.kind AND r.name = known.name
            ) IS DISTINCT FROM known.value
        )
    )
"""


@dataclass(slots=True)
class OrgState:
    """What is stored of an org, as far as it is known.

    Attributes:
        changes: The last number of its change sequence.
        uncounted: For its collections, about how many changes searches look through besides what is counted.
        last_audit: The last entry of its audit log.
        records: Some of its records; `None` for those that do not exist.
    """

    changes: int
    uncounted: dict[Collection, int]
    last_audit: AuditEntry | None
    records: dict[MetadataKey, Metadata | None]

    def require(self, collection: Collection, ids: Iterable[str], keys: Iterable[MetadataKey]) -> Statement:
        """Return the statement that fails unless everything that a transaction relies on holds.

        Args:
            collection: The collection that it writes to.
            ids: The ids of documents that it takes to be new.
            keys: The keys of the records that it reads.
        """
        known = {key: self.records.get(key) for key in keys}
        values = [None if record is None else _spell(record) for record in known.values()]
        return Statement(
            _REQUIRE,
            {
                "org": collection.org,
                "toolset": collection.toolset,
                "changes": self.changes,
                "ids": list(ids),
                "digest": self.last_audit.digest if self.last_audit else None,
                "kinds": [key.kind for key in known],
                "names": [key.name for key in known],
                "values": values,
            },
        )


@dataclass(slots=True)
class _Rest:
    """How many transactions of an org ask nevertheless, after what was known did not hold."""

    length: int = 0
    left: int = 0


@dataclass(slots=True)
class Knowledge:
    """What one process knows of orgs. It may be wrong: whoever relies on it has it checked."""

    _orgs: dict[str, OrgState] = field(default_factory=dict[str, OrgState])
    _rests: dict[str, _Rest] = field(default_factory=dict[str, _Rest])

    def get(self, documents: Sequence[Document]) -> OrgState | None:
        """Return what is known of the org that new documents of one collection go to; `None` if that must be asked."""
        if not documents or any(each.version != 1 for each in documents):
            return None
        collection = documents[0].collection
        state = self._orgs.get(collection.org)
        if (
            state is None
            or collection not in state.uncounted
            or {each.collection for each in documents} != {collection}
        ):
            return None
        rest = self._rests.get(collection.org)
        if rest is not None and rest.left:
            rest.left -= 1
            return None
        return state

    def keep(self, org: str, state: OrgState, *, has_held: bool) -> None:
        """Note what a transaction about to be committed leaves; `has_held`: whether it relied on what was known."""
        if (before := self._orgs.pop(org, None)) is not None:
            for key in state.records:
                before.records.pop(key, None)
            before.records.update(state.records)
            before.uncounted.update(state.uncounted)
            state = replace(state, uncounted=before.uncounted, records=before.records)
        while len(state.records) > MOST_RECORDS:
            del state.records[next(iter(state.records))]
        self._orgs[org] = state
        if len(self._orgs) > MOST_ORGS:
            self.forget(next(iter(self._orgs)))
        if has_held:
            self._rests.pop(org, None)

    def forget(self, org: str) -> None:
        """Forget everything about an org."""
        self._orgs.pop(org, None)

    def rest(self, org: str) -> None:
        """Forget an org of which something did not hold; each time this happens in a row, for longer."""
        self.forget(org)
        rest = self._rests.setdefault(org, _Rest())
        rest.length = min(LONGEST_REST, 2 * rest.length + 1)
        rest.left = rest.length
        if len(self._rests) > MOST_ORGS:
            self._rests.pop(next(iter(self._rests)))


def _spell(record: Metadata) -> str:
    *_, due_at, value = encode_metadata(record)
    return f"{'' if due_at is None else due_at} {value}"
