"""The search provider of azure-updates: hybrid search; the period is that of an update's last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search.providers import HitReference
from refdesk.kit.provider import CollectionSearch
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.operations import SCOPES, SEARCH_UPDATES
from refdesk.toolsets.azure_updates.products import name_tag
from refdesk.toolsets.azure_updates.results import get_public_page
from refdesk.toolsets.azure_updates.state import describe_data

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.search.providers import Question
    from refdesk.kit.provider import Interpreted
    from refdesk.model import Document


def refer(update: Document) -> HitReference:
    """Return how to read an update in full."""
    return HitReference(SEARCH_UPDATES.name, {"id": update.id}, get_public_page(update.id))


def read(update: Document) -> str:
    """Return the description without the targets of its links; the body goes on with the names of products."""
    from refdesk.kit.markdown import drop_targets  # not at the start, which its parser would slow

    return drop_targets(str(update.data["description"]))


async def interpret(knowledge_base: KnowledgeBase, question: Question) -> Interpreted:
    """Return the question as `search_azure_updates` reads it."""
    from refdesk.toolsets.azure_updates import search  # not at the start

    return await search.interpret(
        knowledge_base, question.text, has_period=question.period.is_bounded, has_tags=bool(question.tags)
    )


FIND = (
    CollectionSearch(
        read=read,
        interpret=interpret,
        toolset=TOOLSET_NAME,
        operation=SEARCH_UPDATES.name,
        scopes=SCOPES,
        refer=refer,
        source="Microsoft",
        things="updates",
        dates="modified",
        tags="tags",
        name_tag=name_tag,
        quotes_bind=True,
        describe=describe_data,
    )
    .to_provider()
    .find
)
