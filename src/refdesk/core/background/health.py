"""Health of a desk, and the embedding backlog: its size, its age, and whether a worker is making progress."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from refdesk.core.background.embedding import LEASE, count_lacking
from refdesk.core.background.leases import Holder, Lease
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from refdesk.core.background.embedding import Indexer
    from refdesk.core.background.sync_log import SyncStatus
    from refdesk.core.background.upkeep import EmbeddingState
    from refdesk.model import Collection, EmbeddedCount

STALLED_AFTER = timedelta(minutes=5)
"""How long a document may wait while nobody embeds before that counts as a failure."""

MOST_LOOKED_AT = 100
"""Most waiting documents whose age is looked up."""

MOST_COLLECTIONS = 10
"""In how many collections they are, at most."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has no vectors yet.

    Attributes:
        waiting: How many documents are still to be embedded, in all orgs, not counting those that failed.
        failing: How many failed and will be tried again automatically.
        set_aside: How many failed and are not tried again until somebody retries or they change.
        oldest: Since when the longest waiting document waits; `None` if none does. Only `MOST_LOOKED_AT` are looked at:
            as many of each of `MOST_COLLECTIONS`, the first by id.
        is_attended: Whether a process is embedding at this moment.
    """

    waiting: int
    failing: int
    set_aside: int
    oldest: datetime | None
    is_attended: bool

    def is_stalled(self, now: datetime, since: datetime) -> bool:
        """Whether nobody embeds and a document has waited longer than `STALLED_AFTER`, counted at most from `since`."""
        return self.oldest is not None and not self.is_attended and now - max(self.oldest, since) > STALLED_AFTER


def add_backlogs(backlogs: Sequence[Backlog]) -> Backlog:
    """Return the backlog of several stores together; it is attended if somebody embeds wherever anything waits."""
    waiting = [backlog for backlog in backlogs if backlog.oldest is not None]
    return Backlog(
        sum(backlog.waiting for backlog in backlogs),
        sum(backlog.failing for backlog in backlogs),
        sum(backlog.set_aside for backlog in backlogs),
        min((backlog.oldest for backlog in waiting if backlog.oldest is not None), default=None),
        all(backlog.is_attended for backlog in waiting or backlogs),
    )


@dataclass(frozen=True, slots=True)
class ToolsetHealth:
    """The health of one toolset.

    Attributes:
        documents: How many it can find, in all orgs; `None` if that is not disclosed.
        as_of: When it was last brought up to date from its source; `None` if never, or if it has none.
        problem: What keeps it from being current, or `None`.
    """

    documents: int | None
    as_of: datetime | None = None
    problem: str | None = None


def find_sync_problem(name: str, status: SyncStatus, now: datetime, stale_after: timedelta) -> str | None:
    """Return what keeps the documents of a source from being current, or `None`.

    Args:
        name: Of the source.
        status: Of its syncs.
        now: The present.
        stale_after: How long they count as current after a sync.
    """
    last = status.last_success
    if last is None or last <= now - stale_after:
        since = "was never synced" if last is None else f"was last synced {last:%Y-%m-%d %H:%M} UTC"
        return f"{name} {since}: {status.last_error or 'a sync is due.'}"
    if status.withheld:
        gone = say_count(status.withheld, "document is", "documents are")
        why = "while it gives less than it says" if status.missing else "suspiciously many at once"
        return f"{gone} gone from the source of {name}, {why}, but still kept; --force lets go of what is gone."
    if status.missing:
        return f"The source of {name} says that it holds {say_count(status.missing, 'more record')} than it gives."
    return None


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the desk works: a `degraded` one answers, but not with everything; a `failing` one breaks its promises.

    Attributes:
        at: When it was measured.
        backlog: `None` if it could not be measured, or is not disclosed.
        backed_up_at: When the last backup was made; `None` if none was.
        change: The progress of embedding everything anew by another model; `None` if that is not going on, or not
            disclosed.
        is_breaker_open: Whether the embedding service fails or hangs, so that searches are answered by keywords.
    """

    status: Literal["ok", "degraded", "failing"]
    problems: tuple[str, ...]
    toolsets: Mapping[str, ToolsetHealth]
    at: datetime
    backlog: Backlog | None = None
    backed_up_at: datetime | None = None
    change: EmbeddingState | None = None
    is_breaker_open: bool = False

    def without_counts(self) -> Health:
        """Return the part that anybody may see: nothing that hints at what an org keeps."""
        toolsets = {name: replace(one, documents=None) for name, one in self.toolsets.items()}
        return replace(self, toolsets=toolsets, backlog=None, change=None)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values; what is not disclosed is omitted."""
        toolsets = {
            name: {"asOf": one.as_of.isoformat() if one.as_of else None}
            | ({"documents": one.documents} if one.documents is not None else {})
            for name, one in self.toolsets.items()
        }
        counts = _to_json(self.backlog, self.at) if self.backlog is not None else {}
        backup = {"lastBackup": self.backed_up_at.isoformat()} if self.backed_up_at is not None else {}
        change = {"embeddingChange": self.change.to_json()} if self.change is not None else {}
        return {
            "status": self.status,
            "problems": list(self.problems),
            "toolsets": toolsets,
            **counts,
            **change,
            **backup,
        }


async def measure_backlog(indexer: Indexer, counts: Sequence[EmbeddedCount] | None = None) -> Backlog:
    """Return how far embedding is behind, given what `Indexer.count` has just returned, if it was asked."""
    failures = await indexer.list_failures()
    set_aside = sum(failure.is_final for failure in failures)
    if counts is None:
        counts = await indexer.count()
    pending = count_lacking(counts)
    failed: dict[Collection, set[str]] = {}
    for failure in failures:
        failed.setdefault(failure.collection, set()).add(failure.id)
    return Backlog(
        waiting=max(0, pending - len(failures)),
        failing=len(failures) - set_aside,
        set_aside=set_aside,
        oldest=await _find_oldest(indexer, failed, counts) if pending > len(failures) else None,
        is_attended=await Lease(LEASE, indexer.store, indexer.clock, Holder()).is_held(),
    )


async def _find_oldest(
    indexer: Indexer, failed: Mapping[Collection, set[str]], counts: Sequence[EmbeddedCount]
) -> datetime | None:
    lacking = [
        each.collection for each in counts if each.documents - each.embedded > len(failed.get(each.collection, ()))
    ]
    some = lacking[:MOST_COLLECTIONS]
    oldest = [await _find_oldest_of(indexer, each, failed, MOST_LOOKED_AT // len(some)) for each in some]
    return min((instant for instant in oldest if instant is not None), default=None)


async def _find_oldest_of(
    indexer: Indexer, collection: Collection, failed: Mapping[Collection, set[str]], most: int
) -> datetime | None:
    skip = failed.get(collection, set[str]())
    store, wanted = indexer.store, indexer.semantics.wanted.model
    ids = await store.get_unembedded(collection, wanted.name, most + len(skip))
    active = await indexer.semantics.get_active()
    if active is not None and active.model != wanted:
        # While the model changes, documents with vectors of the previous model are still found by those.
        skip = skip | await store.get_embedded(collection, active.model.name, ids)
    waiting = [id for id in ids if id not in skip][:most]
    histories = await store.get_histories(collection, waiting)
    return min((history[-1].recorded_at for history in histories if history), default=None)


def _to_json(backlog: Backlog, at: datetime) -> dict[str, Any]:
    age = max(0.0, (at - backlog.oldest).total_seconds()) if backlog.oldest is not None else None
    return {
        "pendingEmbeddings": backlog.waiting + backlog.failing,
        "failedEmbeddings": backlog.set_aside,
        "oldestUnembeddedSeconds": None if age is None else round(age, 1),
    }
