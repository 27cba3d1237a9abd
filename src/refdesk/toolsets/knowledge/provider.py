"""The search provider of knowledge: the toolset's own ranking, with the relevance of each hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search import fusion
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.providers import HitReference, LeftOut, ProviderAnswer, ProviderHit, Question
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.core.search.snippets import snippet
from refdesk.kit.unknown_tags import explaining
from refdesk.toolsets.knowledge import counting, models, search
from refdesk.toolsets.knowledge.models import SearchInput
from refdesk.toolsets.knowledge.operations import GET_KNOWLEDGE
from refdesk.toolsets.knowledge.tags import normalise_tags

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import Document, TextQuery
    from refdesk.toolsets.knowledge.search import Match

NO_SUCH_TAG = "No entry can carry such a tag: tags here are words of letters and digits, joined by hyphens."


async def find(context: Context, question: Question) -> ProviderAnswer | LeftOut:
    """Return the entries found, as `search_knowledge` ranks them; the period is that of their creation."""
    try:
        tags = normalise_tags(question.tags)
    except ValueError:
        return LeftOut(NO_SUCH_TAG)
    asked = SearchInput.model_validate({"query": question.text, "limit": question.limit, "tags": list(tags)})
    text, collection = parse_query(question.text), models.get_collection(context.principal.org)
    found = await search.find(context.knowledge_base, collection, asked, question.period)
    scores = zip(found.candidates, fusion.absolute(found.candidates, text, trust=found.trust), strict=True)
    scored = {candidate.id: 1.0 if candidate.cosine is None else score for candidate, score in scores}
    hits = [_to_hit(match, entry, text, scored[match.placed_by]) for match, entry in found.best]
    return ProviderAnswer(tuple(hits), note=MISSING_MEANING.get(found.semantic, ""), semantic=found.semantic)


def _to_hit(match: Match, entry: Document, text: TextQuery, score: float) -> ProviderHit:
    return ProviderHit(
        id=entry.id,
        title=entry.title,
        snippet=snippet(entry.body, text, match.passage),
        strength=match.strength,
        score=score,
        freshness=entry.created_at,
        author=entry.author,
        confidence=models.get_confidence(entry),
        reference=HitReference(GET_KNOWLEDGE.name, {"id": entry.id}, f"knowledge://{entry.id}"),
    )


async def _list_tags(context: Context) -> list[str]:
    return [each.value for each in await counting.count(context, models.TAGS)]


FIND = explaining(find, _list_tags)
