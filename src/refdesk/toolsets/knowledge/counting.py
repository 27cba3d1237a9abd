"""Counts of the entries that hold now, by tag and by author, and suggestions for unknown tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search.retrieval import SearchRequest
from refdesk.kit.nearest import find_nearest
from refdesk.model import And, Filter, InState, Not, Overlaps, State
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.models import UnknownTag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.context import Context
    from refdesk.model import FacetCount


async def find_unknown_tags(context: Context, tags: Sequence[str]) -> list[UnknownTag] | None:
    """Return the tags that no entry has, each with the most similar known tags; `None` if all are known."""
    if not tags:
        return None
    known: Mapping[str, int] = {each.value: each.count for each in await count(context, models.TAGS)}
    unknown = [UnknownTag(tag=tag, did_you_mean=find_nearest(tag, known)) for tag in tags if tag not in known]
    return unknown or None


async def count(context: Context, facet: str) -> Sequence[FacetCount]:
    """Return how many of the entries that hold now have each value of a facet, most first."""
    where = And((InState((State.CURRENT,)), has_not_expired(context)))
    place = models.get_collection(context.principal.org)
    found = await context.knowledge_base.search(SearchRequest(place, where=where, limit=1, facets=(facet,)))
    return found.facets.get(facet, ())


def has_not_expired(context: Context) -> Filter:
    """Return the condition that an entry has not expired."""
    return Not(Overlaps((models.EXPIRES,), until=context.knowledge_base.clock.now()))
