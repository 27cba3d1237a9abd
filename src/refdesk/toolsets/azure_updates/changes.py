"""What syncs changed, by date and page by page, and the history of one update."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, TypeVar

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.errors import NotFoundError
from refdesk.kit.nearest import find_nearest
from refdesk.kit.paging import Page, cut, explain_end, find_place
from refdesk.model import State, facet_key
from refdesk.toolsets.azure_updates.change_models import (
    ChangesInput,
    ChangesOutput,
    DatedChange,
    HistoryInput,
    HistoryOutput,
    HistoryVersion,
)
from refdesk.toolsets.azure_updates.comparing import compare
from refdesk.toolsets.azure_updates.errors import ERRORS, SCOPES
from refdesk.toolsets.azure_updates.feeds import read_logged
from refdesk.toolsets.azure_updates.models import COLLECTION, Filters
from refdesk.toolsets.azure_updates.results import show_instant
from refdesk.toolsets.azure_updates.state import describe_data
from refdesk.toolsets.azure_updates.unknown import find_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.background.change_log import LoggedChange
    from refdesk.core.context import Context
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.kit.paging import Rank
    from refdesk.model import Revision
    from refdesk.toolsets.azure_updates.change_models import ChangeKind
    from refdesk.toolsets.azure_updates.models import UnknownValue

A = TypeVar("A", ChangesOutput, HistoryOutput)

MOST_READ = 500
"""How many documents are read at a time to see their products."""


async def list_changes(context: Context, asked: ChangesInput) -> ChangesOutput:
    """Return one page of the changes within the days asked for, newest first."""
    knowledge_base = context.knowledge_base
    since = None if asked.date_from is None else datetime.combine(asked.date_from, time.min, UTC)
    now = knowledge_base.clock.now()
    until = now if asked.date_to is None else datetime.combine(asked.date_to, time.max, UTC)
    logged = await read_logged(knowledge_base, since, min(until, now))
    wanted = [each for each in logged if not asked.kinds or each.change.kind in asked.kinds]
    unknown: list[UnknownValue] = []
    if asked.products:
        wanted, met = await _keep_products(knowledge_base, wanted, asked.products)
        strange = [product for product in asked.products if facet_key(product) not in met]
        unknown = await find_unknown(knowledge_base, Filters(products=strange))
    page = cut(wanted, _get_key, find_place(asked, "list_azure_changes", (0.0, "", 0), now), asked.limit)
    answer = ChangesOutput(
        changes=[await _show(knowledge_base, each) for each in page.items],
        total=len(wanted),
        limit=asked.limit,
        offset=page.offset,
        has_more=page.has_more,
    )
    extra: dict[str, object] = {"unknown_filter_values": unknown} if unknown else {}
    end = explain_end(page, "change", "changes", len(wanted))
    return await _complete(knowledge_base, answer.model_copy(update=extra).going_on(page.cursors), page, end)


def _get_key(logged: LoggedChange) -> Rank:
    return -logged.at.timestamp(), logged.change.id, -logged.change.version


async def _complete(knowledge_base: KnowledgeBase, answer: A, page: Page[Any], end: str | None) -> A:
    """Return a page with where the next one begins, and with what is to be known of it."""
    notes = [*await describe_data(knowledge_base), *filter(None, [end])]
    more = {"next_cursor": page.next_cursor, "notes": notes}
    return answer.model_copy(update={name: value for name, value in more.items() if value})


async def _keep_products(
    knowledge_base: KnowledgeBase, changes: Sequence[LoggedChange], products: Sequence[str]
) -> tuple[list[LoggedChange], set[str]]:
    """Return the changes of updates that have, or had when withdrawn, one of the products, and which were found."""
    keys = {facet_key(product) for product in products}
    ids = sorted({each.change.id for each in changes})
    kept: set[str] = set()
    met: set[str] = set()
    for start in range(0, len(ids), MOST_READ):
        documents = await knowledge_base.store.get_documents(COLLECTION, ids[start : start + MOST_READ])
        for document in filter(None, documents):
            if held := keys & set(map(facet_key, document.facets.get("products", ()))):
                kept.add(document.id)
                met |= held
    return [each for each in changes if each.change.id in kept], met


async def _show(knowledge_base: KnowledgeBase, logged: LoggedChange) -> DatedChange:
    change = logged.change
    history = await knowledge_base.get_history(COLLECTION, change.id)
    versions = {revision.document.version: revision.document for revision in history}
    after, before = versions.get(change.version), versions.get(change.version - 1)
    shown = DatedChange(
        at=show_instant(logged.at),
        id=change.id,
        title=after.title if after is not None else "",
        change=change.kind,
        version=change.version,
    )
    fields = compare(before, after) if before is not None and after is not None else []
    return shown.model_copy(update={"fields": fields}) if fields else shown


async def get_history(context: Context, asked: HistoryInput) -> HistoryOutput:
    """Return every version of an update that differs from the one before, newest first."""
    knowledge_base, id = context.knowledge_base, asked.id.strip()
    revisions = await knowledge_base.get_history(COLLECTION, id)
    if not revisions:
        known = {each: each for each in await knowledge_base.store.get_digests(COLLECTION)}
        near = find_nearest(id, known)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise NotFoundError(f"There never was an update {id!r}. Use an id that search_azure_updates returned.{hint}")
    pairs = zip([None, *revisions], revisions, strict=False)
    shown = [version for before, after in pairs if (version := _show_version(before, after)) is not None]
    last = revisions[-1].document
    shown.reverse()
    place = find_place(asked, "get_azure_update_history", (0,), knowledge_base.clock.now())
    page = cut(shown, lambda version: (-version.version,), place, asked.limit)
    answer = HistoryOutput(
        id=id,
        title=last.title,
        is_withdrawn=last.state is State.WITHDRAWN,
        versions=list(page.items),
        total=len(shown),
        limit=asked.limit,
        offset=page.offset,
        has_more=page.has_more,
    ).going_on(page.cursors)
    return await _complete(knowledge_base, answer, page, explain_end(page, "version", "versions", len(shown)))


def _show_version(before: Revision | None, after: Revision) -> HistoryVersion | None:
    """Return a version, or `None` if it differs from the one before only in how refdesk renders it."""
    was_there = before is not None and before.document.state is not State.WITHDRAWN
    is_there = after.document.state is not State.WITHDRAWN
    fields = compare(before.document, after.document, quoting=True) if before is not None else []
    if was_there and is_there and not fields:
        return None
    names: dict[tuple[bool, bool], ChangeKind] = {(True, True): "changed", (True, False): "withdrawn"}
    kind = "added" if before is None else names.get((was_there, is_there), "restored")
    version = HistoryVersion(version=after.document.version, at=show_instant(after.recorded_at), change=kind)
    return version.model_copy(update={"fields": fields}) if fields else version


LIST_CHANGES = Operation(
    name="list_azure_changes",
    title="List changes of Azure updates",
    description=(
        "List what was added, changed, withdrawn or restored among Azure updates between two days, newest first, "
        "field by field and page by page: also edits that leave an update's own dates as they were."
    ),
    input=ChangesInput,
    output=ChangesOutput,
    handler=list_changes,
    scopes=SCOPES,
    effects=READS,
    route=Route("POST", "/azure-updates/changes"),
    errors=ERRORS,
    shortening=Shortening("changes", pages=True),
    examples=({"dateFrom": "2026-11-01", "dateTo": "2026-11-30", "kinds": ["withdrawn"]}, {"limit": 20, "offset": 20}),
)

GET_HISTORY = Operation(
    name="get_azure_update_history",
    title="Get an Azure update's history",
    description="See every version of one Azure update, newest first: when it was met, and what had changed, quoted.",
    input=HistoryInput,
    output=HistoryOutput,
    handler=get_history,
    scopes=SCOPES,
    effects=READS,
    route=Route("POST", "/azure-updates/history"),
    errors={**ERRORS, "NOT_FOUND": "There never was an update of this id."},
    shortening=Shortening("versions", ("fields",), pages=True),
    examples=({"id": "569743"},),
)
