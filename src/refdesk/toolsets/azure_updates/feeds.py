"""Which feeds are set up, and which of them an update belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.background import sync_log
from refdesk.core.background.change_log import read_changes, sort_changes
from refdesk.core.descriptors import FEED_MARK
from refdesk.model import FacetCount, HasAny, Not
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.options import get_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from refdesk.core.background.change_log import LoggedChange
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Filter
    from refdesk.toolsets.azure_updates.settings import Feed

AZURE: Feed = "azure"
ROADMAP: Feed = "m365"
ROADMAP_PREFIX = "m365-"
"""How the ids of the roadmap's items begin here, and those of no other feed."""

FEED = "feed"
"""The facet that names the feed of an update that is not in the first one."""

THINGS: Mapping[Feed, str] = {AZURE: "updates", ROADMAP: "items of the Microsoft 365 roadmap"}


def list_feeds(knowledge_base: KnowledgeBase) -> tuple[Feed, ...]:
    """Return the feeds that are set up, Azure's first."""
    return (AZURE, *(feed for feed in get_options(knowledge_base).feeds if feed != AZURE))


def name_source(feed: Feed) -> str:
    """Return the name under which a feed is synced."""
    return TOOLSET_NAME if feed == AZURE else f"{TOOLSET_NAME}{FEED_MARK}{feed}"


async def read_statuses(knowledge_base: KnowledgeBase) -> Mapping[Feed, sync_log.SyncStatus]:
    """Return the sync status of each feed that is set up."""
    store = knowledge_base.store
    return {feed: await sync_log.read_status(store, name_source(feed)) for feed in list_feeds(knowledge_base)}


async def read_logged(knowledge_base: KnowledgeBase, since: datetime | None, until: datetime) -> list[LoggedChange]:
    """Return the changes that syncs of all these feeds made; see `change_log.read_changes`."""
    store, sources = knowledge_base.store, map(name_source, list_feeds(knowledge_base))
    return sort_changes([each for name in sources for each in await read_changes(store, name, since, until)])


def get_feed(id: str) -> Feed:
    """Return the feed of an update."""
    return ROADMAP if id.startswith(ROADMAP_PREFIX) else AZURE


def to_feed_filter(feed: Feed) -> Filter:
    """Return the condition that an update belongs to a feed."""
    other = HasAny(FEED, (ROADMAP,))
    return other if feed == ROADMAP else Not(other)


def count_feeds(counted: Sequence[FacetCount], total: int) -> list[FacetCount]:
    """Return how many updates each feed has, most first, given the facet's counts and the total."""
    named = [each for each in counted if each.count]
    rest = total - sum(each.count for each in named)
    counts = [*named, *([FacetCount(AZURE, rest)] if rest else [])]
    return sorted(counts, key=lambda each: (-each.count, each.value))
