"""Describes the state of the copy that all answers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.kit.age import STALE_HOURS, describe_copy
from refdesk.toolsets.azure_updates.feeds import THINGS, read_statuses
from refdesk.toolsets.azure_updates.options import get_options

if TYPE_CHECKING:
    from refdesk.core.knowledge_base import KnowledgeBase


async def describe_data(knowledge_base: KnowledgeBase) -> list[str]:
    """Return sentences about its age and about updates that it keeps but the feed has lost; empty if all is well.

    The age is given once the desk's health reports call the copy stale, and after two days however rarely it is synced.
    """
    statuses, now = await read_statuses(knowledge_base), knowledge_base.clock.now()
    stale_hours = min(STALE_HOURS, get_options(knowledge_base).stale_hours)
    return [
        each
        for feed, status in statuses.items()
        for each in describe_copy(status, now, things=THINGS[feed], stale_hours=stale_hours)
    ]
