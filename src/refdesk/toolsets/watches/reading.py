"""What callers see of watches and news: only their own, and only about what they may read now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from typing import TYPE_CHECKING, Any

from refdesk.errors import NotFoundError
from refdesk.kit.wire import parse_time
from refdesk.model import MetadataKey
from refdesk.toolsets.watches import models
from refdesk.watching import news as kept
from refdesk.watching import queueing, showing, watches

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.reading_scopes import ReadingScopes
    from refdesk.protocols import Reader

PAGE = 200
NO_SUCH_WATCH = "You have no such watch: use an id that list_watches returned."


async def find_watch(reader: Reader, context: Context, id: str) -> watches.Watch:
    """Return one of the caller's watches.

    Raises:
        NotFoundError: The caller has no watch with this id.
    """
    record = await reader.get_metadata(watches.make_key(context.principal.org, id))
    watch = watches.read_watch(record) if record is not None else None
    if watch is None or watch.agent != context.principal.agent:
        raise NotFoundError(NO_SUCH_WATCH)
    return watch


async def list_own(reader: Reader, context: Context) -> list[watches.Watch]:
    """Return the caller's watches, oldest first."""
    every = await watches.list_watches(reader, context.principal.org)
    return [watch for watch in every if watch.agent == context.principal.agent]


async def show_watches(reader: Reader, found: Sequence[watches.Watch]) -> list[models.Watch]:
    """Return watches as callers see them."""
    keys = [MetadataKey(watch.org, watches.DELIVERY, watch.id) for watch in found]
    records = await reader.get_many_metadata(keys) if keys else []
    return [
        models.Watch(**describe_watch(watch), webhook=_show_webhook(watch, queueing.read_delivery(record)))
        for watch, record in zip(found, records, strict=True)
    ]


def _show_webhook(watch: watches.Watch, delivery: queueing.Delivery | None) -> models.Webhook | None:
    if watch.webhook is None:
        return None
    if delivery is None:
        return models.Webhook(url=watch.webhook.url, waiting=0, failed=None, tried_next=None)
    return models.Webhook(
        url=watch.webhook.url,
        waiting=len(delivery.numbers),
        failed=delivery.reason or None,
        tried_next=delivery.due_at if delivery.reason and not delivery.is_off else None,
    )


def describe_watch(watch: watches.Watch) -> dict[str, Any]:
    """Return what callers see of a watch, keyed by the names of the model's fields."""
    return {
        "id": watch.id,
        "kind": watch.kind,
        "subject": watch.named or watch.subject,
        "label": watch.label or None,
        "toolsets": list(watch.toolsets),
        "tags": list(watch.tags),
        "match": watch.least,
        "paused": watch.paused,
        "created_at": watch.created_at,
    }


async def list_news(context: Context, scopes: ReadingScopes, asked: models.NewsInput) -> models.NewsOutput:
    """Return what is new for the caller.

    Raises:
        NotFoundError: The caller does not have the watch asked for, and there is no news from it.
    """
    store, principal = context.knowledge_base.store, context.principal
    since = parse_time(asked.since, time.min) if asked.since is not None else None
    is_narrowed = since is not None or asked.watch is not None
    after = 0 if asked.after is None and is_narrowed else asked.after
    found: list[kept.News] = []
    missed, page = 0, None
    while page is None or (len(found) < asked.limit and page.last < page.end):
        limit = PAGE if is_narrowed else asked.limit - len(found)
        page = await kept.read_page(store, principal.org, principal.agent, after=after, limit=limit)
        missed, after = missed + page.missed, page.last
        wanted = [each for each in page.news if _is_asked(each, asked, since)]
        found += [each for each in wanted if showing.may_know(scopes, principal.scopes, each.event)]
    if asked.watch is not None and not found:
        await find_watch(store, context, asked.watch)
    if len(found) > asked.limit:
        found = found[: asked.limit]
        after = found[-1].number
    cursor = after if after is not None else 0
    return models.NewsOutput(
        news=await show_news(context, found),
        cursor=cursor,
        has_more=cursor < page.end,
        missed=missed if asked.after is not None and missed else None,
    )


def _is_asked(news: kept.News, asked: models.NewsInput, since: datetime | None) -> bool:
    return asked.watch in (None, news.watch) and (since is None or news.event.at >= since)


async def show_news(context: Context, found: Sequence[kept.News]) -> list[models.News]:
    """Return news as callers see them, with present titles, leaving out news about erased documents."""
    wanted = {(each.event.toolset, each.event.id) for each in found}
    main = context.knowledge_base.store
    stores = {"": main, **{toolset: context.of(toolset).knowledge_base.store for toolset, _ in wanted}}
    documents = await showing.read_documents(stores, context.principal.org, wanted)
    keys = [watches.make_key(context.principal.org, each.watch) for each in found]
    records = await main.get_many_metadata(keys) if keys else []
    labels = [watches.read_watch(record).label if record is not None else "" for record in records]
    said = [
        showing.describe(each, label, documents.get((each.event.toolset, each.event.id)))
        for each, label in zip(found, labels, strict=True)
    ]
    return [models.News.model_validate(each) for each in said if each is not None]
