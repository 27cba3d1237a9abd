"""Pages of lists of documents, newest first: by an offset, or after the last document shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from refdesk.core.keeping.encoding import decode_instant, encode_instant
from refdesk.core.search import walking
from refdesk.core.search.walking import Walk
from refdesk.kit.paging import Page, find_place, refuse_cursor

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.retrieval import SearchRequest, SearchResult
    from refdesk.kit.paging import Asked, Place
    from refdesk.model import Document

FARTHEST = 10**9
"""The largest offset that is considered; beyond it every page is empty anyway."""

FindMoved: TypeAlias = Callable[[datetime], Awaitable[Mapping[str, datetime]]]
"""Returns the documents changed since an instant, and what ordered them before; see `walking.find_moved`."""


async def read_page(
    base: KnowledgeBase,
    request: SearchRequest,
    asked: Asked,
    *,
    name: str,
    ranges: str,
    find_moved: FindMoved | None = None,
) -> tuple[Page[Document], SearchResult]:
    """Return a page, and a search result with the total and the facets.

    Args:
        base: Where the documents are.
        request: What is listed, ordered by the instant of creation or change and then by id; its offset is ignored.
        asked: The page that the caller asks for.
        name: The name of the list.
        ranges: The name of the date range that holds the instant by which the list is ordered.
        find_moved: Required if a change moves a document to another place in the list.

    Raises:
        InvalidInputError: The cursor is not one of this list.
    """
    place = find_place(asked, name, (0, ""), base.clock.now())
    walk = Walk(request.collection, request.where, ranges, find_moved is None)
    if not place.key:
        found = await base.search(replace(request, offset=min(asked.offset, FARTHEST)))
        return _make_page(
            walk, place, [hit.document for hit in found.hits], found.total > asked.offset + asked.limit
        ), found
    found = await base.search(replace(request, limit=1))
    last = _read_last(place)
    if find_moved is not None:
        walk = replace(walk, moved=await find_moved(place.begun))
    ids = await walking.list_next(base.store, walk, last, asked.limit + 1)
    documents = [each for each in await base.get(walk.collection, ids[: asked.limit]) if each is not None]
    return _make_page(walk, place, documents, len(ids) > asked.limit), found


def _make_page(walk: Walk, place: Place, documents: Sequence[Document], has_more: bool) -> Page[Document]:
    keys = [(encode_instant(walking.get_instant(walk, each)), each.id) for each in documents]
    return Page(documents, place.shown, has_more, [place.go_on(key, count) for count, key in enumerate(keys, 1)])


def _read_last(place: Place) -> tuple[datetime, str]:
    instant, id = cast("tuple[int, str]", place.key)
    try:
        return decode_instant(instant), id
    except OverflowError:
        raise refuse_cursor() from None
