from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import anyio
import anyio.lowlevel
import pytest

from refdesk.core.clock import FixedClock
from refdesk.impact import examining
from refdesk.impact.cases import CASE
from refdesk.impact.changes import Announcement
from refdesk.impact.examining import RESTS, Examiner, get_rest
from refdesk.impact.records import (
    Impact,
    Learned,
    judge,
    make_mark_keys,
    make_pending,
    read_impact,
    read_impacts,
    summarise,
)
from refdesk.model import SHARED_ORG, Collection, Document, MetadataKey, State
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FEED = Collection(SHARED_ORG, "feed")
RETIREMENT = "Retirement: Azure Cache for Redis is retiring on September 30, 2028"
RELIES = "Sessions live in Azure Cache for Redis, Premium P2."


def read(document: Document) -> Announcement:
    return Announcement(document.id, document.title, document.body)


def make(
    collection: Collection, id: str, title: str, body: str = "Migrate to Azure Managed Redis.", version: int = 1
) -> Document:
    return Document(
        collection=collection,
        id=id,
        title=title,
        body=body,
        author="a",
        created_at=NOW,
        modified_at=NOW,
        version=version,
    )


@dataclass(frozen=True, slots=True)
class Desk:
    store: MemoryStore
    examiner: Examiner

    async def put(self, *documents: Document) -> None:
        async with self.store.transaction() as transaction:
            await transaction.put_documents(documents)
            await transaction.put_metadata([make_pending(document) for document in documents])
        await self.examiner.run_until_done()

    async def list_impacts(self, org: str, id: str, toolset: str = "notes") -> list[Impact]:
        [found] = read_impacts(org, await self.store.get_many_metadata(make_mark_keys(org, toolset, [id])))
        return found

    async def judge(self, impact: Impact, status: str) -> None:
        async with self.store.transaction() as transaction:
            await judge(transaction, impact, status, "dana")  # type: ignore[arg-type]


def make_examiner(store: MemoryStore) -> Examiner:
    load: Callable[[], Callable[[Document], Announcement]] = lambda: read  # noqa: E731
    stores: dict[str, Store] = {"feed": store, "notes": store, "playbooks": store}
    return Examiner(stores, {"feed": load}, frozenset(("notes", "playbooks")), FixedClock(NOW))


@pytest.fixture
def desk() -> Desk:
    store = MemoryStore()
    return Desk(store, make_examiner(store))


def notes(org: str) -> Collection:
    return Collection(org, "notes")


@pytest.mark.parametrize("announced_first", [True, False])
async def test_a_note_that_relies_on_what_is_announced_is_found_whichever_came_first(
    desk: Desk, announced_first: bool
) -> None:
    documents = [make(FEED, "1", RETIREMENT), make(notes("acme"), "n", "Booking site", RELIES)]
    for document in documents if announced_first else reversed(documents):
        await desk.put(document)
    [impact] = await desk.list_impacts("acme", "n")
    assert (impact.announcement, impact.kind, impact.due) == ("1", "retires", date(2028, 9, 30))
    summary = summarise([impact])
    assert summary is not None
    assert (summary.count, summary.worst, summary.due) == (1, "retires", date(2028, 9, 30))


async def test_no_org_sees_anothers(desk: Desk) -> None:
    await desk.put(
        make(FEED, "1", RETIREMENT), make(notes("acme"), "n", "Booking", RELIES), make(notes("other"), "m", "B", "Us.")
    )
    assert await desk.list_impacts("acme", "n")
    assert not await desk.list_impacts("other", "n")
    assert not await desk.list_impacts("other", "m")
    assert not await desk.store.list_metadata("impact", org="other")
    assert not await desk.store.list_metadata("impact_reach", org="other")


async def test_an_impact_goes_when_the_note_the_announcement_or_its_claim_goes(desk: Desk) -> None:
    feed, note = make(FEED, "1", RETIREMENT), make(notes("acme"), "n", "Booking", RELIES)
    await desk.put(feed, note)
    await desk.put(replace(note, body="Sessions live in cookies.", version=2))
    assert not await desk.list_impacts("acme", "n")
    await desk.put(replace(note, version=3))
    assert await desk.list_impacts("acme", "n")
    await desk.put(replace(feed, state=State.WITHDRAWN, version=2))
    assert not await desk.list_impacts("acme", "n")
    assert not await desk.store.list_metadata("impact")
    await desk.put(replace(feed, version=3))
    assert await desk.list_impacts("acme", "n")
    await desk.put(replace(note, state=State.SUPERSEDED, version=4))
    assert not await desk.list_impacts("acme", "n")


async def test_what_was_there_before_is_examined_page_by_page_and_once(desk: Desk) -> None:
    async with desk.store.transaction() as transaction:
        await transaction.put_documents([make(FEED, "1", RETIREMENT)])
        await transaction.put_documents(
            [make(notes("acme"), f"n{number:03}", "Booking", RELIES) for number in range(450)]
        )
    while await make_examiner(desk.store).run_once():  # as if each batch were of another process
        pass
    assert len(await desk.store.list_metadata("impact", org="acme")) == 450
    assert await make_examiner(desk.store).run_once() == 0


