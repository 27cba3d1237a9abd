"""Suggests what may have been meant by filter values that no update has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search.retrieval import SearchRequest
from refdesk.kit.nearest import MOST, find_nearest
from refdesk.model import facet_key
from refdesk.toolsets.azure_updates.models import COLLECTION, FACETS, UnknownValue
from refdesk.toolsets.azure_updates.products import list_meant, name_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.toolsets.azure_updates.models import Filters

FEW = 6
"""If a filter has at most this many values, all are suggested when none is similar."""


async def find_unknown(knowledge_base: KnowledgeBase, filters: Filters) -> list[UnknownValue]:
    """Return the filter values that no update has, each with those that may have been meant."""
    asked = {
        "tags": list(map(name_tag, filters.tags)),
        "productCategories": filters.product_categories,
        "products": filters.products,
        "status": [filters.status] if filters.status.strip() else [],
    }
    if not any(asked.values()):
        return []
    found = await knowledge_base.search(SearchRequest(COLLECTION, limit=1, facets=FACETS))
    # Most frequent first, as the facets come.
    known = {name: {facet_key(each.value): each.value for each in counts} for name, counts in found.facets.items()}
    return [
        _describe(name, value, known)
        for name, values in asked.items()
        for value in dict.fromkeys(values)
        if facet_key(value) not in known[name]
    ]


def _describe(name: str, value: str, known: Mapping[str, Mapping[str, str]]) -> UnknownValue:
    key = facet_key(value)
    unknown = UnknownValue(filter=name, value=value, did_you_mean=_suggest(name, key, known[name]))
    elsewhere = next((other for other in FACETS if key in known[other]), None)
    return unknown if elsewhere is None else unknown.model_copy(update={"is_among": elsewhere})


def _suggest(name: str, key: str, known: Mapping[str, str]) -> list[str]:
    """Return known values: those also called so, then those spelt alike; else all if few, or the most frequent."""
    called = [known[each] for other in list_meant(key) if (each := facet_key(other)) in known] * (name == "products")
    near = list(dict.fromkeys([*called, *(known[each] for each in find_nearest(key, known))]))
    return near[:MOST] if near else list(known.values())[: len(known) if len(known) <= FEW else MOST]
