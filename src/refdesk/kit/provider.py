"""How a toolset of documents takes part in federated search if it has no ranking of its own.

It is hybrid search over the toolset's collection, fused by the core; each hit is judged by its best passage. The
toolset has to say how one of its documents is read in full, and what its labels and dates are called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.core.background import sync_log
from refdesk.core.search import federation
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.providers import LeftOut, ProviderAnswer, ProviderHit, SearchProvider
from refdesk.core.search.retrieval import SearchRequest
from refdesk.core.search.semantics import MISSING_MEANING
from refdesk.core.search.snippets import snippet
from refdesk.kit.age import describe_copy
from refdesk.kit.unknown_tags import explaining
from refdesk.model import SHARED_ORG, And, Collection, Filter, HasAny, Overlaps

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.providers import HitReference, Question
    from refdesk.core.search.retrieval import Hit
    from refdesk.model import Document, TextQuery


@dataclass(frozen=True, slots=True)
class Interpreted:
    """A question as a toolset's own search understands it.

    Attributes:
        text: The text to search for.
        where: The conditions that the question states besides.
        note: These conditions in a sentence, for whoever asked; empty if there are none.
    """

    text: str
    where: Filter | None = None
    note: str = ""


AS_WRITTEN = Interpreted("")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSearch:
    """A collection that is the same for every org, kept up to date by a sync.

    Attributes:
        toolset: The name of the toolset, and of its collection.
        operation: The toolset's own search.
        scopes: The scopes that a caller needs for it.
        refer: Returns how a document is read in full.
        source: The organisation that the documents come from.
        things: What its documents are, in the plural.
        dates: The date range that says when a document was last changed or published.
        tags: The facet that labels documents; `None` if they have none.
        quotes_bind: Whether words in double quotes must occur in what is found, as they must in the toolset's own
            search.
        name_tag: Returns the tag to filter by for one that was asked for.
        describe: Returns what to know about the copy; `None` to derive it from the syncs of its single source.
        read: Returns the beginning of a document's body that people read; the rest is only searched.
        interpret: Returns how the toolset's own search interprets a question; `None` to search for it as written.
    """

    toolset: str
    operation: str
    scopes: frozenset[str]
    refer: Callable[[Document], HitReference]
    source: str
    things: str
    dates: str
    tags: str | None = None
    quotes_bind: bool = False
    name_tag: Callable[[str], str] = str
    describe: Callable[[KnowledgeBase], Awaitable[list[str]]] | None = None
    read: Callable[[Document], str] = lambda document: document.body
    interpret: Callable[[KnowledgeBase, Question], Awaitable[Interpreted]] | None = None

    def to_provider(self) -> SearchProvider:
        """Return the provider that takes part in federated search."""
        return SearchProvider(self.operation, self.scopes, explaining(self.find, self._list_tags))

    async def find(self, context: Context, question: Question) -> ProviderAnswer | LeftOut:
        """Return the documents found, best first; the question's period applies to `dates`."""
        if question.tags and self.tags is None:
            return LeftOut(f"The {self.things} carry no tags: ask without tags, or ask {self.operation} alone.")
        base = context.knowledge_base
        request, meant = await self._to_request(context, question)
        found = await base.search(request)
        if meant.where is not None and not found.total:
            request, meant = replace(request, text=question.text, where=self._to_filter(question)), AS_WRITTEN
            found = await base.search(request)
        text = parse_query(request.text or "")
        status = await sync_log.read_status(base.store, self.toolset)
        now = base.clock.now()
        age = describe_copy(status, now, things=self.things) if self.describe is None else await self.describe(base)
        notes = [*age, meant.note, MISSING_MEANING.get(found.semantic, "")]
        if not found.hits and question.period.is_bounded:
            notes.append(await self._describe_newest(context))
        return ProviderAnswer(
            tuple(self._to_hit(hit, text) for hit in found.hits),
            total=found.total,
            as_of=status.last_success,
            note=" ".join(note for note in notes if note),
            semantic=found.semantic,
        )

    async def _to_request(self, context: Context, question: Question) -> tuple[SearchRequest, Interpreted]:
        meant = AS_WRITTEN if self.interpret is None else await self.interpret(context.knowledge_base, question)
        conditions = tuple(each for each in (self._to_filter(question), meant.where) if each is not None)
        request = SearchRequest(
            Collection(SHARED_ORG, self.toolset),
            # A question that is nothing but conditions is searched as written: without words, no hit would rank above
            # others.
            meant.text if meant.text.strip() else question.text,
            where=And(conditions) if conditions else None,
            semantic=True,
            limit=question.limit,
            asker=context.principal.org,
            quotes_bind=self.quotes_bind,
        )
        return request, meant

    async def _list_tags(self, context: Context) -> list[str]:
        place, facets = Collection(SHARED_ORG, self.toolset), (self.tags,) if self.tags is not None else ()
        found = await context.knowledge_base.search(SearchRequest(place, limit=1, facets=facets))
        return [each.value for counts in found.facets.values() for each in counts]

    async def _describe_newest(self, context: Context) -> str:
        """Return a sentence that says how recent the newest document is, for callers who found nothing in a period."""
        newest = await context.knowledge_base.search(SearchRequest(Collection(SHARED_ORG, self.toolset), limit=1))
        if not newest.hits:
            return ""
        day = newest.hits[0].document.modified_at.date().isoformat()
        return f"Nothing was found in that period; of the {self.things} the newest is of {day}."

    def _to_filter(self, question: Question) -> Filter | None:
        tags = self.tags
        conditions: list[Filter] = [
            HasAny(tags, federation.spell(self.name_tag(tag))) for tag in question.tags if tags is not None
        ]
        if question.period.is_bounded:
            conditions.append(Overlaps((self.dates,), question.period.since, question.period.until))
        return And(tuple(conditions)) if conditions else None

    def _to_hit(self, hit: Hit, text: TextQuery) -> ProviderHit:
        document, read = hit.document, self.read(hit.document)
        passage = hit.passage if hit.passage is not None and hit.passage[0] < len(read) else None
        return ProviderHit(
            id=document.id,
            title=document.title,
            snippet=snippet(read, text, passage),
            strength=hit.strength,
            score=1.0 if hit.cosine is None else hit.score,
            freshness=document.modified_at,
            source=self.source,
            reference=self.refer(document),
        )
