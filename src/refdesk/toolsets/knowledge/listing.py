"""Lists all entries, their tags and their authors, without a query: page by page, with the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.core.search.retrieval import SearchRequest
from refdesk.kit.paging import cut, explain_end, find_place
from refdesk.kit.walks import read_page
from refdesk.model import And, Filter, HasAll, InState, Overlaps, SortKey, State
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.counting import count, find_unknown_tags, has_not_expired
from refdesk.toolsets.knowledge.listing_models import (
    AuthorCount,
    AuthorsInput,
    AuthorsOutput,
    ListedEntry,
    ListInput,
    ListOutput,
    TagCount,
    TagsInput,
    TagsOutput,
)

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.kit.paging import Page, Rank
    from refdesk.model import Document, FacetCount

NEWEST_FIRST = (SortKey("created", descending=True), SortKey("id"))


async def list_knowledge(context: Context, asked: ListInput) -> ListOutput:
    """Return one page of the caller's org's entries, newest first, ties by id."""
    conditions: list[Filter] = []
    if asked.tags:
        conditions.append(HasAll(models.TAGS, tuple(asked.tags)))
    if asked.author is not None:
        conditions.append(HasAll(models.AUTHOR, (asked.author,)))
    since, until = asked.period
    if since is not None or until is not None:
        conditions.append(Overlaps((models.CREATED,), since, until))
    if not asked.include_superseded:
        conditions.append(InState((State.CURRENT,)))
    if not asked.include_expired:
        conditions.append(has_not_expired(context))
    request = SearchRequest(
        models.get_collection(context.principal.org),
        where=And(tuple(conditions)) if conditions else None,
        order=NEWEST_FIRST,
        limit=asked.limit,
    )
    page, found = await read_page(context.knowledge_base, request, asked, name="list_knowledge", ranges=models.CREATED)
    return ListOutput(
        entries=[_to_entry(document) for document in page.items],
        total=found.total,
        offset=page.offset,
        has_more=page.has_more,
        next_cursor=page.next_cursor,
        notice=explain_end(page, "entry", "entries", found.total),
        unknown_tags=None if found.total else await find_unknown_tags(context, asked.tags),
    ).going_on(page.cursors)


async def list_tags(context: Context, asked: TagsInput) -> TagsOutput:
    """Return the tags of the entries that hold now, most frequent first, ties by tag."""
    page, total = await _cut(context, asked, models.TAGS)
    return TagsOutput(
        tags=[TagCount(tag=each.value, entries=each.count) for each in page.items],
        total=total,
        has_more=page.has_more,
        next_cursor=page.next_cursor,
        notice=explain_end(page, "tag", "tags", total),
    ).going_on(page.cursors)


async def list_authors(context: Context, asked: AuthorsInput) -> AuthorsOutput:
    """Return the agents whose entries hold now, those with the most first, ties by name."""
    page, total = await _cut(context, asked, models.AUTHOR)
    return AuthorsOutput(
        authors=[AuthorCount(author=each.value, entries=each.count) for each in page.items],
        total=total,
        has_more=page.has_more,
        next_cursor=page.next_cursor,
        notice=explain_end(page, "agent", "agents", total),
    ).going_on(page.cursors)


async def _cut(context: Context, asked: TagsInput | AuthorsInput, facet: str) -> tuple[Page[FacetCount], int]:
    """Return a page of the values of a facet, most frequent first, and how many there are."""
    counts = sorted(await count(context, facet), key=_get_key)
    place = find_place(asked, f"knowledge {facet}", (0, ""), context.knowledge_base.clock.now())
    return cut(counts, _get_key, place, asked.limit), len(counts)


def _get_key(counted: FacetCount) -> Rank:
    return -counted.count, counted.value


def _to_entry(document: Document) -> ListedEntry:
    return ListedEntry(
        id=document.id,
        title=document.title,
        tags=models.get_tags(document),
        confidence=models.get_confidence(document),
        author=document.author,
        created_at=document.created_at,
        expires_at=models.get_expiry(document),
        is_superseded=document.state is State.SUPERSEDED,
    )


_SCOPE = "knowledge:read"
_ERRORS = {
    "INVALID_INPUT": "An argument is missing, malformed or out of range.",
    "PERMISSION_DENIED": f"The credential lacks the scope {_SCOPE}.",
    "UNAUTHENTICATED": "The request carries no valid credential.",
    "STORE_UNAVAILABLE": "The storage engine failed; try again later.",
}

LIST_KNOWLEDGE = Operation(
    name="list_knowledge",
    title="List knowledge",
    description="List entries without a query, newest first, page by page: all, those with certain tags, an agent's.",
    input=ListInput,
    output=ListOutput,
    handler=list_knowledge,
    scopes=frozenset({_SCOPE}),
    effects=READS,
    route=Route("POST", "/knowledge/list"),
    errors=_ERRORS,
    shortening=Shortening("entries", pages=True),
    examples=({}, {"tags": ["refunds"], "limit": 20}),
)

LIST_TAGS = Operation(
    name="list_tags",
    title="List tags",
    description="List the tags that entries carry, most frequent first, with how many carry each.",
    input=TagsInput,
    output=TagsOutput,
    handler=list_tags,
    scopes=frozenset({_SCOPE}),
    effects=READS,
    route=Route("GET", "/knowledge/tags"),
    errors=_ERRORS,
    shortening=Shortening("tags", pages=True),
    examples=({},),
)

LIST_AUTHORS = Operation(
    name="list_authors",
    title="List authors",
    description="List the agents that wrote entries, those with the most first, with how many of each hold now.",
    input=AuthorsInput,
    output=AuthorsOutput,
    handler=list_authors,
    scopes=frozenset({_SCOPE}),
    effects=READS,
    route=Route("GET", "/knowledge/authors"),
    errors=_ERRORS,
    shortening=Shortening("authors", pages=True),
    examples=({},),
)
