"""The prompt of azure-updates: what changed for a product, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from refdesk.core.operations import Completions, Prompt, PromptArgument
from refdesk.model import facet_key
from refdesk.toolsets.azure_updates.models import COLLECTION

if TYPE_CHECKING:
    from refdesk.core.context import Context

MOST_COMPLETIONS = 100
"""The protocol allows no more."""


def write_changes(filled: Mapping[str, str]) -> str:
    """Return instructions for surveying what changed."""
    about = f"the Azure product {filled['product']}" if "product" in filled else "Azure"
    chosen = f', filters {{"products": ["{filled["product"]}"]}}' if "product" in filled else ""
    since = filled.get("since", "three months ago")
    return (
        f"Tell me what changed for {about} since {since}, and what I have to do about it.\n\n"
        f"1. Call search_azure_updates with `includeDescription` false{chosen} and `dateFrom` {since} in the filters, "
        "and page on while `hasMore` is true.\n"
        '2. Once more with availabilityRing "Retirement" and without `dateFrom`: what is being retired matters '
        "whenever it was announced.\n"
        "3. Fetch by `id` what needs action or is not clear from its title.\n"
        "4. Answer with a table: date, what changed, what to do and by when; deadlines first. Cite the `url` of each, "
        "and say from when the data is."
    )


async def complete_product(context: Context, written: str) -> Completions:
    """Return products named in updates, most frequent first: by their beginning, then by any part of them."""
    from refdesk.core.search.retrieval import SearchRequest  # not at the start

    found = await context.knowledge_base.search(SearchRequest(COLLECTION, limit=1, facets=("products",)))
    names = [count.value for count in found.facets["products"]]
    text = facet_key(written)
    first = [name for name in names if facet_key(name).startswith(text)]
    matching = dict.fromkeys([*first, *(name for name in names if text in facet_key(name))])
    return Completions(tuple(matching)[:MOST_COMPLETIONS], len(matching) > MOST_COMPLETIONS)


CHANGES = Prompt(
    name="whats_changed_in_azure",
    title="What changed in Azure?",
    description="Survey what is new, changing or being retired, for one product or all, and what to do by when.",
    tools=("search_azure_updates",),
    writer=write_changes,
    arguments=(
        PromptArgument("product", "As Microsoft calls it; all if left out.", completer=complete_product),
        PromptArgument("since", "A day, such as 2026-06-01; three months ago if left out."),
    ),
)

PROMPTS = (CHANGES,)