async def test_a_dismissed_pair_stays_dismissed_and_a_confirmed_one_while_the_note_says_the_same(desk: Desk) -> None:
    feed, note = make(FEED, "1", RETIREMENT), make(notes("acme"), "n", "Booking", RELIES)
    await desk.put(feed, note, make(notes("acme"), "m", "Flags", RELIES))
    [first] = await desk.list_impacts("acme", "n")
    [second] = await desk.list_impacts("acme", "m")
    await desk.judge(first, "dismissed")
    await desk.judge(second, "confirmed")
    await desk.put(
        replace(note, body=RELIES + " Owner: Dana.", version=2), replace(feed, title=RETIREMENT + ".", version=2)
    )
    assert not await desk.list_impacts("acme", "n")
    [kept] = await desk.list_impacts("acme", "m")
    assert (kept.status, kept.by) == ("confirmed", "dana")
    record = await desk.store.get_metadata(first.key)
    assert record is not None
    assert read_impact("acme", record.value).status == "dismissed"


async def test_an_org_learns_from_what_it_dismisses_and_others_do_not(desk: Desk) -> None:
    ids = [f"n{number}" for number in range(8)]
    own = "Flags: az redis C0. They are kept on two VMs."
    await desk.put(
        make(FEED, "1", RETIREMENT), *(make(notes(org), id, "Flags", own) for org in ("acme", "other") for id in ids)
    )
    assert [len(await desk.list_impacts(org, "n7")) for org in ("acme", "other")] == [1, 1]
    for id in ids[:5]:
        for impact in await desk.list_impacts("acme", id):
            await desk.judge(impact, "dismissed")
    assert [len(await desk.list_impacts(org, "n7")) for org in ("acme", "other")] == [0, 1]
    assert await desk.store.get_metadata(MetadataKey("other", "impact_learned", "judgements")) is None


def test_judgements_move_a_confidence_a_little_and_back() -> None:
    impact = Impact("acme", "1", "notes", "n", "retires", None, 0.6, ("product redis",), 0, 1, "")
    assert Learned({}).adjust(impact) == pytest.approx(0.6)
    assert Learned({"product redis": (0, 6)}).adjust(impact) < 0.5 < Learned({"product redis": (6, 0)}).adjust(impact)
    assert Learned({"product redis": (0, 10_000)}).adjust(replace(impact, confidence=0.95)) > 0.5
    assert Learned({"product redis": (6, 6)}).adjust(impact) == pytest.approx(0.6)


async def test_where_nothing_is_announced_no_note_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    read_notes: list[str] = []
    read_passages = examining.read_passages

    def watch(title: str, body: str) -> object:
        read_notes.append(title)
        return read_passages(title, body)

    monkeypatch.setattr(examining, "read_passages", watch)
    await desk.put(make(notes("acme"), "n", "Booking site", RELIES))
    assert read_notes == []
    await desk.put(make(FEED, "1", RETIREMENT))
    assert read_notes == ["Booking site"]


async def test_it_works_when_nobody_waits_for_anything_else(desk: Desk) -> None:
    asked, quiet = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def working() -> AsyncGenerator[None]:
        asked.set()
        await quiet.wait()
        yield

    desk.examiner.working = working
    note, announcement = make(notes("acme"), "n", "Sessions", RELIES), make(FEED, "1", RETIREMENT)
    async with desk.store.transaction() as transaction:
        await transaction.put_documents([note, announcement])
        await transaction.put_metadata([make_pending(note), make_pending(announcement)])
    async with anyio.create_task_group() as group:
        group.start_soon(desk.examiner.run)
        await asked.wait()
        assert not await desk.list_impacts("acme", "n")
        quiet.set()
        while not await desk.list_impacts("acme", "n"):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_calls_that_come_meanwhile_go_before_each_note_that_is_compared(desk: Desk) -> None:
    desk.examiner.disputing = frozenset(("notes",))
    await desk.examiner.run_until_done()
    limits = [
        make(notes("acme"), str(number), f"Refund limit, version {number}", f"The refund limit is {number}00 EUR.")
        for number in range(1, 5)
    ]
    async with desk.store.transaction() as transaction:
        await transaction.put_documents(limits)
        await transaction.put_metadata([make_pending(limits[0])])
    kept = list[int]()

    async def give_way() -> None:
        kept.append(len(await desk.store.list_metadata(CASE)))

    desk.examiner.give_way = give_way
    await desk.examiner.run_until_done()
    assert kept == [0] * (len(limits) - 1)
    assert await desk.store.list_metadata(CASE)


def test_after_a_batch_it_rests_for_what_it_worked_and_not_for_what_it_waited() -> None:
    assert get_rest(took=2.5, worked=0.02) == RESTS * 0.02
    assert get_rest(took=0.5, worked=0.9) == RESTS * 0.5
