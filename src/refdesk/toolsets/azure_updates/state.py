"""Says what is to be known of the copy that everything is answered from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.kit.age import describe_copy
from refdesk.toolsets.azure_updates.feeds import THINGS, read_statuses

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase


async def describe_data(knowledge_base: KnowledgeBase) -> list[str]:
    """Return sentences about its age and about what it keeps that the feed has lost; none where all is well."""
    statuses, now = await read_statuses(knowledge_base), knowledge_base.clock.now()
    return [each for feed, status in statuses.items() for each in describe_copy(status, now, things=THINGS[feed])]
