"""What azure-updates offers where several feeds are set up, in place of what it offers for one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from refdesk.core.operations import Resource
from refdesk.toolsets.azure_updates.feed_models import (
    FeedChangelog,
    FeedGuide,
    FeedSearchInput,
    FeedSearchOutput,
    FeedState,
    FeedSyncRun,
    FeedUpdate,
    extend,
)
from refdesk.toolsets.azure_updates.operations import SEARCH_UPDATES

if TYPE_CHECKING:
    from refdesk.core.context import Context


async def search_feeds(context: Context, asked: FeedSearchInput) -> FeedSearchOutput:
    """Return what `search_updates` does, with the feed of each update."""
    from refdesk.toolsets.azure_updates.feeds import get_feed  # not at the start
    from refdesk.toolsets.azure_updates.search import search_updates

    answer = await search_updates(context, asked)
    results = [extend(FeedUpdate, each, feed=get_feed(each.id)) for each in answer.results]
    found = extend(FeedSearchOutput, answer, results=results)
    return cast("FeedSearchOutput", found.offering(answer.choice))


async def read_feed_guide(context: Context) -> FeedGuide:
    """Return the guide, with the state of each feed."""
    from refdesk.core.search.retrieval import SearchRequest
    from refdesk.kit.age import get_age_hours
    from refdesk.toolsets.azure_updates.feeds import FEED, count_feeds, read_statuses
    from refdesk.toolsets.azure_updates.models import COLLECTION
    from refdesk.toolsets.azure_updates.resources import read_guide
    from refdesk.toolsets.azure_updates.results import show_instant

    base = context.knowledge_base
    guide, now = await read_guide(context), base.clock.now()
    found = await base.search(SearchRequest(COLLECTION, limit=1, facets=(FEED,)))
    counts = {each.value: each.count for each in count_feeds(found.facets.get(FEED, ()), found.total)}
    feeds = list[FeedState]()
    for feed, status in (await read_statuses(base)).items():
        last = status.last_success
        state = FeedState(
            feed=feed,
            updates=counts.get(feed, 0),
            last_sync_timestamp=None if last is None else show_instant(last),
            data_freshness_hours=None if last is None else get_age_hours(last, now),
        )
        feeds.append(extend(FeedState, state, last_error=status.last_error) if status.last_error else state)
    return extend(FeedGuide, guide, feeds=feeds)


async def read_feed_changelog(context: Context) -> FeedChangelog:
    """Return the recent syncs of all feeds, newest first, each with its feed."""
    from refdesk.toolsets.azure_updates.resources import list_runs, read_notes

    runs = [extend(FeedSyncRun, run, feed=feed) for feed, run in await list_runs(context)]
    return FeedChangelog.model_validate({"runs": runs, **await read_notes(context)})


def choose_resources(resources: tuple[Resource, ...]) -> tuple[Resource, ...]:
    """Return the resources, replaced by their versions for several feeds where there are such."""
    guide, changelog, *others = resources
    return (
        replace(guide, output=FeedGuide, reader=read_feed_guide, volatile=guide.volatile | {"feeds"}),
        replace(changelog, output=FeedChangelog, reader=read_feed_changelog),
        *others,
    )


SEARCH_FEEDS = replace(
    SEARCH_UPDATES,
    description=SEARCH_UPDATES.description
    + " The Microsoft 365 roadmap is searched, too: `feed` says what is of it, and is a filter and a facet.",
    input=FeedSearchInput,
    output=FeedSearchOutput,
    handler=search_feeds,
    examples=(*SEARCH_UPDATES.examples, {"filters": {"feed": "m365"}, "facets": ["feed", "status"]}),
)
