"""`search_azure_updates`: translates the input to a search request and the result to the output."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from functools import partial
from typing import TYPE_CHECKING

from refdesk.core.search import matching, walking
from refdesk.core.search.retrieval import Hit, SearchRequest
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.errors import Choice, InvalidInputError
from refdesk.kit.cautions import get_effects
from refdesk.kit.nearest import find_nearest
from refdesk.kit.paging import Page, explain_end
from refdesk.kit.provider import Interpreted
from refdesk.kit.walks import FARTHEST, read_page
from refdesk.model import SHARED_ORG, And, Filter, HasAll, HasAny, Not, Overlaps, SortKey, facet_key
from refdesk.toolsets.azure_updates.feeds import FEED, count_feeds, read_logged, to_feed_filter
from refdesk.toolsets.azure_updates.models import (
    AVAILABILITY,
    COLLECTION,
    DEFAULT_LIMIT,
    RETIREMENT,
    Filters,
    SearchInput,
    SearchOutput,
    UnknownValue,
    name_availability,
)
from refdesk.toolsets.azure_updates.products import name_tag
from refdesk.toolsets.azure_updates.questions import Reading, read_question
from refdesk.toolsets.azure_updates.records import MODIFIED
from refdesk.toolsets.azure_updates.results import (
    DESCRIPTION_CHARACTERS,
    get_description,
    get_modified,
    outline_update,
    show_counts,
    show_update,
)
from refdesk.toolsets.azure_updates.state import describe_data
from refdesk.toolsets.azure_updates.unknown import find_unknown
from refdesk.toolsets.azure_updates.vocabulary import complete_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from refdesk.core.context import Context
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.retrieval import SearchResult
    from refdesk.model import Document, FacetCount
    from refdesk.toolsets.azure_updates.models import ListName, Update

RELEVANCE = (SortKey("all_terms", descending=True), SortKey("lexical", descending=True), SortKey("id"))
ORDERS = {
    "modified:desc": (SortKey("modified", descending=True), SortKey("id")),
    "modified:asc": (SortKey("modified"), SortKey("id")),
    "created:desc": (SortKey("created", descending=True), SortKey("id")),
    "created:asc": (SortKey("created"), SortKey("id")),
    "title:asc": (SortKey("title"), SortKey("id")),
    "title:desc": (SortKey("title", descending=True), SortKey("id")),
    "retirement:asc": (SortKey("date_range", name=RETIREMENT), SortKey("id")),
    "retirement:desc": (SortKey("date_range", descending=True, name=RETIREMENT), SortKey("id")),
}


async def search_updates(context: Context, request: SearchInput) -> SearchOutput:
    """Return one page of the updates that match, or the one that `id` names."""
    is_one = bool(request.id.strip())
    answer = await (_get_one(context.knowledge_base, request.id.strip()) if is_one else _search(context, request))
    effects = await get_effects(context, [each.id for each in answer.results])
    if not any(effects):
        return answer
    results = [
        each.model_copy(update={"caution": effect}) if effect else each
        for each, effect in zip(answer.results, effects, strict=True)
    ]
    return answer.model_copy(update={"results": results})


async def _get_one(knowledge_base: KnowledgeBase, id: str) -> SearchOutput:
    [document] = await knowledge_base.get(COLLECTION, [id])
    results = [] if document is None else [show_update(document, relevance=None, longest=None)]
    answer = SearchOutput(results=results, total=len(results), limit=DEFAULT_LIMIT, offset=0, has_more=False)
    more: dict[str, object] = {}
    if not results:
        known = {each: each for each in await knowledge_base.store.get_digests(COLLECTION)}
        more["unknown_filter_values"] = [UnknownValue(filter="id", value=id, did_you_mean=find_nearest(id, known))]
    if notes := await describe_data(knowledge_base):
        more["notes"] = notes
    return answer.model_copy(update=more)


async def _search(context: Context, request: SearchInput) -> SearchOutput:
    knowledge_base, org = context.knowledge_base, context.principal.org
    request, completed = await _complete(knowledge_base, request)
    reading = _read(request, knowledge_base.clock.now().date())
    page, found = await _find_page(knowledge_base, request, _to_search_request(request, reading, org))
    dropped: Reading | None = None
    if reading is not None and not found.total:
        reading, dropped = None, reading
        page, found = await _find_page(knowledge_base, request, _to_search_request(request, reading, org))
    asked = request.query if reading is None else reading.text
    results, is_cut = _show(found.hits, request, is_ranked=bool(asked.strip()))
    extra: dict[str, object] = {} if page.next_cursor is None else {"next_cursor": page.next_cursor}
    if notice := matching.get_notice(matching.name(hit.strength) for hit in found.hits if asked.strip()):
        extra["notice"] = notice
    if understood := {**(_describe_reading(reading) if reading is not None else {}), **completed}:
        extra["understood"] = understood
    if request.facets:
        extra["facets"] = {name: show_counts(_count(found, name)) for name in dict.fromkeys(request.facets)}
    is_odd = not found.total or request.filters.match_any
    if is_odd and (unknown := await find_unknown(knowledge_base, request.filters)):
        extra["unknown_filter_values"] = unknown
    if (also := await _count_others(knowledge_base, request, reading, found)) > 0:
        extra["also_matches_filter"] = also
    if (not found.total or dropped is not None) and (newest := await _find_newest(knowledge_base)):
        extra["newest_update"] = newest
    if notes := [
        *await describe_data(knowledge_base),
        *_describe_dropped(dropped),
        *_explain(request, found, is_cut=is_cut),
        *_explain_end(page, found),
    ]:
        extra["notes"] = notes
    answer = SearchOutput(
        results=results,
        total=found.total,
        limit=request.limit,
        offset=page.offset,
        has_more=page.has_more,
    )
    whole = answer.model_copy(update=extra).going_on(page.cursors)
    return whole.offering(_offer(whole.unknown_filter_values))


async def _find_page(
    knowledge_base: KnowledgeBase, asked: SearchInput, request: SearchRequest
) -> tuple[Page[Document], SearchResult]:
    """Return a page, and what was found; what is listed by modification can be walked by cursors.

    Raises:
        InvalidInputError: There is a cursor, and another order.
    """
    if request.text is None and request.order in (None, ORDERS["modified:desc"]):
        find_moved = partial(_find_moved, knowledge_base)
        page, found = await read_page(
            knowledge_base, request, asked, name="search_azure_updates", ranges=MODIFIED, find_moved=find_moved
        )
        return page, replace(found, hits=tuple(Hit(each, 0.0, 0.0, None, None) for each in page.items))
    if asked.cursor is not None:
        raise InvalidInputError("A cursor goes on browsing, last modified first: leave out `query` and `sortBy`.")
    found = await knowledge_base.search(request)
    return Page([], asked.offset, asked.offset + asked.limit < found.total, ()), found


async def _find_moved(knowledge_base: KnowledgeBase, since: datetime) -> dict[str, datetime]:
    changed = [each.change.id for each in await read_logged(knowledge_base, since, knowledge_base.clock.now())]
    store = knowledge_base.store
    return await walking.find_moved(store, COLLECTION, changed, lambda each: each.recorded_at <= since)


def _count(found: SearchResult, facet: str) -> Sequence[FacetCount]:
    counted = found.facets.get(facet, ())
    return count_feeds(counted, found.total) if facet == FEED else counted


async def _complete(knowledge_base: KnowledgeBase, request: SearchInput) -> tuple[SearchInput, Mapping[str, str]]:
    """Return the request with beginnings of words completed, and what each of them was completed to."""
    if not (request.interpret and request.query.strip()):
        return request, {}
    query, completed = await complete_words(knowledge_base, request.query)
    return request.model_copy(update={"query": query}) if completed else request, completed


async def _count_others(
    knowledge_base: KnowledgeBase, request: SearchInput, reading: Reading | None, found: SearchResult
) -> int:
    """Return how many further updates pass the filters but are not found by the query."""
    wanted = _to_search_request(request, reading, SHARED_ORG)
    if wanted.where is None or wanted.text is None:
        return 0
    everything = await knowledge_base.search(SearchRequest(COLLECTION, where=wanted.where, limit=1))
    return everything.total - found.total


async def _find_newest(knowledge_base: KnowledgeBase) -> str | None:
    """Return when the most recently modified update was modified."""
    found = await knowledge_base.search(SearchRequest(COLLECTION, limit=1))
    return get_modified(found.hits[0].document) if found.hits else None


def _describe_dropped(dropped: Reading | None) -> Iterable[str]:
    """Yield a sentence if the stage and period read from the query match nothing, so that only words were searched."""
    if dropped is not None and (said := _describe_reading(dropped)):
        read = ", ".join(f"{name} {value}" for name, value in said.items())
        yield f"No update about this has {read}: these results are not limited to that."


def may_offer(arguments: Mapping[str, object]) -> bool:
    """Return whether an answer may depend on how a filter value is spelt."""
    return bool(arguments.get("filters"))


def _offer(unknown: Sequence[UnknownValue]) -> Choice | None:
    """Return the values that may have been meant, if just one value is unknown."""
    if len(unknown) != 1:
        return None
    [one] = unknown
    # If few values are known, all of them are listed, but the choice is only between similar ones.
    alike = find_nearest(facet_key(one.value), map(facet_key, one.did_you_mean))
    options = [(each, each) for each in one.did_you_mean if facet_key(each) in alike]
    if not options:
        return None
    question = f"No Azure update has {one.value!r} among its {one.filter}. Which one do you mean?"
    return Choice(("filters", one.filter), question, options, one.value)


def _to_search_request(request: SearchInput, reading: Reading | None, asker: str) -> SearchRequest:
    text = request.query if reading is None else reading.text
    conditions = [to_filter(request.filters), _to_read_filter(reading)]
    wanted = tuple(condition for condition in conditions if condition is not None)
    return SearchRequest(
        collection=COLLECTION,
        text=text if text.strip() else None,
        where=And(wanted) if wanted else None,
        semantic=request.semantic,
        order=ORDERS[request.sort_by] if request.sort_by not in (None, "relevance") else None,
        lexical_order=RELEVANCE,
        offset=min(request.offset, FARTHEST),
        limit=request.limit,
        facets=tuple(dict.fromkeys(request.facets)),
        asker=asker,
        quotes_bind=True,
    )


async def interpret(knowledge_base: KnowledgeBase, text: str, *, has_period: bool, has_tags: bool) -> Interpreted:
    """Return a question as this search reads it by default: stage and period as filters, beginnings completed.

    Args:
        knowledge_base: The knowledge base that knows the words.
        text: The question as written.
        has_period: Whether the caller gives a period separately, which then takes precedence.
        has_tags: Whether the caller gives tags separately; then no stage is read.
    """
    completed, _ = await complete_words(knowledge_base, text)
    reading = read_question(completed, knowledge_base.clock.now().date())
    reading = replace(reading, period=None if has_period else reading.period, ring=None if has_tags else reading.ring)
    said = ", ".join(f"{name} {value}" for name, value in _describe_reading(reading).items())
    note = f"Limited to what the question says: {said}." if said else ""
    return Interpreted(reading.text, _to_read_filter(reading), note)


def _read(request: SearchInput, today: date) -> Reading | None:
    """Return the stage and period that the query asks for, if wanted and not given by the caller's filters."""
    if not (request.interpret and request.semantic and request.query.strip()):
        return None
    reading, filters = read_question(request.query, today), request.filters
    if any((filters.date_from, filters.date_to, filters.modified_from, filters.modified_to)):
        reading = replace(reading, period=None)
    if filters.availability_ring is not None or filters.status.strip() or filters.tags:
        reading = replace(reading, ring=None)
    return reading


