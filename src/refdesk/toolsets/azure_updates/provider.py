"""The search provider of azure-updates: hybrid search, fused by the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.background import sync_log
from refdesk.core.search import federation
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.federation import HitReference, ProviderAnswer, ProviderHit, Question, SearchProvider
from refdesk.core.search.retrieval import SearchRequest
from refdesk.core.search.snippets import snippet
from refdesk.model import And, Filter, HasAny, Overlaps
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.results import get_public_page
from refdesk.toolsets.azure_updates.search import describe_age

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.search.retrieval import Hit
    from refdesk.model import TextQuery

OPERATION = "search_azure_updates"
SOURCE = "Microsoft"


async def find(context: Context, question: Question) -> ProviderAnswer:
    """Return the matching updates; the period is that of their last change according to the feed."""
    request = SearchRequest(
        COLLECTION,
        question.text,
        where=_to_filter(question),
        semantic=True,
        limit=question.limit,
        asker=context.principal.org,
    )
    base, text = context.knowledge_base, parse_query(question.text)
    found = await base.search(request)
    status = await sync_log.read_status(base.store, TOOLSET_NAME)
    notes = [*describe_age(status.last_success, base.clock.now()), await federation.explain_meaning(context, question)]
    return ProviderAnswer(
        tuple(_to_hit(hit, text) for hit in found.hits),
        total=found.total,
        as_of=status.last_success,
        note=" ".join(note for note in notes if note),
    )


def _to_filter(question: Question) -> Filter | None:
    conditions: list[Filter] = [HasAny("tags", federation.spell(tag)) for tag in question.tags]
    if question.period.is_bounded:
        conditions.append(Overlaps(("modified",), question.period.since, question.period.until))
    return And(tuple(conditions)) if conditions else None


def _to_hit(hit: Hit, text: TextQuery) -> ProviderHit:
    update, excerpt = hit.document, federation.get_excerpt(hit.document.body, hit.passage)
    return ProviderHit(
        id=update.id,
        title=update.title,
        snippet=snippet(update.body, text, hit.passage),
        relevance=federation.judge_hit(text, update.title, excerpt, hit.cosine, hit.score),
        freshness=update.modified_at,
        source=SOURCE,
        reference=HitReference(OPERATION, {"id": update.id}, get_public_page(update.id)),
    )


PROVIDER = SearchProvider(OPERATION, frozenset({"updates:read"}), find)
