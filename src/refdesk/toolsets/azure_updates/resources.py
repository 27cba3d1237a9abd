"""The resources of azure-updates: the guide, the changelog and the statistics."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, cast

from refdesk.core.background import sync_log
from refdesk.core.operations import Resource, Route
from refdesk.core.search.retrieval import SearchRequest
from refdesk.kit.age import get_age_hours
from refdesk.model import Overlaps, facet_key
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.change_models import UpdateChange
from refdesk.toolsets.azure_updates.comparing import compare
from refdesk.toolsets.azure_updates.errors import READ_ERRORS, SCOPES
from refdesk.toolsets.azure_updates.feeds import list_feeds, name_source
from refdesk.toolsets.azure_updates.models import COLLECTION, FACETS, RINGS
from refdesk.toolsets.azure_updates.resource_models import (
    Changelog,
    Guide,
    MonthCount,
    QuarantinedRecord,
    Statistics,
    SyncRun,
)
from refdesk.toolsets.azure_updates.results import show_counts, show_instant
from refdesk.toolsets.azure_updates.state import describe_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.background.sync_log import Change, SyncReport
    from refdesk.core.context import Context
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import FacetCount
    from refdesk.toolsets.azure_updates.settings import Feed

MONTHS = 12
MOST_PRODUCTS = 20
MOST_RUNS = 20
MOST_DETAILED = 100
"""How many changes the changelog shows in full, over all runs together."""

QUERY_TIPS = (
    "Filters are all AND, between and inside lists; matchAny names lists of which one value is enough. An answer "
    "without results says which value is unknown.",
    'Words in double quotes are a phrase that must occur: "managed identity". Of the other words any may match.',
    "For retirements use availabilityRing Retirement with dateFrom and dateTo and sortBy retirement:asc, or say it in "
    "the query: retired before June 2027. The source knows months; titleDate is the day that a title names.",
    "Set includeDescription to false to survey many updates, then fetch one by id.",
)


async def read_guide(context: Context) -> Guide:
    """Return the values that filters can take, each list in alphabetical order, and how fresh the data is."""
    knowledge_base = context.knowledge_base
    found = await knowledge_base.search(SearchRequest(COLLECTION, limit=1, facets=FACETS))
    status = await sync_log.read_status(knowledge_base.store, TOOLSET_NAME)
    last = status.last_success
    guide = Guide(
        tags=_sort_values(found.facets["tags"]),
        product_categories=_sort_values(found.facets["productCategories"]),
        products=_sort_values(found.facets["products"]),
        statuses=_sort_values(found.facets["status"]),
        availability_rings=list(RINGS),
        total_updates=found.total,
        last_sync_timestamp=None if last is None else show_instant(last),
        data_freshness_hours=None if last is None else get_age_hours(last, knowledge_base.clock.now()),
        query_tips=list(QUERY_TIPS),
    )
    notes = await describe_data(knowledge_base)
    return guide.model_copy(update={"notes": notes}) if notes else guide


async def read_changelog(context: Context) -> Changelog:
    """Return the recent syncs, newest first, with what each changed, as found in the revisions kept."""
    runs = [run for _, run in await list_runs(context)]
    return Changelog.model_validate({"runs": runs, **await read_notes(context)})


async def list_runs(context: Context) -> list[tuple[Feed, SyncRun]]:
    """Return the recent syncs of all feeds with their feeds, newest first."""
    base = context.knowledge_base
    reports: list[tuple[Feed, SyncReport]] = []
    for one in list_feeds(base):
        for each in await sync_log.read_runs(base.store, name_source(one)):
            reports.append((one, each))  # noqa: PERF401 - of a comprehension the feed's type would be lost
    reports.sort(key=lambda each: each[1].started_at, reverse=True)
    left = MOST_DETAILED
    runs: list[tuple[Feed, SyncRun]] = []
    for feed, report in reports[:MOST_RUNS]:
        changes = [await _describe_change(base, each) for each in report.changes[:left]]
        left -= len(changes)
        runs.append((feed, _show_run(report, changes)))
    return runs


async def read_notes(context: Context) -> dict[str, list[str]]:
    """Return notes on the state of the data as the field that carries them; empty if all is well."""
    notes = await describe_data(context.knowledge_base)
    return {"notes": notes} if notes else {}


async def read_statistics(context: Context) -> Statistics:
    """Return counts over everything and over each of the last twelve months, the present one first."""
    knowledge_base = context.knowledge_base
    found = await knowledge_base.search(SearchRequest(COLLECTION, limit=1, facets=FACETS))
    status = await sync_log.read_status(knowledge_base.store, TOOLSET_NAME)
    sources = map(name_source, list_feeds(knowledge_base))
    set_aside = [each for name in sources for each in await sync_log.read_dead_letters(knowledge_base.store, name)]
    now, notes = knowledge_base.clock.now(), await describe_data(knowledge_base)
    statistics = Statistics(
        total_updates=found.total,
        statuses=show_counts(found.facets["status"]),
        tags=show_counts(found.facets["tags"]),
        product_categories=show_counts(found.facets["productCategories"]),
        products=show_counts(found.facets["products"][:MOST_PRODUCTS]),
        availability_rings=show_counts(found.facets["availabilityRing"]),
        months=[await _count_month(knowledge_base, *_get_month_before(now, back)) for back in range(MONTHS)],
        quarantined=[QuarantinedRecord(id=each.name, reason=each.reason) for each in set_aside],
        last_sync_timestamp=status.last_success and show_instant(status.last_success),
        last_full_sync_timestamp=status.last_full and show_instant(status.last_full),
    )
    return statistics.model_copy(update={"notes": notes}) if notes else statistics


def _sort_values(counts: Sequence[FacetCount]) -> list[str]:
    return sorted((each.value for each in counts), key=lambda value: (facet_key(value), value))


async def _count_month(knowledge_base: KnowledgeBase, year: int, month: int) -> MonthCount:
    first = datetime(year, month, 1, tzinfo=UTC)
    last = datetime(year, month, monthrange(year, month)[1], 23, 59, 59, 999_999, tzinfo=UTC)
    where = Overlaps(("modified",), first, last)
    found = await knowledge_base.search(SearchRequest(COLLECTION, where=where, limit=1, facets=("productCategories",)))
    return MonthCount(
        month=f"{year:04}-{month:02}",
        updates=found.total,
        product_categories=show_counts(found.facets["productCategories"]),
    )


def _get_month_before(now: datetime, months: int) -> tuple[int, int]:
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    return year, month + 1


def _show_run(report: SyncReport, changes: list[UpdateChange]) -> SyncRun:
    optional: dict[str, object] = {"error": report.error} if report.error else {}
    for name in ("withheld", "missing"):
        if getattr(report, name):
            optional[name] = getattr(report, name)
    if report.written > len(changes):
        optional["changes_omitted"] = report.written - len(changes)
    run = SyncRun(
        kind=report.kind,
        outcome=cast("Literal['succeeded', 'failed']", report.outcome),
        started_at=show_instant(report.started_at),
        finished_at=show_instant(report.finished_at),
        added=report.added,
        changed=report.changed,
        withdrawn=report.withdrawn,
        restored=report.restored,
        unchanged=report.unchanged,
        quarantined=report.quarantined,
        changes=changes,
    )
    return run.model_copy(update=optional)


async def _describe_change(knowledge_base: KnowledgeBase, change: Change) -> UpdateChange:
    history = await knowledge_base.get_history(COLLECTION, change.id)
    versions = {revision.document.version: revision.document for revision in history}
    after, before = versions[change.version], versions.get(change.version - 1)
    shown = UpdateChange(id=change.id, title=after.title, change=change.kind, version=change.version)
    fields = compare(before, after) if before is not None else []
    return shown.model_copy(update={"fields": fields}) if fields else shown


RESOURCES = (
    Resource(
        uri="azure-updates://guide",
        name="Azure Updates Search Guide",
        description=(
            "Available filter values and usage guide: every tag, category, product, status and ring that "
            "search_azure_updates can filter by, how many updates there are and how fresh they are."
        ),
        output=Guide,
        reader=read_guide,
        scopes=SCOPES,
        route=Route("GET", "/azure-updates/guide"),
        is_public=True,
        errors=READ_ERRORS,
        volatile=frozenset({"dataFreshnessHours"}),
    ),
    Resource(
        uri="azure-updates://changelog",
        name="Azure Updates Changelog",
        description="The recent syncs of the feed and what each added, changed, withdrew or restored, field by field.",
        output=Changelog,
        reader=read_changelog,
        scopes=SCOPES,
        route=Route("GET", "/azure-updates/changelog"),
        is_public=True,
        errors=READ_ERRORS,
    ),
    Resource(
        uri="azure-updates://stats",
        name="Azure Updates Statistics",
        description="Counts by status, tag, category, product and ring, and by month over the last year.",
        output=Statistics,
        reader=read_statistics,
        scopes=SCOPES,
        route=Route("GET", "/azure-updates/stats"),
        is_public=True,
        errors=READ_ERRORS,
        max_age_seconds=300,
    ),
)
