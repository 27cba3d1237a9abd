"""Says what is to be known of the copy that everything is answered from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.background import sync_log
from refdesk.kit.age import describe_copy
from refdesk.toolsets.azure_updates import TOOLSET_NAME

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase


async def describe_data(knowledge_base: KnowledgeBase) -> list[str]:
    """Return sentences about its age and about what it keeps that the feed has lost; none where all is well."""
    status = await sync_log.read_status(knowledge_base.store, TOOLSET_NAME)
    return describe_copy(status, knowledge_base.clock.now(), things="updates")
