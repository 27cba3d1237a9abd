"""What the resources of azure-updates answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from refdesk.toolsets.azure_updates.change_models import UpdateChange
from refdesk.toolsets.azure_updates.models import Answer, FacetValue


class Guide(Answer):
    """The values that filters can take, and how fresh the data is."""

    tags: list[str]
    product_categories: list[str]
    products: list[str]
    statuses: list[str]
    availability_rings: list[str]
    total_updates: int
    last_sync_timestamp: str | None = Field(description="When the last sync succeeded; null when none ever did.")
    data_freshness_hours: float | None = Field(
        description="Hours since then, one decimal place; null likewise, and where then is later than now."
    )
    query_tips: list[str] = Field(default_factory=list[str])
    notes: list[str] = Field(default_factory=list[str], description="What to know about the data, such as its age.")


class SyncRun(Answer):
    """One sync. `changes` holds at most the first few; `changesOmitted` says how many more there were."""

    kind: Literal["full", "delta"]
    outcome: Literal["succeeded", "failed"]
    started_at: str
    finished_at: str
    added: int
    changed: int
    withdrawn: int
    restored: int
    unchanged: int
    quarantined: int
    withheld: int = Field(default=0, description="Gone from the feed and kept: suspiciously many, or some are missing.")
    missing: int = Field(default=0, description="How many the feed says it holds beyond those that it gave.")
    error: str = ""
    changes: list[UpdateChange]
    changes_omitted: int = 0


class Changelog(Answer):
    """The recent syncs, newest first. `list_azure_changes` has all changes, by date."""

    runs: list[SyncRun]
    notes: list[str] = Field(default_factory=list[str], description="What to know about the data, such as its age.")


class MonthCount(Answer):
    """The updates last modified in one month, in all and by product category."""

    month: str
    updates: int
    product_categories: list[FacetValue]


class QuarantinedRecord(Answer):
    """A record of the feed that could not be read, and why."""

    id: str
    reason: str


class Statistics(Answer):
    """Counts over everything, and the last twelve months one by one, newest first."""

    total_updates: int
    statuses: list[FacetValue]
    tags: list[FacetValue]
    product_categories: list[FacetValue]
    products: list[FacetValue] = Field(description="The twenty most frequent.")
    availability_rings: list[FacetValue]
    months: list[MonthCount]
    quarantined: list[QuarantinedRecord]
    last_sync_timestamp: str | None
    last_full_sync_timestamp: str | None
    notes: list[str] = Field(default_factory=list[str], description="What to know about the data, such as its age.")
