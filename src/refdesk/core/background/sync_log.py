"""The sync log of a toolset: its status, its recent runs, and its dead letters.

All of it is bookkeeping in the store, under the shared org, so every process sees the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import JsonValue
    from refdesk.protocols import Reader, Transaction

SyncKind: TypeAlias = Literal["full", "delta"]
SyncOutcome: TypeAlias = Literal["succeeded", "failed", "busy"]
ChangeKind: TypeAlias = Literal["added", "changed", "withdrawn", "restored"]

STATUS = "sync"
RUN = "sync_run"
DEAD_LETTER = "quarantine"

BUG = "The sync ended by a bug; whoever runs refdesk finds it in the log."
"""What a status says of a run that raised an exception that is not an error of refdesk."""

MAX_RUNS = 50
MAX_CHANGES = 200
"""Most changes that one run's entry names."""


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """The status of syncing.

    Attributes:
        last_success: When the last successful sync ended; `None` if none ever succeeded.
        last_full: When the last successful full sync ended.
        watermark: Every record changed before it, according to the dates of the source, is here.
        last_error: Why the last sync failed; `None` if it succeeded.
        last_error_at: When that was.
        documents: How many documents there were after the last success, not counting withdrawn ones.
        withheld: How many of them the last full sync did not find in the source but did not withdraw; see `SyncReport`.
        missing: How many records the last full sync did not get, of those that the source says it holds.
    """

    last_success: datetime | None = None
    last_full: datetime | None = None
    watermark: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    documents: int = 0
    withheld: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a sync did to one document, and the version that the document has since then."""

    id: str
    kind: ChangeKind
    version: int


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did.

    Attributes:
        outcome: `busy` if another process was syncing; then nothing was done.
        unchanged: Documents that were read and had not changed.
        quarantined: Records that could not be read and were set aside with their reason.
        withheld: Documents that are gone from the source but were not withdrawn, because they are suspiciously many or
            because records are `missing`.
        missing: Records that the source says it holds but did not give in a full sync.
        changes: The first `MAX_CHANGES` changes.
        error: Why it failed; empty otherwise.
    """

    outcome: SyncOutcome
    kind: SyncKind
    started_at: datetime
    finished_at: datetime
    added: int = 0
    changed: int = 0
    withdrawn: int = 0
    restored: int = 0
    unchanged: int = 0
    quarantined: int = 0
    withheld: int = 0
    missing: int = 0
    changes: tuple[Change, ...] = ()
    error: str = ""

    @property
    def written(self) -> int:
        """How many documents were written."""
        return self.added + self.changed + self.withdrawn + self.restored


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read.

    Attributes:
        name: Its id or, if it has no usable one, `#` and a digest of the record.
        excerpt: Its beginning, as ASCII JSON.
    """

    name: str
    reason: str
    excerpt: str


async def read_status(reader: Reader, toolset: str) -> SyncStatus:
    """Return the status of syncing; an empty one if it was never tried."""
    record = await reader.get_metadata(_status_key(toolset))
    if record is None:
        return SyncStatus()
    value = record.value
    error = value["last_error"]
    return SyncStatus(
        last_success=_instant(value["last_success"]),
        last_full=_instant(value["last_full"]),
        watermark=_instant(value["watermark"]),
        last_error=None if error is None else str(error),
        last_error_at=_instant(value["last_error_at"]),
        documents=_number(value["documents"]),
        withheld=_number(value.get("withheld", 0)),
        missing=_number(value.get("missing", 0)),
    )


async def write_status(transaction: Transaction, toolset: str, status: SyncStatus) -> None:
    """Set the status of syncing."""
    value: dict[str, JsonValue] = {
        "last_success": _text(status.last_success),
        "last_full": _text(status.last_full),
        "watermark": _text(status.watermark),
        "last_error": status.last_error,
        "last_error_at": _text(status.last_error_at),
        "documents": status.documents,
        "withheld": status.withheld,
        "missing": status.missing,
    }
    await transaction.put_metadata([Metadata(_status_key(toolset), value)])


async def read_runs(reader: Reader, toolset: str) -> list[SyncReport]:
    """Return the recent runs, newest first, at most `MAX_RUNS`."""
    records = await _list_own(reader, RUN, toolset)
    return [_report(record) for record in sorted(records, key=_record_name, reverse=True)[:MAX_RUNS]]


async def add_run(transaction: Transaction, toolset: str, report: SyncReport) -> None:
    """Remember a run and forget those before the last `MAX_RUNS`."""
    records = sorted(await _list_own(transaction, RUN, toolset), key=_record_name, reverse=True)
    await transaction.remove_metadata([record.key for record in records[MAX_RUNS - 1 :]])
    # Names sort by age; the number tells two runs of the same instant apart.
    number = sum(record.key.name.startswith(_run_prefix(toolset, report)) for record in records)
    key = MetadataKey(SHARED_ORG, RUN, f"{_run_prefix(toolset, report)}{number:04}")
    await transaction.put_metadata([Metadata(key, _run_value(report))])


async def read_dead_letters(reader: Reader, toolset: str) -> list[DeadLetter]:
    """Return the records set aside, by name."""
    prefix = len(toolset) + 1
    return [
        DeadLetter(record.key.name[prefix:], str(record.value["reason"]), str(record.value["excerpt"]))
        for record in await _list_own(reader, DEAD_LETTER, toolset)
    ]


async def put_dead_letters(transaction: Transaction, toolset: str, records: Sequence[DeadLetter]) -> None:
    """Keep dead letters, replacing earlier ones of the same records."""
    await transaction.put_metadata(
        [
            Metadata(_dead_letter_key(toolset, each.name), {"reason": each.reason, "excerpt": each.excerpt})
            for each in records
        ]
    )


async def remove_dead_letters(transaction: Transaction, toolset: str, names: Sequence[str]) -> None:
    """Forget that these records were set aside."""
    await transaction.remove_metadata([_dead_letter_key(toolset, name) for name in names])


def _status_key(toolset: str) -> MetadataKey:
    return MetadataKey(SHARED_ORG, STATUS, toolset)


def _dead_letter_key(toolset: str, name: str) -> MetadataKey:
    return MetadataKey(SHARED_ORG, DEAD_LETTER, f"{toolset}/{name}")


def _run_prefix(toolset: str, report: SyncReport) -> str:
    return f"{toolset}/{report.started_at.isoformat(timespec='microseconds')}/"


async def _list_own(reader: Reader, kind: str, toolset: str) -> list[Metadata]:
    records = await reader.list_metadata(kind, org=SHARED_ORG, limit=100_000)
    return [record for record in records if record.key.name.startswith(f"{toolset}/")]


def _record_name(record: Metadata) -> str:
    return record.key.name


def _run_value(report: SyncReport) -> dict[str, JsonValue]:
    counts: dict[str, JsonValue] = {name: getattr(report, name) for name in _COUNTS}
    return {
        "outcome": report.outcome,
        "kind": report.kind,
        "started_at": report.started_at.isoformat(),
        "finished_at": report.finished_at.isoformat(),
        "error": report.error,
        "changes": [[change.id, change.kind, change.version] for change in report.changes[:MAX_CHANGES]],
        **counts,
    }


_COUNTS = ("added", "changed", "withdrawn", "restored", "unchanged", "quarantined", "withheld", "missing")


def _report(record: Metadata) -> SyncReport:
    value = record.value
    changes = cast("Sequence[tuple[str, ChangeKind, int]]", value["changes"])
    report = SyncReport(
        outcome=cast("SyncOutcome", value["outcome"]),
        kind=cast("SyncKind", value["kind"]),
        started_at=datetime.fromisoformat(str(value["started_at"])),
        finished_at=datetime.fromisoformat(str(value["finished_at"])),
        changes=tuple(Change(*change) for change in changes),
        error=str(value["error"]),
    )
    return replace(report, **{name: _number(value.get(name, 0)) for name in _COUNTS})


def _instant(value: JsonValue) -> datetime | None:
    return None if value is None else datetime.fromisoformat(str(value))


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _number(value: JsonValue) -> int:
    return int(str(value))
