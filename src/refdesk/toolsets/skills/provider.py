"""The search provider of skills: the toolset's own ranking. Being returned here does not count as use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search import federation, matching
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.providers import HitReference, LeftOut, ProviderAnswer, ProviderHit, Question
from refdesk.core.search.retrieval import SearchRequest
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.core.search.snippets import snippet
from refdesk.kit.unknown_tags import explaining
from refdesk.model import And, Filter, HasAny, Or, Overlaps
from refdesk.toolsets.skills import openings, records, resources
from refdesk.toolsets.skills.operations import GET, tell_status
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import CosineScale, TextQuery
    from refdesk.toolsets.skills.queries import FoundSkill


async def find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    """Return the skills found; the period is that of their last refinement, their labels are area and issue type."""
    base = context.knowledge_base
    embedder = await base.semantics.get_active() if base.semantics is not None else None
    asked = openings.leave_pleasantries(question.text)
    vector, status = await base.embed_query(asked, context.principal.org)
    embedding = vector.vector.tolist() if vector is not None else ()
    found = await get_queries(context, embedder).hybrid_search(
        embedding,
        asked,
        question.limit,
        where=_to_filter(question),
        trust=vector.trust if vector is not None else 1.0,
    )
    text = parse_query(asked)
    scale = vector.scale if vector is not None else None
    hits = tuple(_to_hit(match, text, scale) for match in found)
    semantic = tell_status(status, found)
    return ProviderAnswer(hits, note=MISSING_MEANING.get(semantic, ""), semantic=semantic)


def _to_filter(question: Question) -> Filter | None:
    conditions: list[Filter] = [
        Or(tuple(HasAny(label, federation.spell(tag)) for label in (records.PRODUCT_AREA, records.ISSUE_TYPE)))
        for tag in question.tags
    ]
    if question.period.is_bounded:
        conditions.append(Overlaps((records.UPDATED,), question.period.since, question.period.until))
    return And(tuple(conditions)) if conditions else None


def _to_hit(match: FoundSkill, text: TextQuery, scale: CosineScale | None) -> ProviderHit:
    skill, cosine = match["skill"], match["cosine"]
    body = skill.body
    return ProviderHit(
        id=skill.skill_id,
        title=skill.title,
        snippet=snippet(body, text),
        strength=matching.judge(text, skill.title, body, cosine, scale),
        score=1.0 if cosine is None else match["score"],
        freshness=skill.updated_at,
        author=skill.author,
        confidence=round(skill.confidence * 100),
        version=skill.version,
        reference=HitReference(GET.name, {"skill_id": skill.skill_id}, resources.get_uri(skill.skill_id)),
    )


async def _list_labels(context: Context) -> list[str]:
    """Return the product areas and issue types of the org's skills."""
    place, facets = records.get_collection(context.principal.org), (records.PRODUCT_AREA, records.ISSUE_TYPE)
    found = await context.knowledge_base.search(SearchRequest(place, limit=1, facets=facets))
    return [each.value for facet in facets for each in found.facets.get(facet, ())]


FIND = explaining(find, _list_labels)
