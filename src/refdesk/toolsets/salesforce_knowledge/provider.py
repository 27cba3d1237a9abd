"""The search provider of salesforce-knowledge: Salesforce's own ranking, queried live.

Salesforce returns no scores, so relevance is estimated from title and summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search import federation, matching
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.providers import HitReference, LeftOut, ProviderAnswer, ProviderHit, Question
from refdesk.core.search.snippets import snippet
from refdesk.toolsets.salesforce_knowledge.statements import clean_text, count_searchable, normalize_language

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import TextQuery
    from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
    from refdesk.toolsets.salesforce_knowledge.models import ArticleSummary, SearchOutput
    from refdesk.toolsets.salesforce_knowledge.orgs import Orgs

SOURCE = "Salesforce Knowledge"
MOST = 25
"""Most articles of one search, as in `search_articles`."""

NO_TAGS = "Articles carry no tags: ask without tags, or ask search_articles for them alone."
NO_WORDS = "Salesforce needs at least two letters or digits: say in words what the article is about."
BY_WORDS = "Full-text search was not available, so only titles and summaries were looked through."


async def find(source: SalesforceSource | Orgs, context: Context, question: Question) -> ProviderAnswer | LeftOut:
    """Return the articles found that were published in the period, in the language asked for or the configured one."""
    words = clean_text(question.text)
    if question.tags:
        return LeftOut(NO_TAGS)
    if count_searchable(words) < 2:
        return LeftOut(NO_WORDS)
    language = normalize_language(question.language) if question.language is not None else None
    limit = min(question.limit, MOST)
    answer = await source.search(words, language=language, limit=limit, period=question.period)
    strengths = await _judge_all(context, question, answer)
    text = parse_query(question.text)
    hits = [_to_hit(each, strength, text) for each, strength in zip(answer.articles, strengths, strict=True)]
    notes = [str(warning["message"]) for warning in answer.warnings] + [BY_WORDS] * (answer.search_method == "soql")
    notes += [answer.notice] if answer.notice else []
    return ProviderAnswer(tuple(hits), note=" ".join(notes))


async def judge(context: Context, query: str, answer: SearchOutput) -> SearchOutput:
    """Return the answer, each article with how well its title and summary match."""
    strengths = await _judge_all(context, Question(query), answer)
    judged = [
        article.model_copy(update={"match": matching.name(strength)})
        for article, strength in zip(answer.articles, strengths, strict=True)
    ]
    notice = answer.notice or matching.get_notice(article.match for article in judged)
    return answer.model_copy(update={"articles": judged, "notice": notice})


async def _judge_all(context: Context, question: Question, answer: SearchOutput) -> list[float]:
    return await federation.judge(context, question, [(each.title, each.summary or "") for each in answer.articles])


def _to_hit(article: ArticleSummary, strength: float, text: TextQuery) -> ProviderHit:
    return ProviderHit(
        id=article.id,
        title=article.title,
        snippet=snippet(article.summary or "", text),
        strength=strength,
        freshness=article.last_published,
        source=SOURCE if article.org is None else f"{SOURCE} ({article.org})",
        reference=HitReference("get_article_by_id", {"article_id": article.id}),
    )
