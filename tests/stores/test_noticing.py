"""What the desk notices is kept alike by every engine: impacts, what people judged, and gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from refdesk.core.clock import FixedClock
from refdesk.core.keeping import erasing
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing.audit import Actor
from refdesk.gaps import records as gaps
from refdesk.gaps.keeping import Best, Keeper
from refdesk.gaps.missed import Missed, Waiting
from refdesk.impact.changes import Announcement
from refdesk.impact.examining import Examiner
from refdesk.impact.records import Impact, judge, make_mark_keys, make_pending, read_impacts
from refdesk.model import SHARED_ORG, Collection, Document, Principal
from refdesk.protocols import Store

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FEED, NOTES = Collection(SHARED_ORG, "feed"), Collection("acme", "notes")
RETIREMENT = "Retirement: Azure Cache for Redis is retiring on September 30, 2028"
ACTOR = Actor("acme", "root", "test")


def make(collection: Collection, id: str, title: str, body: str) -> Document:
    return Document(
        collection=collection, id=id, title=title, body=body, author="ann", created_at=NOW, modified_at=NOW, version=1
    )


def read(document: Document) -> Announcement:
    return Announcement(document.id, document.title, document.body)


async def put(store: Store, *documents: Document) -> None:
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        await transaction.put_metadata([make_pending(document) for document in documents])


async def list_impacts(store: Store, org: str = "acme") -> list[Impact]:
    [found] = read_impacts(org, await store.get_many_metadata(make_mark_keys(org, "notes", ["n"])))
    return found


async def test_impacts_are_found_judged_and_erased(store: Store) -> None:
    load: Callable[[], Callable[[Document], Announcement]] = lambda: read  # noqa: E731
    stores = {"feed": store, "notes": store}
    examiner = Examiner(stores, {"feed": load}, frozenset({"notes"}), FixedClock(NOW), frozenset({"notes"}))
    note = make(NOTES, "n", "Sessions", "Sessions live in Azure Cache for Redis, Premium P2.")
    await put(store, note, make(FEED, "1", RETIREMENT, "Migrate to Azure Managed Redis."))
    await examiner.run_until_done()
    [impact] = await list_impacts(store)
    assert impact.kind == "retires"
    assert await list_impacts(store, "other") == []
    async with store.transaction() as transaction:
        await judge(transaction, impact, "dismissed", "dana")
    assert await list_impacts(store) == []
    again = Examiner(stores, {"feed": load}, frozenset({"notes"}), FixedClock(NOW), frozenset({"notes"}))
    async with store.transaction() as transaction:
        await transaction.put_metadata([make_pending(note)])
    await again.run_until_done()
    assert await list_impacts(store) == []
    await erasing.erase(store, FixedClock(NOW), ACTOR, erasing.Erasable("acme", entry="n"))
    left = [each.key.kind for each in await store.list_all_metadata(None, 1000) if "notes/n" in each.key.name]
    assert left == []


async def test_gaps_are_kept_closed_and_erased(store: Store) -> None:
    async def ask(missed: Missed) -> Best:
        del missed
        return Best(0.1, "notes/far")

    reach: Sequence[str] = ("notes",)
    waiting, clock = Waiting(), FixedClock(NOW)
    keeper = Keeper(KnowledgeBase(store, clock=clock), waiting, ask, lambda _: reach)
    question = "who rotates the signing certificate of the gateway"
    for org, agent in (("acme", "ann"), ("acme", "bob"), ("other", "eve")):
        waiting.note(Missed(Principal(org, agent, frozenset()), question, ("notes",), NOW))
    await keeper.run_until_done()
    [gap] = await gaps.list_gaps(store, "acme")
    assert sorted(one.agent for one in gap.asked) == ["ann", "bob"]
    answer = make(NOTES, "n", "Signing certificate of the gateway", "Dana rotates the signing certificate in March.")
    await put(store, answer)
    await keeper.take_new(store, NOTES, [answer])
    [gap] = await gaps.list_gaps(store, "acme")
    assert (gap.became.state, gap.became.answer) == ("answered", "notes/n")
    [untouched] = await gaps.list_gaps(store, "other")
    assert untouched.became.state == "open"
    await erasing.erase(store, clock, ACTOR, erasing.Erasable("acme", agent="bob"))
    [gap] = await gaps.list_gaps(store, "acme")
    assert [one.agent for one in gap.asked] == ["ann"]
    keeper.bounds = type(keeper.bounds)(timedelta(0))
    assert await keeper.forget_old() == 2
    assert await gaps.list_all_gaps(store) == []
