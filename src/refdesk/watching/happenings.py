"""Happenings: what the audit logs say was done to documents, in the order of the commits.

An act is logged in the same transaction that it is done in, numbered without gaps within its org. So a reader that
remembers a number misses nothing after it, even across restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from refdesk.core.keeping.erasing import ACTION as ERASE
from refdesk.core.writing import audit
from refdesk.model import SHARED_ORG, Collection

if TYPE_CHECKING:
    from refdesk.model import AuditEntry, JsonValue
    from refdesk.protocols import Reader, Store

SHARED = "*"
"""The suffix of the name of a log that belongs to the shared org."""

OUTCOMES = frozenset(("report_outcome", "withdraw_outcome"))
"""Acts on a skill that write no document."""

_SKILL_ID = "skill_id"
_SKILLS = "skills"


@dataclass(frozen=True, slots=True)
class Log:
    """An audit log that an org hears from: the org's own in a store, or the shared org's.

    Attributes:
        store_name: The name of the store, as in `Bases.open`.
    """

    store_name: str
    store: Store
    is_shared: bool

    @property
    def name(self) -> str:
        """A name that is unique among the logs that an org hears from."""
        return self.store_name + (SHARED if self.is_shared else "")

    def name_org(self, org: str) -> str:
        """Return the org whose log it is, for an org that hears from it."""
        return SHARED_ORG if self.is_shared else org


@dataclass(frozen=True, slots=True)
class Happening:
    """What one act did to one document.

    Attributes:
        log: The name of the log that contains the act.
        number: The number of the act.
        version: The version of the document that it made; 0 if it wrote no document.
        action: The name of the operation.
    """

    log: str
    number: int
    at: datetime
    action: str
    collection: Collection
    id: str
    version: int

    @property
    def is_outcome(self) -> bool:
        """Whether it concerns a report on a skill."""
        return self.action in OUTCOMES


def list_logs(stores: Mapping[str, Store]) -> list[Log]:
    """Return the logs that orgs hear from, given the stores by name."""
    return [Log(name, store, is_shared) for name, store in stores.items() for is_shared in (False, True)]


async def read_end(reader: Reader, org: str) -> int:
    """Return the number of the last act in the log of an org; 0 before the first."""
    last = await reader.get_last_audit(org)
    return last.number if last is not None else 0


async def read_ends(stores: Mapping[str, Store], org: str) -> dict[str, int]:
    """Return the present end of each log that an org hears from, by the name of the log."""
    return {log.name: await read_end(log.store, log.name_org(org)) for log in list_logs(stores)}


def list_happenings(log: str, entries: Iterable[AuditEntry]) -> Iterator[Happening]:
    """Yield what the acts of a log did to documents, except erasures, which nobody is to hear of."""
    for entry in entries:
        action = str(entry.act["action"])
        if entry.act["outcome"] != audit.DONE or action == ERASE:
            continue
        for record in cast("Sequence[Mapping[str, JsonValue]]", entry.act.get("records", ())):
            collection = Collection(entry.org, str(record["toolset"]))
            yield Happening(
                log, entry.number, entry.at, action, collection, str(record["id"]), int(str(record["version"]))
            )
        details = cast("Mapping[str, JsonValue]", entry.act.get("details", {}))
        if action in OUTCOMES and _SKILL_ID in details:
            skills = Collection(entry.org, _SKILLS)
            yield Happening(log, entry.number, entry.at, action, skills, str(details[_SKILL_ID]), 0)