def _to_read_filter(reading: Reading | None) -> Filter | None:
    """Return the filter for a stage and a period, which applies to the stage's month or, without a stage, to any date.

    A stage without a period means the present stage.
    """
    if reading is None:
        return None
    conditions: list[Filter] = []
    if reading.rings:
        conditions.append(HasAny("availabilityRing", reading.rings))
    if reading.passed:
        conditions.append(Not(HasAny("availabilityRing", reading.passed)))
    if reading.period is not None:
        names = tuple(map(name_availability, reading.rings)) or ("modified", AVAILABILITY)
        since, until = _to_instant(reading.period.since, time.min), _to_instant(reading.period.until, time.max)
        conditions.append(Overlaps(names, since, until))
    return And(tuple(conditions)) if conditions else None


def _describe_reading(reading: Reading) -> dict[str, str]:
    period = reading.period
    said = {
        "availabilityRing": _describe_rings(reading),
        "dateFrom": period.since.isoformat() if period and period.since else None,
        "dateTo": period.until.isoformat() if period and period.until else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _describe_rings(reading: Reading) -> str | None:
    passed = f", not {' or '.join(reading.passed)}" if reading.passed else ""
    return f"{' or '.join(reading.rings)}{passed}" if reading.rings else None


def to_filter(filters: Filters) -> Filter | None:
    """Return the condition that all the filters make together; `None` when none is given."""
    lists: tuple[tuple[ListName, Iterable[str]], ...] = (
        ("tags", map(name_tag, filters.tags)),
        ("productCategories", filters.product_categories),
        ("products", filters.products),
    )
    conditions: list[Filter] = [
        (HasAny if name in filters.match_any else HasAll)(name, given)
        for name, values in lists
        if (given := tuple(values))
    ]
    if filters.status.strip():
        conditions.append(HasAll("status", (filters.status,)))
    if filters.availability_ring is not None:
        conditions.append(HasAll("availabilityRing", (filters.availability_ring,)))
    for names, first, last in (
        (("modified", AVAILABILITY), filters.date_from, filters.date_to),
        (("modified",), filters.modified_from, filters.modified_to),
    ):
        if first is not None or last is not None:
            conditions.append(Overlaps(names, _to_instant(first, time.min), _to_instant(last, time.max)))
    if filters.chosen_feed is not None:
        conditions.append(to_feed_filter(filters.chosen_feed))
    return And(tuple(conditions)) if conditions else None


def _to_instant(day: date | None, at: time) -> datetime | None:
    return None if day is None else datetime.combine(day, at, UTC)


def _show(hits: Sequence[Hit], request: SearchInput, *, is_ranked: bool) -> tuple[list[Update], bool]:
    """Return the results, and whether a description was cut so that the answer stays within its ceiling."""
    left, is_cut = DESCRIPTION_CHARACTERS, False
    results: list[Update] = []
    for place, hit in enumerate(hits):
        match = matching.name(hit.strength) if is_ranked else None
        if request.detail == "concise":
            results.append(outline_update(hit.document, match))
            continue
        longest = max(1, left // (len(hits) - place)) if request.include_description else 0
        relevance = 0.0 - round(hit.lexical, 4) if is_ranked else None
        results.append(show_update(hit.document, relevance=relevance, longest=longest, match=match))
        whole = len(get_description(hit.document))
        left -= min(longest, whole)
        is_cut = is_cut or 0 < longest < whole
    return results, is_cut


def _explain_end(page: Page[Document], found: SearchResult) -> Iterable[str]:
    if not found.hits and (said := explain_end(page, "update", "updates", found.total)) is not None:
        yield said


def _explain(request: SearchInput, found: SearchResult, *, is_cut: bool) -> Iterable[str]:
    if found.semantic in MISSING_MEANING:
        yield MISSING_MEANING[found.semantic]
    is_wanted = request.semantic and "semantic" in request.model_fields_set
    if is_wanted and request.query.strip() and request.sort_by not in (None, "relevance"):
        yield "Semantic search orders by relevance: with another sortBy these are keyword matches."
    if found.quotes_ignored:
        yield "No update holds the words in quotes as a phrase: these hold some of them."
    if is_cut:
        yield "Long descriptions are cut; fetch an update by id to read it whole."
